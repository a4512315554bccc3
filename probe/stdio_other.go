//go:build !unix

package probe

import (
	"os"
	"syscall"
)

// inherited are the variables of this process that a command is told.
var inherited = []string{"PATH", "PATHEXT", "HOME", "LANG", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "ProgramData"}

func processAttributes() *syscall.SysProcAttr { return nil }

// terminateGroup does nothing: there is no way to ask.
func terminateGroup(*os.Process) {}

// killGroup ends the process. What it started ends with its input, if it cares.
func killGroup(p *os.Process) {
	_ = p.Kill() // a process that has ended needs no killing
}

func signalName(*os.ProcessState) string { return "" }
