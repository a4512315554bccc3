package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// corpus are texts that somebody may give who wants pages to run them. Each would set window.owned, or be an element that
// nobody meant.
var corpus = []string{
	`<script>window.owned=1</script>`,
	`"><img src=x onerror=window.owned=1>`,
	`'><svg/onload=window.owned=1>`,
	`</title><script>window.owned=1</script>`,
	`</textarea></select><script>window.owned=1</script>`,
	`javascript:window.owned=1`,
	`--><script>window.owned=1</script><!--`,
	`]]><script>window.owned=1</script>`,
	`{{.Frame}}<x onclick=window.owned=1>`,
	"\u202Eevil\u2066 <b onmouseover=window.owned=1>b</b>",
	`&lt;script&gt;window.owned=1&lt;/script&gt;`,
	`<a href="javascript:window.owned=1">x</a><iframe srcdoc="<script>parent.owned=1</script>">`,
	strings.Repeat("w", 3000) + `<script>window.owned=1</script>`,
}

// hostile returns the n-th text of the corpus, beginning anew after the last.
func hostile(n int) string { return corpus[n%len(corpus)] }

// hostileMCP is an MCP server that has nothing but texts of the corpus to say, and fails every third time.
type hostileMCP struct{ asked atomic.Int64 }

func newHostileMCP(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(&hostileMCP{})
	t.Cleanup(s.Close)
	return s.URL + "/mcp?" + `q="><script>window.owned=1</script>`
}

func (h *hostileMCP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&request); err != nil || request.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Server", hostile(1))
	w.Header().Set("X-Powered-By", hostile(0))
	answer := map[string]any{"jsonrpc": "2.0", "id": request.ID}
	n := h.asked.Add(1)
	switch {
	case request.Method == "initialize":
		answer["result"] = map[string]any{
			"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
			"serverInfo":   map[string]any{"name": hostile(0), "title": hostile(1), "version": hostile(2)},
			"instructions": hostile(3),
		}
	case request.Method == "tools/list" && n%3 != 0:
		answer["result"] = map[string]any{"tools": hostileTools()}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": hostile(int(n)), "data": hostile(4)}
	}
	_ = json.NewEncoder(w).Encode(answer) // the test fails where nothing arrives
}

func hostileTools() []any {
	var tools []any
	for n := range corpus {
		tools = append(tools, map[string]any{
			"name": fmt.Sprint(n, hostile(n)), "title": hostile(n + 1), "description": hostile(n + 2),
			"inputSchema": map[string]any{
				"type": "object", "description": hostile(n + 3), "required": []string{hostile(n)},
				"properties": map[string]any{hostile(n): map[string]any{"type": "string", "description": hostile(n + 4), "enum": []string{hostile(n + 5)}}},
			},
			"annotations": map[string]any{"title": hostile(n + 6)},
		})
	}
	return tools
}
