package web_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/api/web"
)

func TestASchemaIsReadable(t *testing.T) {
	tools, count, known := web.ToolsOf(toolList())
	if count != 2 || !known || len(tools) != 2 {
		t.Fatalf("got %d of %d tools, known %v", len(tools), count, known)
	}
	var got []string
	for _, p := range append(tools[0].Input, tools[0].Output...) {
		line := strings.Repeat("  ", p.Depth) + p.Name + ": " + p.Type.String()
		if p.Required {
			line += ", required"
		}
		if p.Allowed != "" {
			line += ", " + p.Allowed
		}
		got = append(got, line)
	}
	want := []string{
		"place: object, required", "  lat: number, required, minimum -90 · maximum 90", "  lon: number, required",
		"days: integer, minimum 1 · maximum 14 · default 3", "tags: array of string", `units: string, "metric", "imperial"`,
		"days: array of object", "  high: number or null",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if tools[1].Name != "alerts" || len(tools[1].Input) != 0 {
		t.Errorf("the other tool is %+v", tools[1])
	}
}

func TestAnyOfIsWorded(t *testing.T) {
	for schema, want := range map[string]string{
		`{"anyOf":[{"type":"string"},{"type":"null"},{"type":"string"}]}`: "string or null",
		`{"type":["integer","string"]}`:                                   "integer or string",
		`{"enum":[1]}`:                                                    "value",
		`{"properties":{}}`:                                               "object",
		`{"items":{"items":{"type":"string"},"type":"array"},"type":"array"}`: "array of array of string",
		`{}`: "anything", `true`: "anything", `[1]`: "anything", `{"type":7}`: "anything", `{"$ref":"#/nowhere"}`: "anything", `{"$ref":"https://a.example"}`: "anything",
	} {
		tools, _, _ := web.ToolsOf(fmt.Appendf(nil, `[{"inputSchema":{"properties":{"a":%s}},"name":"t"}]`, schema))
		if got := tools[0].Input[0].Type.String(); got != want {
			t.Errorf("%s: %q, want %q", schema, got, want)
		}
	}
}

// Strangers write these. None of them may cost more than a page may.
func TestHostileSchemasAreBounded(t *testing.T) {
	wide := make([]string, 3000)
	for i := range wide {
		wide[i] = fmt.Sprintf(`"p%d":{"type":"string","description":%q}`, i, strings.Repeat("x", 100))
	}
	branches := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/a"},`, 60), ",")
	for name, list := range map[string]string{
		"no list":     `{"a":1}`,
		"no tools":    `[1,null,"a",[],{}]`,
		"itself":      `[{"name":"t","inputSchema":{"$ref":"#"}},{"name":"u","inputSchema":{"properties":{"a":{"$ref":"#"}}}}]`,
		"wide":        `[{"name":"t","inputSchema":{"properties":{` + strings.Join(wide, ",") + `}}}]`,
		"exponential": `[{"name":"t","inputSchema":{"$defs":{"a":{"anyOf":[` + branches + `],"properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"},"z":{"$ref":"#/$defs/a"}}}},"properties":{"a":{"$ref":"#/$defs/a"}}}}]`,
		"deep":        `[{"name":"t","inputSchema":` + strings.Repeat(`{"properties":{"a":`, 2000) + `{}` + strings.Repeat(`}}`, 2000) + `}]`,
		"many":        `[` + strings.TrimSuffix(strings.Repeat(`{"name":"t","inputSchema":{"properties":{"a":{},"b":{},"c":{}}}},`, 3000), ",") + `]`,
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			tools, _, _ := web.ToolsOf([]byte(list))
			rows := 0
			for _, tool := range tools {
				rows += len(tool.Input) + len(tool.Output)
				web.RenderPart("tool", tool)
			}
			if took := time.Since(begin); len(tools) > 300 || rows > 4000 || took > 20*time.Second {
				t.Errorf("%d tools with %d properties in %s", len(tools), rows, took)
			}
		})
	}
}
