package probe

import (
	"context"
	"encoding/json"
	"strings"
)

const stepTools = "tools/list"

// maxCursor bounds what is sent back to a server of its own making.
const maxCursor = 16 << 10

// legacyPage asks for a page other than the first.
type legacyPage struct {
	Cursor string `json:"cursor"`
}

// tools reads all pages of the tool list of an endpoint that declares tools. It reports whether a page lacked what the
// modern era requires.
func (c *conversation) tools(ctx context.Context, p peer) (lacking bool, failure *Failure) {
	if !p.tools {
		return false, nil
	}
	count := 0
	names := toolNames{}
	seen := map[string]bool{}
	var cursor *string
	for page := 1; ; page++ {
		a := c.ask(ctx, question{step: stepTools, method: "tools/list", params: c.toolsParams(p, cursor), mcp: true, peer: p})
		if p.era == EraModern {
			c.refine(&a)
		} else {
			c.noticeLoss(&a, p)
		}
		if a.problem != nil {
			return lacking, c.failure(a)
		}
		result, _ := readObject(a.result)
		cursor = c.nextCursor(a.step, result, p.era)
		if cursor != nil && seen[*cursor] {
			c.flag(a.step, ClassCursorLoop, "page %d leads back to an earlier one", page)
			return lacking, nil // a server that ignores the cursor has sent the same tools again
		}
		count += c.readTools(a.step, result, names)
		c.result.Facts.Tools = &count
		if p.era == EraModern && c.checkCacheable(a.step, result) {
			lacking = true
		}
		switch {
		case cursor == nil:
			return lacking, nil
		case page >= c.limits.Pages:
			c.flag(a.step, ClassPageLimit, "more than %d pages", c.limits.Pages)
			return lacking, nil
		}
		seen[*cursor] = true
	}
}

func (c *conversation) toolsParams(p peer, cursor *string) any {
	switch {
	case p.era == EraModern:
		return c.modernParams(cursor)
	case cursor == nil:
		return nil
	default:
		return legacyPage{*cursor}
	}
}

// nextCursor returns the cursor of the next page, nil at the end of the list. The empty cursor ends a legacy list and
// is a cursor like any other in the modern era.
func (c *conversation) nextCursor(step int, result object, era Era) *string {
	raw, ok := result.get("nextCursor")
	if !ok || isNull(raw) {
		return nil
	}
	var cursor string
	if json.Unmarshal(raw, &cursor) != nil {
		c.flag(step, ClassSchemaInvalid, "nextCursor is not a string")
		return nil
	}
	if len(cursor) > maxCursor {
		c.flag(step, ClassSchemaInvalid, "nextCursor is larger than %d bytes", maxCursor)
		return nil
	}
	if cursor == "" && era == EraLegacy {
		return nil
	}
	return &cursor
}

// toolNames are the names seen on all pages.
type toolNames map[string]bool

// readTools counts the tools of a page and flags those that clients refuse. One bad tool does not discard the others.
func (c *conversation) readTools(step int, result object, names toolNames) int {
	raw, _ := result.get("tools")
	var tools []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &tools) != nil {
		c.flag(step, ClassSchemaInvalid, "the result has no list of tools")
		return 0
	}
	var bad []string
	for _, tool := range tools {
		if complaint := names.check(tool); complaint != "" {
			bad = append(bad, complaint)
		}
	}
	if len(bad) > 0 {
		const most = 5
		c.flag(step, ClassSchemaInvalid, "%d of %d tools are invalid: %s", len(bad), len(tools), strings.Join(bad[:min(len(bad), most)], "; "))
	}
	return len(tools)
}

// check says what is wrong with a tool, "" when nothing is.
func (names toolNames) check(raw json.RawMessage) string {
	tool, err := readObject(raw)
	if err != nil {
		return "a tool is not an object"
	}
	name := tool.text("name")
	if name == "" {
		return "a tool has no name"
	}
	short := clip(name, 64)
	if names[name] {
		return short + " comes twice"
	}
	names[name] = true
	input, ok := tool.object("inputSchema")
	if !ok || input.text("type") != "object" {
		return short + ` has no inputSchema of type "object"`
	}
	if output, has := tool.get("outputSchema"); has {
		if _, err := readObject(output); err != nil {
			return short + " has an outputSchema that is no schema"
		}
	}
	return ""
}
