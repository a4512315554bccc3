package probe

import "encoding/json"

// Expect is what an answer must hold. The zero Expect is content with anything well formed. All members that are set must
// hold.
type Expect struct {
	Path   string          `json:"path,omitempty"`   // JSONPath (RFC 9535): what the members below look at; empty means the whole result
	Type   string          `json:"type,omitempty"`   // null, boolean, integer, number, string, array or object
	Equals json.RawMessage `json:"equals,omitempty"` // the same JSON value, whatever its spelling
	Regex  string          `json:"regex,omitempty"`  // RE2, found anywhere in a string, or in the JSON of anything else
	Min    json.RawMessage `json:"min,omitempty"`    // a number, or a string that holds one (decimal or 0x…)
	Max    json.RawMessage `json:"max,omitempty"`
	CEL    string          `json:"cel,omitempty"` // an expression over result, error, latency and status that must be true
}
