package main

// PercentFor is how the garbage collector is set after it took a share of the machine.
func PercentFor(percent int, share float64, heap uint64) int { return percentFor(percent, share, heap) }

// SetCollector sets the garbage collector as a service does that starts in this environment, and reports whether it did.
func SetCollector(env ...string) (set bool, restore func()) {
	c, restore := newCollector(testStdio(env, nil).env)
	return c != nil, restore
}
