package probe

import (
	"context"
	"encoding/json"
)

const (
	stepPrompts   = "prompts/list"
	stepResources = "resources/list"
)

// otherLists asks a server without tools for the first page of what it offers instead: prompts, or else resources. It asks
// nothing of a server that declares neither. It reports whether the page lacked what the modern era requires.
func (c *conversation) otherLists(ctx context.Context, p peer) (lacking bool, failure *Failure) {
	facts := &c.result.Facts
	switch {
	case p.prompts:
		return c.firstPage(ctx, p, stepPrompts, "prompts", []string{"name"}, &facts.Prompts)
	case p.resources:
		return c.firstPage(ctx, p, stepResources, "resources", []string{"uri", "name"}, &facts.Resources)
	default:
		return false, nil
	}
}

// firstPage counts what is on the first page of a list whose items must have these members.
func (c *conversation) firstPage(ctx context.Context, p peer, step, list string, required []string, count **int) (lacking bool, failure *Failure) {
	a := c.ask(ctx, question{step: step, method: step, params: c.listParams(p, nil), mcp: true, peer: p})
	if p.era == EraModern {
		c.refine(&a)
	} else {
		c.noticeLoss(&a, p)
	}
	if a.problem != nil {
		return false, c.failure(a)
	}
	result, _ := readObject(a.result)
	raw, _ := result.get(list)
	if len(raw) == 0 || raw[0] != '[' {
		c.flag(a.step, ClassSchemaInvalid, "the result has no list of %s", list)
	} else {
		found, more := items(raw, maxTools)
		c.checkItems(a.step, list, found, required)
		if more {
			c.flag(a.step, ClassPageLimit, "more than %d %s", maxTools, list)
		}
		n := len(found)
		*count = &n
	}
	return p.era == EraModern && c.checkCacheable(a.step, result), nil
}

// checkItems flags a list some of whose items lack a member that clients go by.
func (c *conversation) checkItems(step int, list string, found []json.RawMessage, required []string) {
	bad, member := 0, ""
	for _, raw := range found {
		item, _ := readObject(raw) // what is no object has no members
		for _, name := range required {
			if item.text(name) == "" {
				bad++
				member = name
				break
			}
		}
	}
	if bad > 0 {
		c.flag(step, ClassSchemaInvalid, "%d of %d %s are invalid: one has no %s", bad, len(found), list, member)
	}
}

// withoutTools asks a server that declares tools and does not know tools/list for what else it declares. One that answers
// that does its work, and is wrong about itself only: clients that believe it stumble. One that does not is judged by the
// failure of its tools/list.
func (c *conversation) withoutTools(ctx context.Context, p peer, refused *Failure) (lacking bool, failure *Failure) {
	step := len(c.result.Steps) - 1
	lacking, other := c.otherLists(ctx, p)
	switch {
	case other != nil && other.Class == ClassSessionLost:
		return lacking, other
	case other != nil:
		return lacking, refused
	}
	message := c.words("declares tools and does not know tools/list: %s", refused.Message)
	s := &c.result.Steps[step]
	s.Class, s.Message = ClassCapabilityMissing, message
	if c.soft == nil {
		c.soft = &Failure{Step: s.Name, Class: s.Class, Code: s.Code, Message: message}
	}
	c.missCanary()
	return lacking, nil
}
