package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDKMark as first argument makes the binary of these tests an MCP server made with the official Go SDK: a process of
// its own, which can be frozen, and which a gateway can start.
const goSDKMark = "go-sdk-peer"

// goSDKPeer returns the command that runs the server: mode is stateful, stateless, sse or stdio.
func goSDKPeer(t testing.TB, mode, addr string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, goSDKMark, mode, addr}
}

// serveGoSDK is the server, given what follows the mark. It returns when it cannot go on.
func serveGoSDK(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s wants a mode", goSDKMark)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk-peer", Version: "1.0.0"}, nil)
	type question struct {
		Text string `json:"text"`
	}
	for _, name := range []string{"first", "second"} {
		mcp.AddTool(server, &mcp.Tool{Name: name, Description: "Answers."},
			func(context.Context, *mcp.CallToolRequest, question) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{}, nil, nil
			})
	}
	get := func(*http.Request) *mcp.Server { return server }
	switch mode := args[0]; mode {
	case "stdio":
		return server.Run(context.Background(), &mcp.StdioTransport{})
	case "sse":
		return http.ListenAndServe(args[1], mcp.NewSSEHandler(get, nil))
	default:
		return http.ListenAndServe(args[1],
			mcp.NewStreamableHTTPHandler(get, &mcp.StreamableHTTPOptions{Stateless: mode == "stateless"}))
	}
}
