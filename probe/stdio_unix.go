//go:build unix

package probe

import (
	"os"
	"syscall"
)

// inherited are the variables of this process that a command is told.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR"}

// terminateGroup asks the group of a process that leads one to end.
func terminateGroup(p *os.Process) { signalGroup(p, syscall.SIGTERM) }

// killGroup ends the group of a process that leads one. It is for use after the leader has ended, too: the number of a
// group is not given away while one of its members lives.
func killGroup(p *os.Process) { signalGroup(p, syscall.SIGKILL) }

func signalGroup(p *os.Process, signal syscall.Signal) {
	_ = syscall.Kill(-p.Pid, signal) // a group that has ended needs no signal
}

// signalName names the signal that ended a process; empty when none did.
func signalName(state *os.ProcessState) string {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return ""
	}
	return "signal: " + status.Signal().String()
}
