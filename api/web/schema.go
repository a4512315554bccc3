package web

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Tool is a tool of an MCP server as it describes it.
type Tool struct {
	ID          string // of its element on the page
	Name        string
	Title       string
	Description string
	Hints       []Said // what its annotations promise
	Input       []Property
	Output      []Property
	More        bool   // there are properties that are not shown
	Schema      string // the schema of Input, indented; empty where it is too long
	Open        bool   // there are so few that each may stand open
}

// Property is one member of a schema, and of the schemas within it.
type Property struct {
	Name        string
	Depth       int // 0 for the tool's own
	Type        Spoken
	Required    bool
	Description string
	Allowed     string // values, bounds, default: "one of a, b · default a"
}

// Bounds of what is shown of tools, which strangers wrote.
const (
	maxShownTools    = 300
	maxProperties    = 150  // of one schema
	maxAllProperties = 4000 // of one page
	maxSchemaDepth   = 6
	maxSchemaText    = 2000 // runes of a description
	maxSchemaRaw     = 64 << 10
	maxValues        = 20 // of an enum
	openTools        = 4  // so few of them stand open
	// maxSchemaWork is how many bytes of schemas are read for one page, those again that are referred to again.
	maxSchemaWork = 4 << 20
)

// schemaBounds are what is left for one page.
type schemaBounds struct{ properties, work int }

// ToolsOf reads a tool list as a contract keeps it, at most maxShownTools, and how many there are. False when it is not kept or cannot
// be read.
func ToolsOf(list []byte) (tools []Tool, count int, known bool) {
	var all []json.RawMessage
	if len(list) == 0 || json.Unmarshal(list, &all) != nil {
		return nil, 0, false
	}
	bounds := schemaBounds{maxAllProperties, maxSchemaWork}
	for i, raw := range all[:min(len(all), maxShownTools)] {
		t := toolOf(raw, &bounds)
		t.ID, t.Open = "tool-"+strconv.Itoa(i+1), len(all) <= openTools
		tools = append(tools, t)
	}
	return tools, len(all), true
}

// members are those of an object of JSON; nil for anything else.
type members map[string]json.RawMessage

func membersOf(raw json.RawMessage) members {
	var m members
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func (m members) text(name string) string {
	var s string
	if json.Unmarshal(m[name], &s) != nil {
		return ""
	}
	return clipText(s)
}

func clipText(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "�"))
	if utf8.RuneCountInString(s) <= maxSchemaText {
		return s
	}
	return string([]rune(s)[:maxSchemaText]) + "…"
}

func toolOf(raw json.RawMessage, bounds *schemaBounds) Tool {
	m := membersOf(raw)
	t := Tool{Name: m.text("name"), Title: m.text("title"), Description: m.text("description"), Hints: hintsOf(membersOf(m["annotations"]))}
	if t.Title == "" {
		t.Title = membersOf(m["annotations"]).text("title")
	}
	var left [2]bool
	t.Input, left[0] = propertiesOf(m["inputSchema"], bounds)
	t.Output, left[1] = propertiesOf(m["outputSchema"], bounds)
	t.More = left[0] || left[1]
	if text, ok := indent(string(m["inputSchema"])); ok && len(text) <= maxSchemaRaw {
		t.Schema = text
	}
	return t
}

// hintsOf words the annotations of a tool. The specification calls them hints: they are what the server says, not what is so.
func hintsOf(m members) []Said {
	var hints []Said
	for _, h := range []struct{ name, yes, no string }{
		{"readOnlyHint", "only reads", ""},
		{"destructiveHint", "may destroy", "destroys nothing"},
		{"idempotentHint", "may be repeated", ""},
		{"openWorldHint", "reaches beyond the server", "stays within the server"},
	} {
		var value bool
		if m[h.name] == nil || json.Unmarshal(m[h.name], &value) != nil {
			continue
		}
		if value {
			hints = append(hints, Say(h.yes))
		} else if h.no != "" {
			hints = append(hints, Say(h.no))
		}
	}
	return hints
}

// aboutProperty is the message of a change that is one of a property.
var aboutProperty = regexp.MustCompile(`(?s)\A(argument|result) (".*?") (.+)\z`)

// changed returns the message of a change of a tool list.
func changed(message string) Spoken {
	parts := aboutProperty.FindStringSubmatch(message)
	switch {
	case parts == nil:
		return Words(message)
	case parts[1] == "argument":
		return Say("argument %s %s", parts[2], Words(parts[3]))
	}
	return Say("result %s %s", parts[2], Words(parts[3]))
}

// propertiesOf lists the properties of a schema, and reports whether there are more.
func propertiesOf(schema json.RawMessage, bounds *schemaBounds) (properties []Property, more bool) {
	if schema == nil {
		return nil, false
	}
	r := schemaReader{root: schema, room: min(bounds.properties, maxProperties), work: &bounds.work}
	r.object(schema, 0)
	bounds.properties -= len(r.found)
	return r.found, r.left
}

// schemaReader lists the properties of a JSON Schema. References are followed within the schema, and only as deep as is shown: one that
// leads to itself ends there.
type schemaReader struct {
	root  json.RawMessage
	room  int // for properties
	work  *int
	found []Property
	left  bool // some have no room
}

// members reads an object, nothing when enough was read.
func (r *schemaReader) members(raw json.RawMessage) members {
	if !r.spend(raw) {
		return nil
	}
	return membersOf(raw)
}

// spend reports whether there is work left for reading some JSON.
func (r *schemaReader) spend(raw json.RawMessage) bool {
	const least = 64 // bytes: reading little costs something as well
	*r.work -= len(raw) + least
	r.left = r.left || *r.work < 0
	return *r.work >= 0
}

// object lists the properties of a schema, those that are required first.
func (r *schemaReader) object(raw json.RawMessage, depth int) {
	m := r.resolve(r.members(raw))
	properties := r.members(m["properties"])
	if len(properties) == 0 {
		return
	}
	if depth >= maxSchemaDepth {
		r.left = true
		return
	}
	var required []string
	_ = json.Unmarshal(m["required"], &required) // what is no list of names requires nothing
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if x, y := slices.Contains(required, a), slices.Contains(required, b); x != y {
			return compareBool(y, x)
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		if r.room <= 0 {
			r.left = true
			return
		}
		r.room--
		r.property(name, properties[name], depth, slices.Contains(required, name))
	}
}

func (r *schemaReader) property(name string, raw json.RawMessage, depth int, required bool) {
	m := r.resolve(r.members(raw))
	r.found = append(r.found, Property{
		Name: clipText(name), Depth: depth, Type: r.typeOf(m, 0), Required: required, Description: m.text("description"), Allowed: allowed(m),
	})
	r.object(raw, depth+1)
	for items, i := m["items"], 0; items != nil && i < maxSchemaDepth; i++ {
		in := r.resolve(r.members(items))
		r.object(items, depth+1)
		items = in["items"]
	}
}

// resolve follows a reference within the schema, "#/$defs/Unit".
func (r *schemaReader) resolve(m members) members {
	for range maxSchemaDepth {
		ref := m.text("$ref")
		path, local := strings.CutPrefix(ref, "#/")
		if ref == "" || !local {
			return m
		}
		at := r.root
		for part := range strings.SplitSeq(path, "/") {
			at = r.members(at)[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
		}
		if at == nil {
			return m
		}
		m = r.members(at)
	}
	return m
}

// typeOf words the type of a schema: "string", "array of integer", "string or null".
func (r *schemaReader) typeOf(m members, depth int) Spoken {
	unknown := Say("anything")
	if depth >= maxSchemaDepth || *r.work < 0 {
		return unknown
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		var some []json.RawMessage
		if m[name] == nil || !r.spend(m[name]) || json.Unmarshal(m[name], &some) != nil {
			continue
		}
		var types either
		for _, one := range some[:min(len(some), maxValues)] {
			types = types.with(r.typeOf(r.resolve(r.members(one)), depth+1))
		}
		return types
	}
	var one string
	var several []string
	switch {
	case json.Unmarshal(m["type"], &one) == nil && one == "array" && m["items"] != nil:
		return Say("array of %s", r.typeOf(r.resolve(r.members(m["items"])), depth+1))
	case one != "":
		return verbatim(clipText(one))
	case json.Unmarshal(m["type"], &several) == nil && len(several) > 0:
		var types either
		for _, one := range several[:min(len(several), maxValues)] {
			types = append(types, verbatim(clipText(one)))
		}
		return types
	case m["enum"] != nil || m["const"] != nil:
		return Say("value")
	case m["properties"] != nil:
		return verbatim("object")
	}
	return unknown
}

// verbatim is what is the same in every language.
type verbatim string

func (v verbatim) in(Language) string { return string(v) }
func (v verbatim) String() string     { return string(v) }

// either is one of several types.
type either []Spoken

// with returns e with another type, unless that is there already.
func (e either) with(other Spoken) either {
	if slices.ContainsFunc(e, func(one Spoken) bool { return one.String() == other.String() }) {
		return e
	}
	return append(e, other)
}

func (e either) in(l Language) string {
	var words string
	for i, one := range e {
		if i > 0 {
			words += " " + l.say("or") + " "
		}
		words += one.in(l)
	}
	return clipText(words)
}

func (e either) String() string { return e.in(english) }

// allowed words what a value may be, in the terms of JSON Schema.
func allowed(m members) string {
	var parts []string
	var values []json.RawMessage
	if json.Unmarshal(m["enum"], &values) == nil && len(values) > 0 {
		words := make([]string, 0, len(values))
		for _, v := range values[:min(len(values), maxValues)] {
			words = append(words, string(v))
		}
		if len(values) > maxValues {
			words = append(words, "…")
		}
		parts = append(parts, strings.Join(words, ", "))
	}
	for _, name := range []string{"const", "format", "pattern", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength",
		"maxLength", "minItems", "maxItems", "default"} {
		if raw, ok := m[name]; ok {
			parts = append(parts, name+" "+string(raw))
		}
	}
	return clipText(strings.Join(parts, " · "))
}
