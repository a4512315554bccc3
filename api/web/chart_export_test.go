package web

import (
	"bytes"
	"fmt"
)

// What tests of the drawings and of what strangers chose need to see.
var (
	ShellQuoted = shellQuoted
	Indented    = indented
)

// RenderPart renders one part of the endpoint's page in English.
func RenderPart(name string, of any) string {
	var b bytes.Buffer
	if err := templates["en"]()["endpoint"].ExecuteTemplate(&b, name, of); err != nil {
		panic(fmt.Errorf("part %s: %w", name, err))
	}
	return b.String()
}
