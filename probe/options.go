package probe

import (
	"encoding/json"
	"time"
)

// Options are the settings of a target beyond whom to ask and what. The zero Options are right for most endpoints. They
// are kept and sent as JSON in this shape.
type Options struct {
	// Expect is what the answer to Target.Method must hold, beyond being a well-formed result.
	Expect Expect `json:"expect,omitzero"`
	// Batch is sent as one array in place of Target.Method; every member is judged by itself (JSON-RPC 2.0 §6).
	Batch []Call `json:"batch,omitempty"`
	// Notify sends Target.Method as a notification: nothing is answered beyond the status (JSON-RPC 2.0 §4.1).
	Notify bool `json:"notify,omitempty"`
	// Subscribe asks whether a subscription delivers, in place of whether calls are answered: kinds of chains with a
	// subscription in their preset, over a transport that carries messages both ways.
	Subscribe bool `json:"subscribe,omitempty"`

	Framing Framing     `json:"framing,omitempty"` // of messages over tcp, tls, unix and stdio
	IP      IPVersion   `json:"ip_version,omitempty"`
	HTTP    HTTPVersion `json:"http_version,omitempty"`
	TLS     TLS         `json:"tls,omitzero"`
	OAuth   *OAuth      `json:"oauth,omitempty"`

	Chain  Chain      `json:"chain,omitzero"`
	Canary *Canary    `json:"canary,omitempty"` // MCP: one tool to be called
	ACP    ACPVariant `json:"acp_variant,omitempty"`
	LSP    LSPOptions `json:"lsp,omitzero"`
}

// Framing says how messages are told apart on a connection that only carries bytes. Framings are stored as they are.
type Framing string

// The framings. Empty means what the kind of endpoint uses: FramingHeader for LSP, FramingLine elsewhere.
const (
	FramingLine   Framing = "line"           // one message per line, and concatenated objects when reading
	FramingHeader Framing = "content-length" // a header with Content-Length before each message, as in LSP
)

// IPVersion restricts which addresses of a name are dialled; empty means any.
type IPVersion string

// The versions of IP.
const (
	IPv4 IPVersion = "4"
	IPv6 IPVersion = "6"
)

// HTTPVersion restricts which version of HTTP is spoken; empty means the newest that both sides know.
type HTTPVersion string

// The versions of HTTP.
const (
	HTTP1 HTTPVersion = "1.1"
	HTTP2 HTTPVersion = "2"
)

// TLS says how the certificate of an endpoint is judged, and what the probe shows of itself.
type TLS struct {
	CA         string `json:"ca,omitempty"`          // PEM certificates that may vouch for the server, in place of the system's
	ServerName string `json:"server_name,omitempty"` // asked for (SNI) and compared with the certificate, in place of the URL's host
	ClientCert string `json:"client_cert,omitempty"` // PEM
	ClientKey  string `json:"client_key,omitempty"`  // PEM; a secret
	Insecure   bool   `json:"insecure,omitempty"`    // any certificate will do; every check says so in a warning
	// ExpiryWarning is how long before the end of the certificate's validity a check warns; zero means DefaultExpiryWarning,
	// negative never.
	ExpiryWarning time.Duration `json:"expiry_warning,omitempty"` // in nanoseconds as JSON
}

// DefaultExpiryWarning is two weeks: a certificate that renews itself has done so by then.
const DefaultExpiryWarning = 14 * 24 * time.Hour

// OAuth is how a token for the endpoint is had: by client credentials (RFC 6749 §4.4).
type OAuth struct {
	ClientID     string   `json:"client_id"`
	ClientSecret string   `json:"client_secret,omitempty"` // a secret
	Scopes       []string `json:"scopes,omitempty"`
	// TokenURL is where tokens are had. Empty means discovery: the endpoint's protected resource metadata (RFC 9728) names
	// the authorization server, whose metadata (RFC 8414, OpenID Connect Discovery) names the token endpoint.
	TokenURL string `json:"token_url,omitempty"`
	// Resource is sent as the resource indicator (RFC 8707); empty means the endpoint's own URL, or what its metadata says.
	Resource string `json:"resource,omitempty"`
}

// Chain is what is expected of the chain that an endpoint serves. Zero members mean what the preset of the chain says.
type Chain struct {
	// ID is the chain that it must be: a name from the presets ("ethereum"), or an id as the chain gives it itself ("1",
	// a genesis hash, a network name). Empty: any chain.
	ID string `json:"id,omitempty"`
	// Lagging and Syncing are how many blocks behind its peers make an endpoint degraded, and down.
	Lagging int64 `json:"lagging,omitempty"`
	Syncing int64 `json:"syncing,omitempty"`
	// MaxAge is how old the newest block may be before the endpoint is degraded; negative: chains that make blocks on demand.
	MaxAge time.Duration `json:"max_age,omitempty"`
}

// Canary is one tool of an MCP server that each check calls: a read-only one.
type Canary struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // an object
	Expect    Expect          `json:"expect,omitzero"`     // of the tools/call result
}

// ACPVariant is one of the protocols that go by the name ACP; empty means: find out which. Stored as they are.
type ACPVariant string

// The variants of ACP (see acp.go).
const (
	ACPCommunication ACPVariant = "communication" // Agent Communication Protocol: REST, GET /ping and /agents
	ACPClient        ACPVariant = "client"        // Agent Client Protocol: JSON-RPC initialize
	ACPRuns          ACPVariant = "runs"          // JSON-RPC runs/create
)

// LSPOptions belong to language servers.
type LSPOptions struct {
	AllowExit bool `json:"allow_exit,omitempty"` // end with shutdown and exit over a socket, too: a server of one session ends with it
}

// Call is one member of a batch.
type Call struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"` // array or object; nil leaves them out
	Notify bool            `json:"notify,omitempty"`
	Expect Expect          `json:"expect,omitzero"`
}
