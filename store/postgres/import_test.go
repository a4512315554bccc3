package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/probe"
	"github.com/rollcallhq/rollcall/store"
	"github.com/rollcallhq/rollcall/store/postgres"
	"github.com/rollcallhq/rollcall/store/storetest"
)

func newImport(t testing.TB, url string) *postgres.Import {
	t.Helper()
	if _, _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	im, err := postgres.NewImport(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(im.Close)
	return im
}

func TestOneImportAtATime(t *testing.T) {
	url := storetest.Postgres(t)
	first := newImport(t, url)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if second, err := postgres.NewImport(ctx, url); err == nil {
		second.Close()
		t.Error("two imports into one database at once")
	} else if !errors.Is(err, postgres.ErrOccupied) {
		t.Errorf("a second import: error %v, want ErrOccupied", err)
	}
	first.Close()
	newImport(t, url)
}

func TestImportNeedsAConnectionOfItsOwn(t *testing.T) {
	url := storetest.Postgres(t)
	if im, err := postgres.NewImport(t.Context(), url+"&default_query_exec_mode=exec"); err == nil || !strings.Contains(err.Error(), "pooler") {
		if err == nil {
			im.Close()
		}
		t.Errorf("NewImport through a pooler: error %v, want it refused", err)
	}
}

func TestImportIntoWhatIsNotFree(t *testing.T) {
	url := storetest.Postgres(t)
	im := newImport(t, url)
	sql := openSQL(t, url)
	for _, test := range []struct{ before, want, after string }{
		{`INSERT INTO users VALUES ('u', 'ops', 'ops', '', 'admin', now())`, "it has users of its own", `DELETE FROM users`},
		{`INSERT INTO instances VALUES ('default', 'i', now() + interval '1 minute', now())`, "a service runs on it", `DELETE FROM instances`},
	} {
		if _, err := sql.ExecContext(t.Context(), test.before); err != nil {
			t.Fatal(err)
		}
		if _, err := im.Begin(t.Context(), "source"); !errors.Is(err, postgres.ErrOccupied) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Begin: error %v, want ErrOccupied and %q", err, test.want)
		}
		if _, err := sql.ExecContext(t.Context(), test.after); err != nil {
			t.Fatal(err)
		}
	}
	if resumed, err := im.Begin(t.Context(), "source"); err != nil || resumed {
		t.Errorf("Begin of an empty database = %v, %v, want a fresh start", resumed, err)
	}
	if resumed, err := im.Begin(t.Context(), "source"); err != nil || !resumed {
		t.Errorf("Begin of the same source = %v, %v, want it resumed", resumed, err)
	}
	if _, err := im.Begin(t.Context(), "another"); !errors.Is(err, postgres.ErrOccupied) {
		t.Errorf("Begin of another source: error %v, want ErrOccupied", err)
	}
	if err := im.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "not complete") {
		t.Errorf("Finish of what is not complete: error %v, want it refused", err)
	}
}

func TestImportRefusesWhatHasNoPlace(t *testing.T) {
	im := newImport(t, storetest.Postgres(t))
	if _, err := im.Begin(t.Context(), "source"); err != nil {
		t.Fatal(err)
	}
	for _, table := range store.CopyTables {
		batch := store.CopyBatch{After: "x"}
		switch {
		case table.Checks():
			batch.Checks = []store.Check{store.NewCheck("ep_none", "default", time.Now(), probe.Result{Verdict: probe.Up})}
		case table.Placed:
			row := make([]any, len(table.Columns))
			row[0], row[1], row[2] = "ep_none", "default", time.Now()
			batch.Rows = [][]any{row}
		case table.Name == "places":
			row := make([]any, len(table.Columns))
			row[0] = int64(1) << 40
			batch.Rows = [][]any{row}
		default:
			continue
		}
		if err := im.Put(t.Context(), table, batch); err == nil || !strings.Contains(err.Error(), "place") {
			t.Errorf("Put into %s: error %v, want one about the place", table.Name, err)
		}
		if after, rows, complete, err := im.Progress(t.Context(), table); err != nil || after != "" || rows != 0 || complete {
			t.Errorf("Progress of %s = %q, %d, %v, %v, want nothing", table.Name, after, rows, complete, err)
		}
	}
}
