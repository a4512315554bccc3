package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rollcallhq/rollcall/probe/probetest"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func TestBackupAndRestoreBesideAService(t *testing.T) {
	t.Parallel()
	server := probetest.MCP(t)
	path := storetest.SQLite(t)
	rollcall := serveInstance(t, nil, "--database", path, "--allow-private", "127.0.0.0/8")
	rollcall.call("POST", "/api/v1/endpoints", object{
		"name": "Weather", "url": server.URL, "schedule": "@every 1s", "timeout": "1s",
		"headers": []object{{"name": "Authorization", "value": "s3cret", "secret": true}},
	}, 201, nil)
	beside := openSQL(t, "sqlite", path+"?_query_only=1")
	rollcall.await("some checks", func() bool { return countChecks(t, beside) >= 3 })

	before := countChecks(t, beside)
	saved := filepath.Join(t.TempDir(), "saved.db")
	code, output := runBinary(t, nil, "backup", "--database", path, saved)
	after := countChecks(t, beside)
	if code != 0 || !strings.Contains(output, "1 endpoints") || !strings.Contains(output, path+".key") {
		t.Fatalf("exit code %d: %s", code, output)
	}
	if n := countChecks(t, openSQL(t, "sqlite", saved)); n < before || n > after {
		t.Errorf("%d checks were saved, want those that were there: from %d to %d", n, before, after)
	}
	var whole string
	if err := openSQL(t, "sqlite", saved).QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&whole); err != nil || whole != "ok" {
		t.Errorf("integrity of what was saved: %s, %v", whole, err)
	}

	args := []string{"restore", "--database", path, "--force", saved}
	if code, output := runBinary(t, nil, args...); code != 1 || !strings.Contains(output, "stop it first") {
		t.Errorf("restore beside a service: exit code %d, want it refused: %s", code, output)
	}
	rollcall.await("checks to go on", func() bool { return countChecks(t, beside) > after })
	if err := beside.Close(); err != nil {
		t.Fatal(err)
	}
	rollcall.kill() // its last changes stand in the log

	if code, output := runBinary(t, nil, args...); code != 0 || !strings.Contains(output, fmt.Sprintf("The key file %s.key is that of what was saved", path)) {
		t.Fatalf("restore: exit code %d: %s", code, output)
	}
	kept, err := filepath.Glob(path + ".before-restore-*")
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept %v, %v, want what was there", kept, err)
	}
	if n := countChecks(t, openSQL(t, "sqlite", kept[0])); n <= after {
		t.Errorf("%d checks in what was there, want more than %d", n, after)
	}
	rollcall.start()
	if rollcall.status("weather") == "" {
		t.Error("the endpoint is not there")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the restored file has mode %v, %v, want 600", info.Mode(), err)
	}
}
