package probe

import "syscall"

// processAttributes makes a command the leader of a group of its own, and has it killed when this process ends without
// having done so.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
