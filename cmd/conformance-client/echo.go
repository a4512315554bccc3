package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/rollcallhq/rollcall/probe"
)

// The tools of the scenario json-schema-2020-12-preservation.
const (
	focalTool = "json_schema_2020_12_tool"
	echoTool  = "json_schema_echo"
)

// echoSchema hands the input schema of the focal tool, as it stands in the transcript of a probe, back to the server:
// this is how the suite sees what a client made of it. The probe itself calls no tools, so the call is made here.
func echoSchema(ctx context.Context, url string, transcript []probe.Message) error {
	schema, err := focalSchema(transcript)
	if err != nil {
		return err
	}
	const method = "tools/call"
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": "echo", "method": method, "params": map[string]any{
		"name":      echoTool,
		"arguments": map[string]any{"schema": schema},
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion":    firstModern,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "rollcall", "version": "conformance"},
		},
	}})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", firstModern)
	req.Header.Set("Mcp-Method", method)
	req.Header.Set("Mcp-Name", echoTool)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", method, res.Status, answer)
	}
	return nil
}

// focalSchema finds the focal tool's input schema, byte for byte, in what the server sent.
func focalSchema(transcript []probe.Message) (json.RawMessage, error) {
	for _, m := range transcript {
		if m.Sent || m.Step != "tools/list" {
			continue
		}
		for _, message := range messages(m.Body) {
			var reply struct {
				Result struct {
					Tools []struct {
						Name        string          `json:"name"`
						InputSchema json.RawMessage `json:"inputSchema"`
					} `json:"tools"`
				} `json:"result"`
			}
			if err := json.Unmarshal([]byte(message), &reply); err != nil {
				return nil, fmt.Errorf("read the transcript of tools/list: %w", err)
			}
			for _, tool := range reply.Result.Tools {
				if tool.Name == focalTool {
					return tool.InputSchema, nil
				}
			}
		}
	}
	return nil, errors.New("no tool " + focalTool + " in the transcript")
}

// messages returns the JSON of a body: the body itself, or the data of each event of an event stream.
func messages(body string) []string {
	if strings.HasPrefix(strings.TrimSpace(body), "{") {
		return []string{body}
	}
	var found []string
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(line, "data:"); ok && strings.TrimSpace(data) != "" {
			found = append(found, data)
		}
	}
	return found
}
