package probe

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
)

// Contract is what an MCP server promises: its tool list in canonical form.
type Contract struct {
	// Key is the era of MCP and a fingerprint of the credentials under which the list was seen ("modern/public",
	// "legacy/1f2e3d4c5b6a7988"): servers show other tools to others, so that lists of different keys are not compared.
	Key  string
	Hash string // "sha256:…" of Tools
	// Tools is an array of the tools of all pages in the form of RFC 8785, sorted by name. Each has no members but name, title,
	// description, inputSchema, outputSchema, annotations and execution, those of them that it was sent with. Secrets that
	// the server repeats are cut out. Members that come twice in one object stay twice.
	Tools []byte
}

// contractMembers are the members of a tool that say what it does. Icons and _meta change without meaning.
var contractMembers = []string{"name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution"}

// maxContract bounds the tool lists whose contract is kept, in bytes. The longest lists that were seen have some hundred
// KiB.
const maxContract = 4 << 20

// toolForm is the canonical form of one tool.
func (c *conversation) toolForm(tool object) (canonical, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, m := range tool {
		if !slices.Contains(contractMembers, m.name) {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + m.name + `":`)
		b.Write(m.value)
	}
	b.WriteByte('}')
	return canonicalJSON(b.Bytes(), c.withoutSecrets())
}

// withoutSecrets returns what cuts the secrets out of a string that is kept as it is otherwise; nil when there are none.
func (c *conversation) withoutSecrets() func(string) string {
	if !c.secrets.any {
		return nil
	}
	return func(s string) string {
		cut := c.secrets.Cut(s)
		joined := strings.Map(visibleRune, cut)
		if joined == cut {
			return cut
		}
		if seen := c.secrets.Cut(joined); seen != joined {
			return seen // a secret that invisible characters had split
		}
		return cut
	}
}

func visibleRune(r rune) rune {
	if invisible(r) {
		return -1
	}
	return r
}

// newContract makes the contract of the canonical forms of a whole tool list.
func newContract(key string, tools []listedTool) *Contract {
	sorted := slices.Clone(tools)
	slices.SortFunc(sorted, func(a, b listedTool) int {
		return cmp.Or(strings.Compare(a.name, b.name), bytes.Compare(a.form.json, b.form.json))
	})
	var b bytes.Buffer
	b.WriteByte('[')
	for i, tool := range sorted {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(tool.form.json)
	}
	b.WriteByte(']')
	sum := sha256.Sum256(b.Bytes())
	return &Contract{Key: key, Hash: "sha256:" + hex.EncodeToString(sum[:]), Tools: b.Bytes()}
}

// contractKey names era and credentials.
func (t *Target) contractKey(era Era) string { return string(era) + "/" + t.credentialPrint() }

// credentialPrint is a fingerprint of the credentials that t is asked with, "public" when there are none. Access tokens
// that are fetched come and go: of OAuth the client counts, not its token. It is no more than eight bytes of a hash of all
// credentials together, under a label of its own, so that it is of no use against another hash of one of them.
func (t *Target) credentialPrint() string {
	var parts []string
	add := func(kind, name, value string) { parts = append(parts, kind, name, value) }
	for _, h := range t.Headers {
		if h.Secret || secretName(h.Name) {
			add("header", strings.ToLower(h.Name), h.Value)
		}
	}
	for _, secret := range urlSecrets(t.URL) {
		add("url", "", secret)
	}
	if t.Options.OAuth != nil {
		add("oauth", t.Options.OAuth.TokenURL, t.Options.OAuth.ClientID)
	}
	if t.Options.TLS.ClientCert != "" {
		add("certificate", "", t.Options.TLS.ClientCert)
	}
	if t.Command != nil {
		for _, v := range t.Command.Env {
			if v.Secret || secretName(v.Name) {
				add("environment", v.Name, v.Value)
			}
		}
	}
	if parts == nil {
		return "public"
	}
	h := sha256.New()
	h.Write([]byte("rollcall contract credentials 1\n"))
	for _, part := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash takes everything
		h.Write([]byte(part))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// contractTools returns the tools of a contract by name and how often the name came before, and the names in order.
func contractTools(contract []byte) (map[toolKey]json.RawMessage, error) {
	var tools []json.RawMessage
	if err := json.Unmarshal(contract, &tools); err != nil {
		return nil, err
	}
	byName := make(map[toolKey]json.RawMessage, len(tools))
	seen := map[string]int{}
	for _, raw := range tools {
		tool, err := readObject(raw)
		if err != nil {
			return nil, err
		}
		name := tool.text("name")
		byName[toolKey{name, seen[name]}] = raw
		seen[name]++
	}
	return byName, nil
}

// toolKey tells the tools of a contract apart; a server may list one name twice.
type toolKey struct {
	name string
	nth  int
}
