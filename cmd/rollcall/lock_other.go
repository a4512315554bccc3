//go:build !unix

package main

import "os"

// lockFile claims nothing: where there is no flock, it is up to the operator to run one service on a file.
func lockFile(*os.File) error { return nil }
