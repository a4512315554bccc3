package probe_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rollcallhq/rollcall/probe"
)

// The official Go SDK compares the headers of a call with its body, and refuses one where they differ.
func TestCanaryOnTheGoSDK(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{
		"city":{"type":"string","x-mcp-header":"City"},"days":{"type":"integer","x-mcp-header":"Days"},
		"units":{"type":"object","properties":{"metric":{"type":"boolean","x-mcp-header":"Metric"}}}},"required":["city"]}`)
	server := mcp.NewServer(&mcp.Implementation{Name: "weather", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "forecast", InputSchema: schema, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	for _, stateless := range []bool{true, false} {
		s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server },
			&mcp.StreamableHTTPOptions{Stateless: stateless}))
		defer s.Close()
		r := ask(t, probe.Target{Kind: probe.KindMCP, URL: s.URL, Options: probe.Options{Canary: &probe.Canary{
			Tool:      "forecast",
			Arguments: json.RawMessage(`{"city":"Zürich","days":3.0,"units":{"metric":true}}`),
			Expect:    probe.Expect{Path: "$.content[0].text", Regex: "Zürich"},
		}}})
		era := probe.EraLegacy
		if stateless {
			era = probe.EraModern
		}
		if r.Verdict != probe.Up || r.Era != era || r.Contract == nil || r.Memory.SoundTools == "" {
			t.Errorf("stateless %v: %s %+v, era %s, steps %s, warnings %+v", stateless, r.Verdict, r.Failure, r.Era, stepLine(r.Steps), r.Warnings)
		}
	}
}
