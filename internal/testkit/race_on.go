//go:build race

package testkit

// RaceDetector reports whether this program was built with -race, which makes tests in memory about six times slower.
const RaceDetector = true
