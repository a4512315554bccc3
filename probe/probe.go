// Package probe asks one endpoint one question and reports what it saw. It speaks MCP (both protocol eras) and plain
// JSON-RPC 2.0 over HTTP. It keeps nothing between calls and alerts nobody: what a caller wants remembered (the era of
// an endpoint, say) comes back in the [Result] and goes in again with the [Target].
//
// A broken endpoint is a Result, never an error.
package probe

import (
	"encoding/json"
	"slices"
	"time"
)

// Kind says which protocol an endpoint speaks. Kinds are stored as they are and never renamed.
type Kind string

// The kinds this package can probe, beside the families of chains in family.go.
const (
	KindAuto    Kind = "auto"    // find out which of the others it is
	KindMCP     Kind = "mcp"     // Model Context Protocol over Streamable HTTP, either era
	KindJSONRPC Kind = "jsonrpc" // any JSON-RPC 2.0 method over HTTP
	KindA2A     Kind = "a2a"     // an agent of the Agent2Agent protocol: its card, then a task that does not exist
	KindACP     Kind = "acp"     // one of the protocols that go by the name ACP: see ACPVariant
	KindLSP     Kind = "lsp"     // a language server
)

// Kinds lists every kind a Target may name, in the order in which they are offered.
func Kinds() []Kind { return slices.Clone(kinds) }

var kinds = slices.Concat([]Kind{KindAuto, KindMCP, KindJSONRPC}, families, []Kind{KindA2A, KindACP, KindLSP})

// Era is the generation of MCP an endpoint was last seen to speak.
type Era string

// The eras of MCP. The empty Era means "not known yet".
const (
	EraModern Era = "modern" // 2026-07-28 and later: no handshake, every request stands alone
	EraLegacy Era = "legacy" // up to 2025-11-25: initialize, initialized, session
	EraSSE    Era = "sse"    // as EraLegacy, over the transport of 2024-11-05: a GET that streams, a POST beside it
)

// Target is everything needed to ask one endpoint one question.
type Target struct {
	Kind    Kind
	URL     string // http, https, ws, wss, tcp, tls or unix; empty with a Command
	Headers []Header
	Options Options

	// Command is a process to talk to over its standard streams, in place of a URL. Only who runs this service may say so.
	Command *Command

	// Method and Params are sent as they are when Kind is KindJSONRPC; nil Params are left out of the request.
	Method string
	Params json.RawMessage

	// Era and Memory are what an earlier Result said of this endpoint; zero when nothing is known.
	Era    Era
	Memory Memory

	// Peers are the newest heads that other endpoints of the same chain were seen at.
	Peers []Head

	// Timeout bounds the whole check, every step and the closing of the session included. Zero means DefaultTimeout.
	Timeout time.Duration
	// DegradedOver is the duration of a check above which an otherwise healthy answer is degraded. Zero means never.
	DegradedOver time.Duration

	// Transcript asks for every message as sent and received in Result.Transcript.
	Transcript bool
	// TranscriptOf says of a Result, which has no transcript yet, whether its transcript is worth making; nil means that
	// every one is.
	TranscriptOf func(Result) bool

	// Watch is told of each step as it happens, by its place in Result.Steps: when it begins, with no more than its name, method
	// and start, and once more when it has ended; the Result may add to that. It is called by the goroutine that probes, which waits.
	// Nil: nobody watches.
	Watch func(at int, s Step, ended bool)
}

// DefaultTimeout bounds a check whose target names no timeout.
const DefaultTimeout = 15 * time.Second

// DefaultCommandTimeout bounds a check of a command whose target names no timeout: a package runner that downloads what
// it runs has been seen to take 12 s before the first answer.
const DefaultCommandTimeout = 30 * time.Second

// Header is one request header. The value of a secret header is cut out of everything a Result carries.
type Header struct {
	Name   string `json:"name"`
	Value  string `json:"value,omitempty"`
	Secret bool   `json:"secret,omitempty"`
}

// Command is a process that speaks JSON-RPC over its standard input and output. Its environment is Env and, of this
// process's own, no more than is needed to start it: PATH, HOME, LANG, TMPDIR.
type Command struct {
	Args []string `json:"args"`          // the program, found in PATH when it has no slash, and its arguments
	Env  []Header `json:"env,omitempty"` // variables; the value of a secret one is cut out of everything a Result carries
	Dir  string   `json:"dir,omitempty"` // working directory; empty: that of this process
}

// Result is what one probe saw.
type Result struct {
	StartedAt time.Time
	Duration  time.Duration // from StartedAt until the last step of the verdict ended; closing the session not counted
	Kind      Kind          // what the endpoint turned out to be; never KindAuto unless nothing was found out
	Era       Era           // what the caller hands in next time: the era of MCP that answered, else that of the Target
	Verdict   Verdict
	Failure   *Failure // why Verdict is not up; nil when it is
	Steps     []Step   // in the order in which they were sent
	Warnings  []Warning
	Facts     Facts
	Contract  *Contract // the tool list of an MCP server; nil when it was not read to its end
	Memory    Memory    // what the caller hands in next time
	// RetryAfter is how long the endpoint asked us to stay away (Retry-After with 429 or 503); zero when it did not.
	RetryAfter time.Duration
	Transcript []Message // empty unless the Target asked for it
}

// Failure names the step that decided a verdict other than up, and why.
type Failure struct {
	Step    string `json:"failed_step"` // name of the step; empty when no request could be made at all
	Class   Class  `json:"class"`
	Code    int    `json:"code"`    // the JSON-RPC error code or HTTP status that came with it; 0 when none came
	Message string `json:"message"` // in the server's own words where there are any; at most MaxMessage bytes, secrets cut out
}

// MaxMessage bounds every message text of a Result, in bytes.
const MaxMessage = 500

// Step is one request of the conversation.
type Step struct {
	Name       string        // "initialize", "initialized", "tools/list", "close", "eth_blockNumber", …
	Method     string        // the JSON-RPC method as sent; for "close" the HTTP method DELETE
	Start      time.Duration // offset from Result.StartedAt
	Latency    time.Duration // from the first byte we tried to send (or dialling) to the end of the answer
	Phases     Phases
	HTTPStatus int    // 0 when no answer came
	Class      Class  // empty when the step went well
	Code       int    // the JSON-RPC error code or HTTP status that came with Class; 0 when none came
	Message    string // as in Failure
	BytesIn    int64  // of the response body
	BytesOut   int64  // of the request body
}

// Phases splits a step's latency. A phase that did not happen is zero: only the first step of a check dials.
type Phases struct {
	DNS       time.Duration
	Connect   time.Duration
	TLS       time.Duration
	FirstByte time.Duration // from the request being written to the first byte of the answer
	Body      time.Duration // from the first byte to the end of what we had to read
}

// Warning is something odd that did not decide the verdict.
type Warning struct {
	Step    string
	Class   Class
	Code    int
	Message string
}

// Facts are what an endpoint says of itself. A zero or nil member means it did not say.
type Facts struct {
	ProtocolVersion   string     `json:"protocol_version,omitempty"`
	SupportedVersions []string   `json:"supported_versions,omitempty"` // as server/discover listed them
	Era               Era        `json:"era,omitempty"`
	ServerName        string     `json:"server_name,omitempty"`
	ServerVersion     string     `json:"server_version,omitempty"`
	Tools             *int       `json:"tools,omitempty"`     // over all pages
	Prompts           *int       `json:"prompts,omitempty"`   // of a server without tools: on the first page
	Resources         *int       `json:"resources,omitempty"` // of a server without tools: on the first page
	Contract          string     `json:"contract,omitempty"`  // hash of the tool list: "sha256:…"
	Height            *uint64    `json:"height,omitempty"`
	HeadHash          string     `json:"head_hash,omitempty"`
	HeadTime          *time.Time `json:"head_time,omitempty"`  // of the newest block, by the chain's clock
	LagBlocks         *int64     `json:"lag_blocks,omitempty"` // behind the reference of the peers; nil when there is none
	Finalized         *uint64    `json:"finalized,omitempty"`  // height
	Syncing           *bool      `json:"syncing,omitempty"`    // as the node says itself
	ChainID           string     `json:"chain_id,omitempty"`   // as the chain names itself: a number in decimal, a genesis hash, a name
	TLSExpiresAt      *time.Time `json:"tls_expires_at,omitempty"`
	RemoteAddr        string     `json:"remote_addr,omitempty"` // the address that was checked and dialled
}

// Message is one line of a transcript, with secrets cut out and bodies bounded.
type Message struct {
	Step    string        `json:"step"`
	Sent    bool          `json:"sent"` // by us; otherwise received
	At      time.Duration `json:"-"`    // offset from Result.StartedAt
	Head    string        `json:"head"` // request line or status line, then the header lines
	Body    string        `json:"body"`
	Clipped bool          `json:"clipped,omitempty"` // the body was longer than what is kept
}
