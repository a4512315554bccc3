//go:build race

package alerts_test

const raceEnabled = true
