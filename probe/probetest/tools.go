package probetest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// ToolList makes an MCP server offer these tools, each given as JSON, on one page.
func ToolList(tools ...string) Fault { return listing("tools/list", "tools", tools) }

// PromptList makes an MCP server answer prompts/list with these prompts, each given as JSON.
func PromptList(prompts ...string) Fault { return listing("prompts/list", "prompts", prompts) }

// ResourceList makes an MCP server answer resources/list with these resources, each given as JSON.
func ResourceList(resources ...string) Fault {
	return listing("resources/list", "resources", resources)
}

func listing(step, member string, items []string) Fault {
	return colour(step, func(x *exchange) {
		list := make([]json.RawMessage, 0, len(items))
		for _, item := range items {
			list = append(list, json.RawMessage(item))
		}
		x.answerList(member, list)
	})
}

// answerList answers one page that is all there is.
func (x *exchange) answerList(member string, list any) {
	x.status, x.raw, x.nullID = http.StatusOK, nil, false
	result := map[string]any{member: list}
	if x.speaksModern() {
		x.modernResult(result)
		return
	}
	x.result(result)
}

// Declares makes an MCP server declare these capabilities, given as JSON, whatever it knows.
func Declares(capabilities string) Fault {
	declare := func(x *exchange) {
		if result, ok := x.payload["result"].(map[string]any); ok {
			result["capabilities"] = json.RawMessage(capabilities)
		}
	}
	return all(colour("server/discover", declare), colour("initialize", declare))
}

// ToolResult makes an MCP server answer tools/call with a result, given as JSON, for whatever tool. As servers of the
// modern era must, it refuses a call whose Mcp-Name header is not the name of the tool.
func ToolResult(result string) Fault {
	return colour("tools/call", func(x *exchange) {
		x.raw, x.nullID = nil, false
		if x.speaksModern() && headerValue(x.Header.Get("Mcp-Name")) != x.toolName() {
			x.rpcError(http.StatusBadRequest, codeHeaderMismatch, "Mcp-Name does not match the name of the tool", nil)
			return
		}
		x.status = http.StatusOK
		var members map[string]any
		if err := json.Unmarshal([]byte(result), &members); err != nil {
			panic("probetest: " + err.Error()) // a test handed in JSON that is none
		}
		if x.speaksModern() && members["resultType"] == nil {
			members["resultType"] = "complete"
		}
		x.result(members)
	})
}

func (x *exchange) toolName() string {
	var params struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(x.Params, &params) // no params: no name
	return params.Name
}

// headerValue decodes the value of a header that mirrors text which may not fit into one.
func headerValue(s string) string {
	encoded, ok := strings.CutPrefix(s, "=?base64?")
	if !ok || !strings.HasSuffix(encoded, "?=") {
		return s
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?="))
	if err != nil {
		return s
	}
	return string(plain)
}
