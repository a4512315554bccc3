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

// toolList is what was read of a tool list.
type toolList struct {
	pages []toolPage
	names toolNames
	count int
	whole bool // it was read to its end, and every page held a list

	size     int         // of the canonical forms, in bytes
	formless bool        // some tools have no canonical form: too deep, or too much of it
	canary   *listedTool // the tool that is to be called
}

// toolPage is one page of the list.
type toolPage struct {
	step  int // of the Result
	tools []listedTool
	limit bool // it has more tools than are read
}

// listedTool is one tool of the list.
type listedTool struct {
	name      string
	form      canonical // empty when it is not kept
	complaint string    // what is wrong with it at first sight
	members   object    // of the tool that is to be called only
}

// tools reads all pages of the tool list of an endpoint that declares tools, judges them, and calls the canary. It reports
// whether a page lacked what the modern era requires.
//
//	readToolList ─► judgeTools (schema.go, contract.go) ─► callCanary (canary.go)
//	no tools declared, or declared by mistake ─► otherLists (lists.go)
func (c *conversation) tools(ctx context.Context, p peer) (lacking bool, failure *Failure) {
	if !p.tools {
		c.missCanary()
		c.takeContract(p, &toolList{whole: true}) // it promises none: what it had before is gone
		return c.otherLists(ctx, p)
	}
	list := toolList{names: toolNames{}}
	lacking, failure = c.readToolList(ctx, p, &list)
	c.judgeTools(p, &list)
	if failure == nil {
		return lacking, c.callCanary(ctx, p, &list)
	}
	if list.pages == nil && failure.Class == ClassRPCError && failure.Code == codeMethodNotFound && (p.prompts || p.resources) {
		return c.withoutTools(ctx, p, failure)
	}
	return lacking, failure
}

// readToolList reads the pages of the list until their end, or until a bound on them.
func (c *conversation) readToolList(ctx context.Context, p peer, list *toolList) (lacking bool, failure *Failure) {
	seen := map[string]bool{}
	complete := true
	var cursor *string
	for page := 1; ; page++ {
		a := c.ask(ctx, question{step: stepTools, method: "tools/list", params: c.listParams(p, cursor), mcp: true, peer: p})
		if p.era == EraModern {
			c.refine(&a)
		} else {
			c.noticeLoss(&a, p)
		}
		if a.problem != nil {
			return lacking, c.failure(a)
		}
		result, _ := readObject(a.result)
		next, readable := c.nextCursor(a.step, result, p.era)
		cursor = next
		if cursor != nil && seen[*cursor] {
			c.flag(a.step, ClassCursorLoop, "page %d leads back to an earlier one", page)
			return lacking, nil // a server that ignores the cursor has sent the same tools again
		}
		complete = complete && readable
		if !c.readTools(a.step, result, list) {
			complete = false
		}
		c.result.Facts.Tools = &list.count
		if list.pages[len(list.pages)-1].limit {
			return lacking, nil
		}
		if p.era == EraModern && c.checkCacheable(a.step, result) {
			lacking = true
		}
		switch {
		case cursor == nil:
			list.whole = complete
			return lacking, nil
		case page >= c.limits.Pages:
			c.flag(a.step, ClassPageLimit, "more than %d pages", c.limits.Pages)
			return lacking, nil
		}
		seen[*cursor] = true
	}
}

func (c *conversation) listParams(p peer, cursor *string) any {
	switch {
	case p.era == EraModern:
		return c.modernParams(cursor)
	case cursor == nil:
		return nil
	default:
		return legacyPage{*cursor}
	}
}

// nextCursor returns the cursor of the next page, nil at the end of the list, and whether it could be read. The empty
// cursor ends a legacy list and is a cursor like any other in the modern era.
func (c *conversation) nextCursor(step int, result object, era Era) (next *string, readable bool) {
	raw, ok := result.get("nextCursor")
	if !ok || isNull(raw) {
		return nil, true
	}
	var cursor string
	if json.Unmarshal(raw, &cursor) != nil {
		c.flag(step, ClassSchemaInvalid, "nextCursor is not a string")
		return nil, false
	}
	if len(cursor) > maxCursor {
		c.flag(step, ClassSchemaInvalid, "nextCursor is larger than %d bytes", maxCursor)
		return nil, false
	}
	if cursor == "" && era != EraModern {
		return nil, true
	}
	return &cursor, true
}

// Bounds on a tool list. Servers of real use have hundreds of tools at most; a stranger's list must not fill the memory.
const (
	maxTools    = 10_000 // over all pages
	maxToolName = 256    // bytes; the specification recommends 128 characters at most
)

// readTools reads the tools of a page into the list, until there are maxTools of them, and reports whether the page held a
// list at all.
func (c *conversation) readTools(step int, result object, list *toolList) bool {
	list.pages = append(list.pages, toolPage{step: step})
	page := &list.pages[len(list.pages)-1]
	raw, _ := result.get("tools")
	tools, ok := readItems(raw)
	if !ok {
		c.flag(step, ClassSchemaInvalid, "the result has no list of tools")
		return false
	}
	for {
		tool, ok := tools.next()
		if !ok {
			return true
		}
		if list.count == maxTools {
			page.limit = true
			return true
		}
		list.count++
		page.tools = append(page.tools, c.readTool(tool, list))
	}
}

// readTool looks at one tool. One bad tool does not discard the others.
func (c *conversation) readTool(raw json.RawMessage, list *toolList) listedTool {
	members, err := readObject(raw)
	if err != nil {
		list.formless = true
		return listedTool{complaint: "a tool is not an object"}
	}
	tool := listedTool{name: members.text("name"), complaint: list.names.check(members)}
	if form, err := c.toolForm(members); err == nil && list.size+len(form.json) <= maxContract {
		tool.form = form
		list.size += len(form.json)
	} else {
		list.formless = true
	}
	if canary := c.target.Options.Canary; canary != nil && tool.name == canary.Tool && list.canary == nil {
		called := tool
		called.members, _ = readObject(bytes.Clone(raw)) // not of the answer itself, which may be megabytes
		list.canary = &called
	}
	return tool
}

// judgeTools flags the tools that clients refuse, and makes the contract of a list that was read to its end. Schemas that
// an earlier check found sound are not judged again.
func (c *conversation) judgeTools(p peer, list *toolList) {
	judge := newSchemaJudge(p, c.target.Command == nil)
	contract := c.takeContract(p, list)
	known := contract != nil && c.target.Memory.SoundTools == judge.rules()+contract.Hash
	sound := true
	for _, page := range list.pages {
		var complaints []string
		for _, tool := range page.tools {
			complaint := tool.complaint
			if complaint == "" && !known {
				complaint = judge.tool(tool)
			}
			if complaint != "" {
				complaints = append(complaints, complaint)
			}
		}
		c.complain(page, complaints)
		sound = sound && complaints == nil
	}
	if judge.unjudged > 0 {
		c.warn(stepTools, ClassSchemaInvalid, 0, "%d of %d tools are too large for their schemas to be judged", judge.unjudged, list.count)
	}
	if contract == nil {
		return
	}
	c.result.Memory.SoundTools = ""
	if sound && judge.unjudged == 0 {
		c.result.Memory.SoundTools = judge.rules() + contract.Hash
	}
}

// complain flags what is wrong with a page of tools.
func (c *conversation) complain(page toolPage, complaints []string) {
	const most = 5 // complaints to be shown
	if len(complaints) > 0 {
		c.flag(page.step, ClassSchemaInvalid, "%d of %d tools are invalid: %s", len(complaints), len(page.tools),
			strings.Join(complaints[:min(len(complaints), most)], "; "))
	}
	if page.limit {
		c.flag(page.step, ClassPageLimit, "more than %d tools", maxTools)
	}
}

// takeContract keeps the contract of a list that was read to its end; nil when it was not, or not wholly.
func (c *conversation) takeContract(p peer, list *toolList) *Contract {
	if !list.whole || list.formless {
		return nil
	}
	var tools []listedTool
	for _, page := range list.pages {
		tools = append(tools, page.tools...)
	}
	contract := newContract(c.target.contractKey(p.era), tools)
	c.result.Contract = contract
	c.result.Facts.Contract = contract.Hash
	return contract
}

// toolNames are the names seen on all pages.
type toolNames map[string]bool

// check says what is wrong with a tool at first sight, "" when nothing is.
func (names toolNames) check(tool object) string {
	name := tool.text("name")
	if name == "" {
		return "a tool has no name"
	}
	short := shortName(name)
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

// shortName is the name of a tool as it stands in a complaint.
func shortName(name string) string { return clip(name, 64) }
