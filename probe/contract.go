package probe

// Contract is what an MCP server promises: its tool list in canonical form.
type Contract struct {
	Key   string // era and credential under which the list was seen: lists of different keys are not compared
	Hash  string // "sha256:…" of Tools
	Tools []byte // RFC 8785 JSON: an array of the tools of all pages, sorted by name
}
