package probe

import "encoding/json"

// CanonicalJSON writes JSON in the form of RFC 8785, and names a member that comes twice.
func CanonicalJSON(raw []byte) (out []byte, repeated string, err error) {
	form, err := canonicalJSON(raw, nil)
	return form.json, form.repeated, err
}

// CanonicalNumber spells a number as RFC 8785 does.
func CanonicalNumber(literal string) string { return canonicalNumber(literal) }

// JudgeTool says what is wrong with the schemas of a tool, for a peer of this version.
func JudgeTool(tool string, era Era, version string) (complaint string, unjudged bool) {
	form, err := canonicalJSON([]byte(tool), nil)
	if err != nil {
		return err.Error(), true
	}
	judge := newSchemaJudge(peer{era: era, version: version}, true)
	complaint = judge.tool(listedTool{name: "t", form: form})
	return complaint, judge.unjudged > 0
}

// ContractKey is the key of the contracts that a target sees.
func (t Target) ContractKey(era Era) string { return t.contractKey(era) }

// Problems returns everything that is wrong with a canary.
func (c *Canary) Problems() []Problem { return c.problems() }

// ParamHeaders returns the headers that mirror the arguments of a call, or why there can be none.
func ParamHeaders(inputSchema, arguments string) (map[string][]string, string) {
	var schema, given any
	if decodeNumbers([]byte(inputSchema), &schema) != nil || decodeNumbers([]byte(arguments), &given) != nil {
		return nil, "not JSON"
	}
	headers, refusal := paramHeaders(map[string][]string{}, object{{"inputSchema", json.RawMessage(inputSchema)}}, []byte(arguments))
	return headers, refusal
}
