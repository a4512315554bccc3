//go:build unix

package store

import (
	"os"
	"syscall"
)

// lockFile claims f for this process until f is closed. It does not wait.
func lockFile(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
