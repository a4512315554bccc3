package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
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
		more, all := c.readTools(a.step, result, names, maxTools-count)
		count += more
		c.result.Facts.Tools = &count
		if !all {
			return lacking, nil
		}
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

// Bounds on a tool list. Servers of real use have hundreds of tools at most; a stranger's list must not fill the memory.
const (
	maxTools    = 10_000 // over all pages
	maxToolName = 256    // bytes; the specification recommends 128 characters at most
)

// toolNames are the names seen on all pages.
type toolNames map[string]bool

// readTools counts the tools of a page and flags those that clients refuse. One bad tool does not discard the others. It
// reads no more than room of them, and reports whether that was all.
func (c *conversation) readTools(step int, result object, names toolNames, room int) (count int, all bool) {
	raw, _ := result.get("tools")
	tools := json.NewDecoder(bytes.NewReader(raw))
	if first, err := tools.Token(); err != nil || first != json.Delim('[') {
		c.flag(step, ClassSchemaInvalid, "the result has no list of tools")
		return 0, true
	}
	const most = 5 // complaints to be shown
	var complaints []string
	bad := 0
	for tools.More() {
		if count == room {
			c.flag(step, ClassPageLimit, "more than %d tools", maxTools)
			return count, false
		}
		var tool json.RawMessage
		if err := tools.Decode(&tool); err != nil {
			break // not to be: the whole answer was read as JSON
		}
		count++
		if complaint := names.check(tool); complaint != "" {
			bad++
			if len(complaints) < most {
				complaints = append(complaints, complaint)
			}
		}
	}
	if bad > 0 {
		c.flag(step, ClassSchemaInvalid, "%d of %d tools are invalid: %s", bad, count, strings.Join(complaints, "; "))
	}
	return count, true
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
	if len(name) > maxToolName {
		return fmt.Sprintf("%s has a name longer than %d bytes", short, maxToolName)
	}
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
