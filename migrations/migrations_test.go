package migrations_test

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/rollcallhq/rollcall/migrations"
)

func TestBothDatabasesTakeTheSameSteps(t *testing.T) {
	if diff := cmp.Diff(names(t, migrations.SQLite), names(t, migrations.Postgres)); diff != "" {
		t.Errorf("names of steps (-sqlite +postgres):\n%s", diff)
	}
}

func names(t *testing.T, fsys fs.FS) []string {
	t.Helper()
	all, err := migrations.List(fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no migration is embedded")
	}
	var names []string
	for _, m := range all {
		if strings.TrimSpace(m.SQL) == "" {
			t.Errorf("migration %s is empty", m.Name)
		}
		names = append(names, m.Name)
	}
	return names
}

func TestAGapInTheNumbersIsRefused(t *testing.T) {
	for _, fsys := range []fstest.MapFS{
		{"0001_a.sql": {}, "0003_c.sql": {}},
		{"0001_a.sql": {}, "0001_b.sql": {}},
		{"a.sql": {}},
	} {
		if all, err := migrations.List(fsys); err == nil {
			t.Errorf("List(%v) = %v, want an error", fsys, all)
		}
	}
}

func TestADatabaseAheadOfTheProgramIsRefused(t *testing.T) {
	all := []migrations.Migration{{Version: 1}, {Version: 2}}
	if _, err := migrations.Pending(all, 3); err == nil || !strings.Contains(err.Error(), "newer rollcall") {
		t.Errorf("Pending at version 3 of 2: error %v, want one that says to run a newer rollcall", err)
	}
	pending, err := migrations.Pending(all, 1)
	if err != nil || len(pending) != 1 || pending[0].Version != 2 {
		t.Errorf("Pending at version 1 of 2 = %v, %v, want version 2", pending, err)
	}
}
