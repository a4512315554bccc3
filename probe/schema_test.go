package probe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/probe/probetest"
)

const (
	newest = "2025-11-25"
	older  = "2025-06-18"
	modern = "2026-07-28"
)

// withInput is a tool with this inputSchema, beside its type.
func withInput(members string) string {
	return `{"name":"t","inputSchema":{"type":"object"` + members + `}}`
}

func TestSoundSchemas(t *testing.T) {
	for name, tc := range map[string]struct{ tool, version string }{
		"no properties":                             {withInput(``), newest},
		"a reference within":                        {withInput(`,"properties":{"a":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{"type":"string"}}`), newest},
		"a reference to all":                        {withInput(`,"properties":{"a":{"$ref":"#"}}`), newest},
		"an anchor":                                 {withInput(`,"properties":{"a":{"$ref":"#here"}},"$defs":{"a":{"$anchor":"here"}}`), newest},
		"an anchor of draft-07":                     {withInput(`,"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"$ref":"#here"}},"definitions":{"a":{"$id":"#here"}}`), newest},
		"a resource within":                         {withInput(`,"properties":{"a":{"$id":"https://example.com/a","properties":{"b":{"$ref":"#/$defs/c"}},"$defs":{"c":{}}}}`), newest},
		"a reference elsewhere cannot be judged":    {withInput(`,"properties":{"a":{"$ref":"https://127.0.0.1:1/a.json"}}`), newest},
		"nor one to a file":                         {withInput(`,"properties":{"a":{"$ref":"file:///etc/passwd"}}`), newest},
		"nor a dialect that nobody knows":           {withInput(`,"$schema":"https://example.com/dialect","properties":7`), newest},
		"an older dialect that is named":            {withInput(`,"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{},{}]}}`), newest},
		"the oldest dialect":                        {withInput(`,"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}`), newest},
		"an older dialect in an older protocol":     {withInput(`,"properties":{"a":{"items":[{},{}]}}`), older},
		"a part of another dialect":                 {withInput(`,"properties":{"a":{"$id":"https://example.com/a","$schema":"http://json-schema.org/draft-07/schema#","items":[{},{}]}}`), newest},
		"a pattern that Go does not know":           {withInput(`,"properties":{"a":{"pattern":"^(?!x)\\u{1F600}(?<=y)\\1$"}}`), newest},
		"a pattern that Go does not know, draft-07": {withInput(`,"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"pattern":"^(?!x)"}},"patternProperties":{"(?=z)":{}}`), newest},
		"a costly pattern":                          {withInput(`,"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"pattern":"((x{1000}){1000}){1000}"}}`), newest},
		"what looks like a reference in a value":    {withInput(`,"properties":{"a":{"default":{"$ref":"#/nowhere"},"enum":[{"$ref":"#/nowhere"}]},"$ref":{"type":"string"}}`), newest},
		"properties with the names of keywords":     {withInput(`,"properties":{"properties":{"type":"string"},"required":{"type":"boolean"},"$ref":{},"x-mcp-header":{}}`), modern},
		"keywords of one's own":                     {withInput(`,"x-order":[1],"properties":{"a":{"nullable":true,"example":7}}`), newest},
		"numbers beyond all bounds":                 {withInput(`,"properties":{"a":{"minimum":-1e999999999,"maximum":1e999999999}}`), newest},
		"an argument in a header":                   {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"properties":{"c":{"type":["integer","null"],"x-mcp-header":"Zone"}}}}`), modern},
		"headers mean nothing in the older era":     {withInput(`,"properties":{"a":{"x-mcp-header":""}}`), newest},
		"any outputSchema in the modern era":        {`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`, modern},
	} {
		t.Run(name, func(t *testing.T) {
			if complaint, unjudged := probe.JudgeTool(tc.tool, eraOf(tc.version), tc.version); complaint != "" || unjudged {
				t.Errorf("complaint %q, unjudged %v", complaint, unjudged)
			}
		})
	}
}

func eraOf(version string) probe.Era {
	if version == modern {
		return probe.EraModern
	}
	return probe.EraLegacy
}

func TestBrokenSchemas(t *testing.T) {
	for name, tc := range map[string]struct{ tool, version, want string }{
		"an unknown type":                 {withInput(`,"properties":{"a":{"type":"strin"}}`), newest, `t has an invalid inputSchema: "strin" at /properties/a/type is not JSON Schema 2020-12`},
		"required in a property":          {withInput(`,"properties":{"a":{"type":"string","required":true}}`), newest, `true at /properties/a/required is`},
		"required as a property":          {withInput(`,"properties":{"a":{},"required":["a"]}`), newest, `an array at /properties/required is`},
		"properties are a list":           {withInput(`,"properties":[]`), newest, `an array at /properties is`},
		"required twice":                  {withInput(`,"required":["a","a"]`), newest, `an array at /required is`},
		"an older dialect":                {withInput(`,"properties":{"a":{"items":[{},{}]}}`), newest, `an array at /properties/a/items is`},
		"the oldest in older protocols":   {withInput(`,"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}`), older, `true at /properties/a/exclusiveMinimum`},
		"a negative length":               {withInput(`,"properties":{"a":{"minLength":-1}}`), newest, `-1 at /properties/a/minLength`},
		"broken by its own dialect":       {withInput(`,"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"type":7}}`), newest, `7 at /properties/a/type is not JSON Schema draft-07`},
		"$schema is a number":             {withInput(`,"$schema":7`), newest, `7 at /$schema`},
		"a reference to nowhere":          {withInput(`,"properties":{"a":{"$ref":"#/$defs/a"}}`), newest, `$ref "#/$defs/a" leads nowhere`},
		"an anchor that is none":          {withInput(`,"properties":{"a":{"items":{"$ref":"#here"}}}`), newest, `$ref "#here" leads nowhere`},
		"a reference to no schema":        {withInput(`,"required":["a"],"properties":{"a":{"$ref":"#/required"}}`), newest, `leads nowhere`},
		"an outputSchema":                 {`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":7}}`, newest, `t has an invalid outputSchema: 7 at /properties`},
		"an outputSchema of another type": {`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"array"}}`, newest, `t has an outputSchema that is not of type "object"`},
		"a member twice":                  {`{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string","type":"number"}}}}`, newest, `t has the member "type" twice in one object`},

		"an empty header":       {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":""}}`), modern, `x-mcp-header: "" is not a token`},
		"a header with a space": {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"My Region"}}`), modern, `is not a token`},
		"with a colon":          {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"Region:Primary"}}`), modern, `is not a token`},
		"beyond ASCII":          {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"Région"}}`), modern, `is not a token`},
		"with a line break":     {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"Region\r\nX: 1"}}`), modern, `is not a token`},
		"no string":             {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":true}}`), modern, `is not a token`},
		"twice":                 {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"string","x-mcp-header":"Region"}}`), modern, `comes twice`},
		"twice but for case":    {withInput(`,"properties":{"a":{"type":"string","x-mcp-header":"MyField"},"b":{"type":"string","x-mcp-header":"myfield"}}`), modern, `comes twice`},
		"on an object":          {withInput(`,"properties":{"a":{"type":"object","x-mcp-header":"Data"}}`), modern, `no string, integer or boolean`},
		"on an array":           {withInput(`,"properties":{"a":{"type":"array","items":{"type":"string"},"x-mcp-header":"Data"}}`), modern, `no string, integer or boolean`},
		"on null":               {withInput(`,"properties":{"a":{"type":"null","x-mcp-header":"Data"}}`), modern, `no string, integer or boolean`},
		"on a number":           {withInput(`,"properties":{"a":{"type":"number","x-mcp-header":"Data"}}`), modern, `no string, integer or boolean`},
		"on items":              {withInput(`,"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"Data"}}}`), modern, `on something else than an argument`},
		"on an alternative":     {withInput(`,"properties":{"a":{"anyOf":[{"properties":{"b":{"type":"string","x-mcp-header":"Data"}}}]}}`), modern, `on something else than an argument`},
		"on the whole":          {withInput(`,"x-mcp-header":"Data"`), modern, `on something else than an argument`},
	} {
		t.Run(name, func(t *testing.T) {
			complaint, unjudged := probe.JudgeTool(tc.tool, eraOf(tc.version), tc.version)
			if !strings.Contains(complaint, tc.want) || !strings.HasPrefix(complaint, "t has ") || unjudged {
				t.Errorf("complaint %q, want %q; unjudged %v", complaint, tc.want, unjudged)
			}
		})
	}
}

func TestSchemasThatAreTooLargeAreNotJudged(t *testing.T) {
	for name, tool := range map[string]string{
		"in bytes":  withInput(`,"properties":7,"description":"` + strings.Repeat("x", 256<<10) + `"`),
		"in values": withInput(`,"properties":7,"enum":[0` + strings.Repeat(",0", 20_000) + `]`),
		"in depth":  withInput(`,"properties":` + strings.Repeat(`{"items":`, 110) + `7` + strings.Repeat(`}`, 110)),
	} {
		if _, unjudged := probe.JudgeTool(tool, probe.EraLegacy, newest); !unjudged {
			t.Errorf("%s: judged", name)
		}
	}
}

func FuzzJudgeTool(f *testing.F) {
	f.Add(withInput(`,"properties":{"a":{"$ref":"#/$defs/a","x-mcp-header":"A","type":["string","null"]}},"$defs":{"a":{"$anchor":"x","allOf":[true,{"$ref":"#x"}]}}`))
	f.Add(`{"name":"t","inputSchema":{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"#a","dependencies":{"a":["b"]}},"outputSchema":{"$id":"x:y","$ref":"#/a~1b/0"}}`)
	f.Fuzz(func(t *testing.T, tool string) {
		for _, version := range []string{modern, newest, older} {
			complaint, unjudged := probe.JudgeTool(tool, eraOf(version), version)
			again, _ := probe.JudgeTool(tool, eraOf(version), version)
			if complaint != again || len(complaint) > 2*probe.MaxMessage {
				t.Fatalf("%q: %q, and another time %q, unjudged %v", tool, complaint, again, unjudged)
			}
		}
	})
}

// typicalTools are tools as servers of real use have them: a few arguments each.
func typicalTools(n int) []string {
	tools := make([]string, n)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"issues_%d","description":"Lists the issues of a repository, newest first.","inputSchema":{"type":"object","properties":{
			"owner":{"type":"string","description":"Who owns the repository"},"repo":{"type":"string","description":"Its name"},
			"page":{"type":"integer","minimum":1,"default":1},"labels":{"type":"array","items":{"type":"string"}},
			"state":{"type":"string","enum":["open","closed","all"]},"since":{"anyOf":[{"type":"string","format":"date-time"},{"type":"null"}],"default":null}},
			"required":["owner","repo"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`, i)
	}
	return tools
}

// BenchmarkTools measures what a hundred tools cost a check: when the list is the one that was found sound before, and when
// its schemas have to be judged.
func BenchmarkTools(b *testing.B) {
	s := probetest.MCP(b, probetest.ToolList(typicalTools(100)...))
	target := probe.Target{Kind: probe.KindMCP, URL: s.URL, Era: probe.EraModern}
	first := prober().Probe(b.Context(), target)
	if first.Verdict != probe.Up || first.Memory.SoundTools == "" {
		b.Fatalf("%s %+v", first.Verdict, first.Failure)
	}
	for name, memory := range map[string]probe.Memory{"known": first.Memory, "unknown": {}} {
		target.Memory = memory
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := prober().Probe(b.Context(), target); r.Verdict != probe.Up {
					b.Fatalf("%s %+v", r.Verdict, r.Failure)
				}
			}
		})
	}
}
