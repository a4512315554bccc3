package web_test

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
)

// preview keeps the rendered samples for somebody to look at in a browser.
var preview = flag.String("preview", "", "directory to write every sample page to, with the static files beside")

func TestSamplesCanBeLookedAt(t *testing.T) {
	dir := *preview
	if dir == "" {
		dir = t.TempDir()
	}
	for name, page := range samples() {
		if err := os.WriteFile(filepath.Join(dir, name+".html"), []byte(render(t, page)), 0o644); err != nil {
			t.Error(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "static"), os.DirFS("static")); err != nil && !os.IsExist(err) {
		t.Error(err)
	}
}
