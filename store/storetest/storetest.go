// Package storetest says what every store must do, as tests that each driver runs against a real database. It also gives
// tests of other packages real databases to work on. Programs do not import it.
package storetest

import (
	"path/filepath"
	"testing"
)

// SQLite returns the path of a SQLite file that is not there yet, in a folder that goes when t ends.
func SQLite(t testing.TB) (path string) {
	t.Helper()
	return filepath.Join(t.TempDir(), "rollcall.db")
}
