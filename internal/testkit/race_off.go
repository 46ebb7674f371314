//go:build !race

package testkit

// RaceDetector is whether this program was built with -race, which makes tests in memory about six times slower.
const RaceDetector = false
