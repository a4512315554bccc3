package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCommandsAreSplitAsAShellWould(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
	}{
		{"npx -y server", []string{"npx", "-y", "server"}},
		{"  a \t b\n", []string{"a", "b"}},
		{`sh -c 'echo "$HOME" | cat'`, []string{"sh", "-c", `echo "$HOME" | cat`}},
		{`a "b c" ''`, []string{"a", "b c", ""}},
		{`a "say \"hi\" \n"`, []string{"a", `say "hi" \n`}},
		{`my\ program x`, []string{"my program", "x"}},
		{`--name=weather' 'report`, []string{"--name=weather report"}},
	} {
		got, err := splitCommand(c.text)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

func TestCommandsThatCannotBeSplitSayWhy(t *testing.T) {
	for text, want := range map[string]string{
		"":          "names no program",
		"  ":        "names no program",
		`a "b`:      `has no closing "`,
		`a 'b`:      "has no closing '",
		`a \`:       "ends with a backslash",
		`a "b\"`:    `has no closing "`,
		"'' ' '' x": "has no closing '",
	} {
		if _, err := splitCommand(text); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
