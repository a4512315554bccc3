package probe

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// headerArgument is an argument of a tool that goes into a header as well, so that what stands between client and server
// can see it (MCP 2026-07-28, Streamable HTTP, "Custom Headers from Tool Parameters").
type headerArgument struct {
	header string   // Mcp-Param-…
	path   []string // of properties
}

// headerArguments returns the arguments of an inputSchema that are marked with x-mcp-header, and why clients leave a tool
// with such marks out, "" when they do not. The specification wants each mark to be a token (RFC 9110 §5.6.2), different
// from the others in more than case, on a string, integer or boolean that is reached by properties alone.
func headerArguments(inputSchema any) (arguments []headerArgument, complaint string) {
	document, ok := inputSchema.(map[string]any)
	if !ok {
		return nil, ""
	}
	taken := map[string]bool{}
	eachSchema(document, func(s subschema) {
		mark, marked := s.members["x-mcp-header"]
		if !marked || complaint != "" {
			return
		}
		name, _ := mark.(string)
		words := "has an invalid x-mcp-header: " + jsonWords(mark, 60)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			complaint = words + " is not a token"
		case !s.argument:
			complaint = words + " is on something else than an argument"
		case !primitive(s.members["type"]):
			complaint = words + " is on an argument that is no string, integer or boolean"
		case taken[strings.ToLower(name)]:
			complaint = words + " comes twice"
		}
		taken[strings.ToLower(name)] = true
		arguments = append(arguments, headerArgument{http.CanonicalHeaderKey("Mcp-Param-" + name), s.path})
	})
	if complaint != "" {
		return nil, complaint
	}
	return arguments, ""
}

// primitive reports whether a type may go into a header. One of them or null is taken for it, too: the header is left out
// then.
func primitive(t any) bool {
	if list, ok := t.([]any); ok {
		list = slices.DeleteFunc(slices.Clone(list), func(item any) bool { return item == "null" })
		return len(list) == 1 && primitive(list[0])
	}
	return t == "string" || t == "integer" || t == "boolean"
}

// headerOf returns the value of the header for one of the arguments of a call, and false when there is none to be sent.
func (a headerArgument) headerOf(arguments any) (string, bool) {
	value := arguments
	for _, name := range a.path {
		members, ok := value.(map[string]any)
		if !ok {
			return "", false
		}
		value = members[name]
	}
	switch v := value.(type) {
	case string:
		return headerText(v), true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return headerNumber(v), true
	default:
		return "", false
	}
}

// headerNumber writes a number in decimal digits; 42.0 and 42 are the same integer.
func headerNumber(n json.Number) string {
	const safe = 1 << 53
	if f, err := n.Float64(); err == nil && f == math.Trunc(f) && math.Abs(f) < safe {
		return strconv.FormatInt(int64(f), 10)
	}
	return n.String()
}

// headerText makes text fit for a header: as it is when it is plain ASCII, else in Base64 between marks. Text that looks
// as if it were so encoded is encoded, too.
func headerText(s string) string {
	const begin, end = "=?base64?", "?="
	plain := strings.TrimSpace(s) == s && (!strings.HasPrefix(s, begin) || !strings.HasSuffix(s, end))
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] <= '~'
	}
	if plain {
		return s
	}
	return begin + base64.StdEncoding.EncodeToString([]byte(s)) + end
}
