package storetest

import (
	"testing"
	"time"

	"github.com/rollcallhq/rollcall/store"
)

// tend lets go of checks and hours that are older than these times, and returns how much went.
func tend(t testing.TB, s store.Store, checks, hours time.Time) int {
	t.Helper()
	n, err := s.Tend(t.Context(), store.Retention{Now: minutes(0), Checks: checks, Hours: hours})
	if err != nil {
		t.Fatalf("Tend: %v", err)
	}
	return n
}
