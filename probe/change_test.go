package probe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/probe"
)

// tool returns a contract of one tool with these members.
func contractOf(members string) []byte { return []byte(`[{"name":"t",` + members + `}]`) }

func input(schema string) []byte  { return contractOf(`"inputSchema":` + schema) }
func output(schema string) []byte { return contractOf(`"outputSchema":` + schema) }

// changeLines shows changes as "rank kind path".
func changeLines(changes []probe.Change) []string {
	var lines []string
	for _, c := range changes {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Rank, c.Kind, c.Path)))
	}
	return lines
}

func TestDiffContracts(t *testing.T) {
	object := func(properties string) []byte { return input(`{"properties":{` + properties + `},"type":"object"}`) }
	result := func(properties string) []byte { return output(`{"properties":{` + properties + `},"type":"object"}`) }
	for name, tc := range map[string]struct {
		before, after []byte
		want          []string
	}{
		"nothing":             {object(`"a":{}`), object(`"a":{}`), nil},
		"a tool is gone":      {[]byte(`[{"name":"a"},{"name":"b"}]`), []byte(`[{"name":"b"}]`), []string{"breaking tool_removed"}},
		"a tool came":         {[]byte(`[]`), []byte(`[{"name":"b"}]`), []string{"info tool_added"}},
		"one of two is gone":  {[]byte(`[{"name":"b"},{"name":"b"}]`), []byte(`[{"name":"b"}]`), []string{"breaking tool_removed"}},
		"another description": {contractOf(`"description":"a"`), contractOf(`"description":"b"`), []string{"info description_changed /description"}},
		"another title":       {contractOf(`"title":"a"`), contractOf(`"x":1`), []string{"info title_changed /title"}},
		"other execution":     {contractOf(`"execution":{}`), contractOf(`"execution":{"taskSupport":"required"}`), []string{"info schema_changed /execution"}},

		"an argument is gone": {object(`"a":{},"b":{}`), object(`"b":{}`), []string{"breaking property_removed /inputSchema/properties/a"}},
		"an argument more":    {object(`"a":{}`), object(`"a":{},"b":{}`), []string{"info optional_added /inputSchema/properties/b"}},
		"a required argument more": {input(`{"properties":{}}`), input(`{"properties":{"a":{}},"required":["a"]}`),
			[]string{"breaking required_added /inputSchema/properties/a"}},
		"required all of a sudden": {input(`{"properties":{"a":{}}}`), input(`{"properties":{"a":{}},"required":["a"]}`),
			[]string{"breaking required_added /inputSchema/properties/a"}},
		"required no more": {input(`{"properties":{"a":{}},"required":["a"]}`), input(`{"properties":{"a":{}}}`),
			[]string{"info required_removed /inputSchema/properties/a"}},
		"a required argument is gone": {input(`{"properties":{"a":{}},"required":["a"]}`), input(`{"properties":{}}`),
			[]string{"breaking property_removed /inputSchema/properties/a"}},
		"another type":           {object(`"a":{"type":"string"}`), object(`"a":{"type":"number"}`), []string{"breaking type_changed /inputSchema/properties/a/type"}},
		"a type less":            {object(`"a":{"type":["string","null"]}`), object(`"a":{"type":"string"}`), []string{"breaking type_changed /inputSchema/properties/a/type"}},
		"a type more":            {object(`"a":{"type":"string"}`), object(`"a":{"type":["null","string"]}`), []string{"info type_widened /inputSchema/properties/a/type"}},
		"an integer is a number": {object(`"a":{"type":"integer"}`), object(`"a":{"type":"number"}`), []string{"info type_widened /inputSchema/properties/a/type"}},
		"any type":               {object(`"a":{"type":"string"}`), object(`"a":{}`), []string{"info type_widened /inputSchema/properties/a/type"}},
		"nothing will do":        {object(`"a":{}`), object(`"a":false`), []string{"breaking type_changed /inputSchema/properties/a/type"}},
		"anything will do":       {object(`"a":false`), object(`"a":true`), []string{"info type_widened /inputSchema/properties/a/type"}},
		"optional by anyOf": {object(`"a":{"type":"string"}`), object(`"a":{"anyOf":[{"type":"string"},{"type":"null"}]}`),
			[]string{"info type_widened /inputSchema/properties/a/type"}},
		"alternatives in another order": {object(`"a":{"anyOf":[{"type":"string"},{"type":"null"}]}`), object(`"a":{"anyOf":[{"type":"null"},{"type":"string"}]}`),
			[]string{"info schema_changed"}},
		"within an alternative": {object(`"a":{"anyOf":[{"enum":["x","y"],"type":"string"},{"type":"null"}]}`), object(`"a":{"anyOf":[{"enum":["x"],"type":"string"},{"type":"null"}]}`),
			[]string{"breaking enum_narrowed /inputSchema/properties/a/anyOf/enum"}},
		"a value less": {object(`"a":{"enum":["x","y"]}`), object(`"a":{"enum":["x"]}`), []string{"breaking enum_narrowed /inputSchema/properties/a/enum"}},
		"a value more": {object(`"a":{"enum":["x"]}`), object(`"a":{"enum":["x","y"]}`), []string{"info enum_widened /inputSchema/properties/a/enum"}},
		"another value": {object(`"a":{"const":1}`), object(`"a":{"const":2}`),
			[]string{"breaking enum_narrowed /inputSchema/properties/a/enum", "info enum_widened /inputSchema/properties/a/enum"}},
		"limited":   {object(`"a":{}`), object(`"a":{"enum":[1]}`), []string{"breaking enum_narrowed /inputSchema/properties/a/enum"}},
		"unlimited": {object(`"a":{"enum":[1]}`), object(`"a":{}`), []string{"info enum_widened /inputSchema/properties/a/enum"}},
		"in items": {object(`"a":{"items":{"type":"string"}}`), object(`"a":{"items":{"type":"number"}}`),
			[]string{"breaking type_changed /inputSchema/properties/a/items/type"}},
		"in any other property": {object(`"a":{"additionalProperties":{"type":"string"}}`), object(`"a":{"additionalProperties":{"type":"number"}}`),
			[]string{"breaking type_changed /inputSchema/properties/a/additionalProperties/type"}},
		"nested": {object(`"a":{"properties":{"x/y~":{}}}`), object(`"a":{"properties":{}}`),
			[]string{"breaking property_removed /inputSchema/properties/a/properties/x~1y~0"}},
		"a description within": {object(`"a":{"description":"x"}`), object(`"a":{"description":"y"}`), []string{"info description_changed /inputSchema/properties/a/description"}},
		"anything else":        {object(`"a":{"minLength":1}`), object(`"a":{"minLength":2}`), []string{"info schema_changed /inputSchema/properties/a/minLength"}},

		"behind a reference, told once": {input(`{"$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}}}`),
			input(`{"$defs":{"d":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/d"},"b":{"$ref":"#/$defs/d"}}}`),
			[]string{"breaking type_changed /inputSchema/properties/a/type"}},
		"a reference in place of its target": {input(`{"properties":{"a":{"type":"string"}}}`), input(`{"$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d"}}}`),
			[]string{"info schema_changed"}},
		"a definition that nothing uses": {input(`{"$defs":{"d":{"type":"string"}}}`), input(`{"$defs":{"d":{"type":"number"}}}`), []string{"info schema_changed"}},
		"references in circles": {input(`{"properties":{"next":{"$ref":"#"}},"type":"object"}`), input(`{"properties":{"next":{"$ref":"#"},"v":{}},"type":"object"}`),
			[]string{"info optional_added /inputSchema/properties/next/properties/v", "info optional_added /inputSchema/properties/v"}},
		"a reference elsewhere is compared as it is written": {object(`"a":{"$ref":"https://example.com/a"}`), object(`"a":{"$ref":"https://example.com/b"}`),
			[]string{"info schema_changed /inputSchema/properties/a/$ref"}},

		"only reads no more":                   {contractOf(`"annotations":{"readOnlyHint":true}`), contractOf(`"annotations":{}`), []string{"warning annotations_changed /annotations/readOnlyHint"}},
		"may destroy":                          {contractOf(`"annotations":{"destructiveHint":false}`), contractOf(`"annotations":{"destructiveHint":true}`), []string{"warning annotations_changed /annotations/destructiveHint"}},
		"says nothing of destruction any more": {contractOf(`"annotations":{"destructiveHint":false}`), contractOf(`"x":1`), []string{"warning annotations_changed /annotations/destructiveHint"}},
		"said nothing of destruction":          {contractOf(`"annotations":{}`), contractOf(`"annotations":{"destructiveHint":true}`), []string{"info annotations_changed /annotations"}},
		"another hint":                         {contractOf(`"annotations":{"openWorldHint":false}`), contractOf(`"annotations":{"openWorldHint":true}`), []string{"info annotations_changed /annotations"}},

		"a result less":           {result(`"a":{},"b":{}`), result(`"b":{}`), []string{"breaking output_changed /outputSchema/properties/a"}},
		"a result more":           {result(`"a":{}`), result(`"a":{},"b":{}`), []string{"info output_changed /outputSchema/properties/b"}},
		"a result of other type":  {result(`"a":{"type":"string"}`), result(`"a":{"type":"number"}`), []string{"breaking output_changed /outputSchema/properties/a/type"}},
		"a result of fewer types": {result(`"a":{"type":["null","string"]}`), result(`"a":{"type":"string"}`), []string{"info output_changed /outputSchema/properties/a/type"}},
		"a result of more types":  {result(`"a":{"type":"string"}`), result(`"a":{"type":["null","string"]}`), []string{"breaking output_changed /outputSchema/properties/a/type"}},
		"no word on results":      {output(`{}`), contractOf(`"x":1`), []string{"breaking output_changed /outputSchema"}},
		"a word on results":       {contractOf(`"x":1`), output(`{}`), []string{"info output_changed /outputSchema"}},

		"the most serious first": {[]byte(`[{"annotations":{"readOnlyHint":true},"name":"a"},{"name":"b"}]`), []byte(`[{"name":"a"},{"name":"c"}]`),
			[]string{"breaking tool_removed", "warning annotations_changed /annotations/readOnlyHint", "info tool_added"}},
	} {
		t.Run(name, func(t *testing.T) {
			changes, err := probe.DiffContracts(tc.before, tc.after)
			if diff := cmp.Diff(tc.want, changeLines(changes)); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestChangesAreWorded(t *testing.T) {
	before := `[{"inputSchema":{"properties":{"filter":{"properties":{"tags":{"items":{"enum":["a","b"],"type":"string"},"type":"array"}}}}},"name":"search"}]`
	after := strings.ReplaceAll(before, `["a","b"]`, `["b"]`)
	changes, err := probe.DiffContracts([]byte(before), []byte(after))
	want := []probe.Change{{
		Rank: probe.RankBreaking, Kind: probe.EnumNarrowed, Tool: "search",
		Path: "/inputSchema/properties/filter/properties/tags/items/enum", Message: `argument "filter.tags[]" must no longer be "a"`,
	}}
	if diff := cmp.Diff(want, changes); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	raw, err := json.Marshal(changes[0])
	if want := `{"rank":"breaking","kind":"enum_narrowed","tool":"search","path":"/inputSchema/properties/filter/properties/tags/items/enum","message":"argument \"filter.tags[]\" must no longer be \"a\""}`; err != nil || string(raw) != want {
		t.Errorf("as JSON: %s, %v", raw, err)
	}
}

func TestWhatIsNoContractCannotBeCompared(t *testing.T) {
	for _, bad := range []string{``, `{}`, `[1]`, `[{"name":"a"}`, `null x`} {
		if _, err := probe.DiffContracts([]byte(bad), []byte(`[]`)); err == nil {
			t.Errorf("%q: no error", bad)
		}
		if _, err := probe.DiffContracts([]byte(`[]`), []byte(bad)); err == nil {
			t.Errorf("after %q: no error", bad)
		}
	}
}

func TestManyChangesAreCutShort(t *testing.T) {
	contract := func(first, n int, form string) []byte {
		var tools []string
		for i := range n {
			tools = append(tools, fmt.Sprintf(form, first+i))
		}
		return []byte("[" + strings.Join(tools, ",") + "]")
	}
	old := contract(0, 150, `{"name":"old-%d"}`)
	recent := contract(0, 100, `{"name":"recent-%d"}`)
	changes, err := probe.DiffContracts(old, recent)
	if err != nil || len(changes) != 201 {
		t.Fatalf("%d changes, %v; want 201", len(changes), err)
	}
	if changes[149].Kind != probe.ToolRemoved || changes[150].Kind != probe.ToolAdded {
		t.Errorf("the tools that are gone do not come first: %+v", changes[149:151])
	}
	if last := changes[200]; last.Kind != probe.MoreChanges || last.Rank != probe.RankInfo || last.Message != "and 50 more changes" {
		t.Errorf("the last is %+v", last)
	}
	changes, err = probe.DiffContracts(contract(0, 30_000, `{"name":"%d"}`), []byte(`[]`))
	if last := changes[len(changes)-1]; err != nil || last.Rank != probe.RankBreaking || last.Message != "and 29800 more changes" {
		t.Errorf("%v, the last is %+v", err, last)
	}
}

// References may be laid so that a schema of a few hundred bytes unfolds into millions.
func TestSchemasThatUnfoldAreComparedInBoundedTime(t *testing.T) {
	fan := func(leaf string) []byte {
		var defs []string
		for i := range 60 {
			defs = append(defs, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
		}
		defs = append(defs, `"d60":{"type":"`+leaf+`"}`)
		return input(`{"$defs":{` + strings.Join(defs, ",") + `},"$ref":"#/$defs/d0"}`)
	}
	changes, err := probe.DiffContracts(fan("string"), fan("number"))
	if err != nil || !slices.ContainsFunc(changes, func(c probe.Change) bool { return c.Kind == probe.TypeChanged }) {
		t.Errorf("%v, %v", changeLines(changes), err)
	}
	deep := func(leaf string) []byte {
		return input(strings.Repeat(`{"items":`, 300) + `{"type":"` + leaf + `"}` + strings.Repeat(`}`, 300))
	}
	changes, err = probe.DiffContracts(deep("string"), deep("number"))
	if err != nil || len(changes) != 1 || changes[0].Kind != probe.SchemaChanged || !strings.Contains(changes[0].Message, "too much") {
		t.Errorf("%+v, %v", changes, err)
	}
	wide := func(leaf string) []byte {
		return input(`{"$defs":{"d":{"x":[` + strings.Repeat(`"0123456789",`, 12_000) + `1]}},"properties":{"` + leaf + `":{}}}`)
	}
	if _, err := probe.DiffContracts(wide("a"), wide("b")); err != nil {
		t.Error(err)
	}
}

func FuzzDiffContracts(f *testing.F) {
	f.Add([]byte(`[{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/d"}},"$defs":{"d":{"anyOf":[{"type":"null"},{"enum":[1]}]}}}}]`),
		[]byte(`[{"name":"a","inputSchema":{"type":["object"],"properties":{"x":{"$ref":"#/properties/x"},"y":false},"required":["y",1]}},{"name":"a"}]`))
	f.Add([]byte(`[{"name":"a","annotations":{"readOnlyHint":true},"outputSchema":{"items":{"oneOf":[true,{}]}}}]`), []byte(`[{"name":"a","annotations":[],"outputSchema":{"items":{}}}]`))
	f.Add([]byte(`[]`), []byte(`[{"name":7}]`))
	f.Add([]byte("\xea"), []byte("\xea"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		changes, err := probe.DiffContracts(before, after)
		if same, _ := probe.DiffContracts(before, before); len(same) > 0 {
			t.Fatalf("%q differs from itself: %v", before, same)
		}
		if err != nil || bytes.Equal(before, after) {
			return
		}
		if len(changes) == 0 && !sameTools(before, after) {
			t.Fatalf("no word on what changed from %q to %q", before, after)
		}
		again, _ := probe.DiffContracts(before, after)
		if diff := cmp.Diff(changes, again); diff != "" || len(changes) > 201 {
			t.Fatalf("%d changes, and another time others: %s", len(changes), diff)
		}
		if !slices.IsSortedFunc(changes, func(a, b probe.Change) int { return order(a.Rank) - order(b.Rank) }) {
			t.Fatalf("not in order: %v", changeLines(changes))
		}
		for _, c := range changes {
			if c.Message == "" || len(c.Message) > probe.MaxMessage {
				t.Fatalf("a message of %d bytes", len(c.Message))
			}
		}
	})
}

func order(r probe.Rank) int {
	return slices.Index([]probe.Rank{probe.RankBreaking, probe.RankWarning, probe.RankInfo}, r)
}

// sameTools reports whether two contracts hold the same tools, in whatever order.
func sameTools(before, after []byte) bool {
	var a, b []json.RawMessage
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil {
		return false
	}
	byText := func(a, b json.RawMessage) int { return strings.Compare(string(a), string(b)) }
	slices.SortFunc(a, byText)
	slices.SortFunc(b, byText)
	return slices.EqualFunc(a, b, func(a, b json.RawMessage) bool { return string(a) == string(b) })
}
