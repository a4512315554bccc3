//go:build unix

package alerts_test

import (
	"context"
	"path"
	"runtime"
	"slices"
	"strings"

	"modernc.org/sqlite"
)

// SQLite runs within the process that is to be killed. There the places are told by which functions of the store call: the
// context of a call is asked before each statement and while it runs, hooks are called before each row that is written and before
// each commit.

// stations are the methods of the store that a check passes on its way to a settled notice.
var stations = []string{"Record", "LeaseNotices", "SettleNotice"}

// whereInSQLite returns the station at which the goroutine of the caller is, and the step in it, which is the function that has a
// statement run. It reports false elsewhere than on the way.
func whereInSQLite() (station, step string, ok bool) {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		name, inStore := strings.CutPrefix(f.Function, "github.com/rollcallhq/rollcall/store/sqlite.")
		if file := path.Base(f.File); !inStore || file == "sqlite.go" || file == "row.go" { // these run anybody's statements
			continue
		}
		station, _, _ = strings.Cut(strings.TrimPrefix(name, "(*DB)."), ".func")
		if step == "" {
			step = station
		}
	}
	if step == station {
		step = "begin"
	}
	return station, step, slices.Contains(stations, station)
}

// hookSQLite has a process come by a place before each row that it writes on the way, and before each commit.
func hookSQLite(comeBy func(place string)) {
	sqlite.RegisterConnectionHook(func(conn sqlite.ExecQuerierContext, _ string) error {
		hooks := conn.(sqlite.HookRegisterer) //nolint:errcheck // which all connections of this driver are
		hooks.RegisterPreUpdateHook(func(row sqlite.SQLitePreUpdateData) {
			if station, _, ok := whereInSQLite(); ok {
				comeBy(station + ": row of " + row.TableName)
			}
		})
		hooks.RegisterCommitHook(func() int32 {
			if station, _, ok := whereInSQLite(); ok {
				comeBy(station + ": commit")
			}
			return 0
		})
		return nil
	})
}

// askedContext calls ask whenever somebody wants to know whether it has ended.
type askedContext struct {
	context.Context
	ask func()
}

// Done implements context.Context.
func (c askedContext) Done() <-chan struct{} {
	c.ask()
	return c.Context.Done()
}

// Err implements context.Context.
func (c askedContext) Err() error {
	c.ask()
	return c.Context.Err()
}
