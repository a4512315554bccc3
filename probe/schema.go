package probe

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds on the schemas that are judged, generous for any real tool. Judging costs some ten microseconds per value, so that
// an endpoint can take up a fraction of a second at most.
const (
	maxSchema       = 256 << 10 // bytes of one tool
	maxSchemaValues = 20_000    // JSON values of all tools of a check together: five hundred typical tools
)

// schemaRules is the version of what is judged here: a tool list that was found sound under other rules is judged again.
const schemaRules = "1"

// schemaJudge judges the schemas of a tool list as JSON Schema, by themselves and without ever fetching anything: what
// another document says cannot be known, and is not held against a tool.
type schemaJudge struct {
	peer     peer
	headers  bool // arguments may go into headers
	left     int  // JSON values that may still be looked at
	unjudged int  // tools that were too large
}

func newSchemaJudge(p peer, http bool) *schemaJudge {
	return &schemaJudge{peer: p, headers: http && p.era == EraModern, left: maxSchemaValues}
}

// rules names what a list is judged by: this judge's rules and the protocol version, which says more than the era does.
func (j *schemaJudge) rules() string { return schemaRules + "/" + j.peer.version + "/" }

// tool says what is wrong with the schemas of a tool, "" when nothing is or when it cannot be known.
func (j *schemaJudge) tool(tool listedTool) string {
	complaint := ""
	switch form := tool.form; {
	case form.json == nil, len(form.json) > maxSchema, form.values > j.left:
		j.unjudged++
	case form.repeated != "":
		complaint = "has the member " + form.repeated + " twice in one object"
	default:
		j.left -= form.values
		complaint = j.judge(form)
	}
	if complaint == "" {
		return ""
	}
	return shortName(tool.name) + " " + complaint
}

func (j *schemaJudge) judge(form canonical) string {
	decoded, err := jsonschema.UnmarshalJSON(bytes.NewReader(form.json))
	if err != nil {
		return "" // not to be: the form is JSON
	}
	tool, _ := decoded.(map[string]any)
	for _, name := range []string{"inputSchema", "outputSchema"} {
		if complaint := j.schema(tool[name]); complaint != "" {
			return "has an invalid " + name + ": " + complaint
		}
	}
	if output, ok := tool["outputSchema"].(map[string]any); ok && j.peer.era != EraModern && output["type"] != "object" {
		return `has an outputSchema that is not of type "object"` // which the modern era allows
	}
	if j.headers {
		_, complaint := headerArguments(tool["inputSchema"])
		return complaint
	}
	return ""
}

// schema says what is wrong with a schema, "" when nothing is.
func (j *schemaJudge) schema(schema any) string {
	document, ok := schema.(map[string]any)
	if !ok {
		return ""
	}
	draft, known := draftOf(document)
	if !known {
		return ""
	}
	if complaint := draft.judge(document); complaint != "" {
		_, said := document["$schema"]
		otherwise := !said && j.anyDraft() && draft07.judge(document) == ""
		if !otherwise && !mixesDrafts(document) {
			return complaint
		}
	}
	return brokenRef(document)
}

// anyDraft reports whether a schema that does not name its draft may be of an older one: it is JSON Schema 2020-12 since
// the version 2025-11-25 of MCP (SEP-1613), and was nobody's word before.
func (j *schemaJudge) anyDraft() bool {
	return j.peer.era != EraModern && j.peer.version < legacyVersions[0]
}

// schemaDraft is a version of JSON Schema.
type schemaDraft struct {
	name string
	meta func() *jsonschema.Schema // the schema of its schemas
}

// The drafts that can be judged.
var (
	draft04 = newDraft("draft-04", "http://json-schema.org/draft-04/schema")
	draft06 = newDraft("draft-06", "http://json-schema.org/draft-06/schema")
	draft07 = newDraft("draft-07", "http://json-schema.org/draft-07/schema")
	draft19 = newDraft("2019-09", "https://json-schema.org/draft/2019-09/schema")
	draft20 = newDraft("2020-12", "https://json-schema.org/draft/2020-12/schema")

	drafts = map[string]schemaDraft{
		"json-schema.org/draft-04/schema":      draft04,
		"json-schema.org/draft-06/schema":      draft06,
		"json-schema.org/draft-07/schema":      draft07,
		"json-schema.org/draft/2019-09/schema": draft19,
		"json-schema.org/draft/2020-12/schema": draft20,
		"json-schema.org/schema":               draft20,
	}
)

// newDraft returns the draft whose meta-schema goes by this address. The library has it embedded; it is compiled when
// it is first used.
func newDraft(name, address string) schemaDraft {
	return schemaDraft{name, sync.OnceValue(func() *jsonschema.Schema {
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(noLoader{})
		compiled := false
		compiler.UseRegexpEngine(func(pattern string) (jsonschema.Regexp, error) {
			if compiled {
				return anyText{}, nil
			}
			return regexp.Compile(pattern) // of the meta-schema's own
		})
		for _, format := range []string{"uri", "uri-reference"} {
			compiler.RegisterFormat(&jsonschema.Format{Name: format, Validate: func(any) error { return nil }})
		}
		meta := compiler.MustCompile(address)
		compiled = true
		return meta
	})}
}

// noLoader fetches nothing.
type noLoader struct{}

func (noLoader) Load(address string) (any, error) {
	return nil, fmt.Errorf("%s is not to be fetched", address)
}

// anyText takes the place of the patterns that strangers write: they are in ECMA 262's language, which Go's engine knows by
// half, and compiling them may take a hundred megabytes.
type anyText struct{}

func (anyText) String() string          { return "" }
func (anyText) MatchString(string) bool { return true }

// draftOf returns the draft of a schema, and false when it is one that we do not know.
func draftOf(document map[string]any) (schemaDraft, bool) {
	named, has := document["$schema"]
	if !has {
		return draft20, true
	}
	address, ok := named.(string)
	if !ok {
		return draft20, true // which says that this is wrong
	}
	address = strings.TrimSuffix(address, "#")
	address = strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://")
	d, known := drafts[address]
	return d, known
}

// judge says where a schema is not one of this draft, "" when it is.
func (d schemaDraft) judge(document map[string]any) string {
	err := d.meta().Validate(document)
	if err == nil {
		return ""
	}
	invalid, ok := err.(*jsonschema.ValidationError) //nolint:errorlint // the library returns it bare
	if !ok {
		return ""
	}
	where := deepestBlame(invalid, 0)
	pointer := ""
	var value any = document
	for _, part := range where {
		pointer += "/" + tidy(part, 60)
		value = childOf(value, part)
	}
	if pointer == "" {
		return "it is not JSON Schema " + d.name
	}
	return fmt.Sprintf("%s at %s is not JSON Schema %s", jsonWords(value, 60), clip(pointer, 200), d.name)
}

// deepestBlame returns the location that lies deepestBlame among those that a validation blames, the first of them in the order of
// names: the others are mostly the alternatives that were tried on the way.
func deepestBlame(e *jsonschema.ValidationError, depth int) []string {
	best := e.InstanceLocation
	if depth > maxFormDepth {
		return best
	}
	for _, cause := range e.Causes {
		at := deepestBlame(cause, depth+1)
		if len(at) > len(best) || len(at) == len(best) && slices.Compare(at, best) < 0 {
			best = at
		}
	}
	return best
}

func childOf(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

// mixesDrafts reports whether a part of a document names a draft of its own, by which the meta-schema of the whole does
// not go.
func mixesDrafts(document map[string]any) bool {
	mixed := false
	eachSchema(document, func(s subschema) {
		if _, ok := s.members["$schema"].(string); ok && !s.root {
			mixed = true
		}
	})
	return mixed
}

// brokenRef says which reference within the document leads nowhere, "" when there is none. References to other documents
// are not followed.
func brokenRef(document map[string]any) string {
	anchors := map[string]bool{}
	collectAnchors(document, anchors, 0)
	broken := ""
	eachSchema(document, func(s subschema) {
		for _, keyword := range []string{"$ref", "$dynamicRef"} {
			ref, ok := s.members[keyword].(string)
			if !ok || !strings.HasPrefix(ref, "#") || broken != "" {
				continue
			}
			if name, err := url.PathUnescape(ref[1:]); err == nil && anchors[name] {
				continue
			}
			if !leadsToSchema(ref, s.resource) && !leadsToSchema(ref, document) {
				broken = fmt.Sprintf("%s %s leads nowhere", keyword, jsonWords(ref, 100))
			}
		}
	})
	return broken
}

func leadsToSchema(ref string, document any) bool {
	target, err := lookUp(ref, document)
	switch target.(type) {
	case map[string]any, bool:
		return err == nil
	default:
		return false
	}
}

// collectAnchors collects the names that references may go by, wherever they stand: too many are no harm.
func collectAnchors(v any, anchors map[string]bool, depth int) {
	if depth > maxFormDepth {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v[keyword].(string); ok {
				anchors[name] = true
			}
		}
		for _, keyword := range []string{"$id", "id"} { // as up to draft-07
			if name, ok := v[keyword].(string); ok && strings.HasPrefix(name, "#") {
				anchors[name[1:]] = true
			}
		}
		for _, inner := range v {
			collectAnchors(inner, anchors, depth+1)
		}
	case []any:
		for _, inner := range v {
			collectAnchors(inner, anchors, depth+1)
		}
	}
}

// subschema is a schema within a document.
type subschema struct {
	members  map[string]any
	root     bool
	path     []string       // the names of the properties that lead to it, when it is reached by properties alone
	argument bool           // it is reached by properties alone, and is not the root
	resource map[string]any // what its references begin at: the nearest schema around it with an $id
}

// Keywords whose values hold schemas.
var (
	schemaKeywords = []string{
		"items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema",
	}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemaMaps  = []string{"patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// eachSchema calls visit for document and every schema in it, in an order that is always the same. What stands in enum,
// const, default or examples is no schema.
func eachSchema(document map[string]any, visit func(subschema)) {
	walkSchema(subschema{members: document, root: true, resource: document}, 0, visit)
}

func walkSchema(s subschema, depth int, visit func(subschema)) {
	if depth > maxFormDepth {
		return
	}
	if _, ok := s.members["$id"].(string); ok {
		s.resource = s.members
	}
	visit(s)
	below := func(v any, path []string) {
		members, ok := v.(map[string]any)
		if ok {
			walkSchema(subschema{members: members, resource: s.resource, path: path, argument: path != nil}, depth+1, visit)
		}
	}
	for _, name := range sortedNames(s.members["properties"]) {
		var path []string
		if s.root || s.argument {
			path = append(slices.Clip(s.path), name)
		}
		below(childOf(s.members["properties"], name), path)
	}
	for _, keyword := range schemaMaps {
		for _, name := range sortedNames(s.members[keyword]) {
			below(childOf(s.members[keyword], name), nil)
		}
	}
	for _, keyword := range schemaLists {
		list, _ := s.members[keyword].([]any)
		for _, v := range list {
			below(v, nil)
		}
	}
	for _, keyword := range schemaKeywords {
		below(s.members[keyword], nil)
	}
}

func sortedNames(v any) []string {
	members, _ := v.(map[string]any)
	return slices.Sorted(maps.Keys(members))
}
