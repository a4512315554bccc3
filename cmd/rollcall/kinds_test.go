package main_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/alerts"
	"github.com/rollcallhq/rollcall/api"
)

// The api may not import alerts, and has the kinds of messages once more.
func TestTemplatesArePreviewedWithEveryKindOfMessage(t *testing.T) {
	var kinds []string
	for _, match := range regexp.MustCompile(`(?m)^\tKind\w+ +Kind = "(\w+)"`).FindAllStringSubmatch(readFile(t, "alerts/message.go"), -1) {
		kinds = append(kinds, match[1])
	}
	offered := api.PreviewKinds()
	for _, kind := range offered {
		if text, err := alerts.PreviewTemplate("{{.Kind}}", alerts.Kind(kind)); err != nil || text != kind {
			t.Errorf("a preview with %q = %q, %v", kind, text, err)
		}
	}
	slices.Sort(kinds)
	slices.Sort(offered)
	if diff := cmp.Diff(offered, kinds); diff != "" || len(kinds) == 0 {
		t.Errorf("kinds that the api offers (-got +those of alerts):\n%s", diff)
	}
}
