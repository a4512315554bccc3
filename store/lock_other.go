//go:build !unix

package store

import "os"

// lockFile claims nothing: where there is no flock, it is up to the operator to give each instance a spool of its own.
func lockFile(*os.File) error { return nil }
