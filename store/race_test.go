//go:build race

package store_test

// raceDetector makes everything ten times slower.
const raceDetector = true
