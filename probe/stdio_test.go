package probe_test

import (
	"testing"

	"github.com/rollcallhq/rollcall/probe/probetest"
)

// TestMain lets this binary be the process that a command starts.
func TestMain(m *testing.M) {
	probetest.RunProcess()
	m.Run()
}
