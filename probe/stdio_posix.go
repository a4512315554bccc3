//go:build unix && !linux

package probe

import "syscall"

// processAttributes makes a command the leader of a group of its own. Its input ends with this process, which a command
// that speaks over it takes for the end.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
