package testkit

import (
	"os"

	"github.com/muster-sdk/muster/mustertest"
)

// Exhaustive reports whether tests explore models completely, which takes minutes: MUSTER_MODEL=full, as in `.ci/run
// models` and `.ci/run crashes`. Otherwise tests explore a part that finds most defects.
func Exhaustive() bool { return os.Getenv("MUSTER_MODEL") == "full" }

// Crashes reports whether a test ends a controller at its write number at, which is lost in the given way. Exhaustive
// tests do so at each write in both ways, and others at each write in one of the two ways. With the race detector, they
// do so at each fourth write: the step models of .ci/run ends the controllers at all of them without it.
func Crashes(at int, how mustertest.Loss) bool {
	oneOfTwo := (how == mustertest.ResponseLost) == (at%2 == 1)
	switch {
	case RaceDetector:
		return oneOfTwo && (at%8 == 1 || at%8 == 4)
	case Exhaustive():
		return true
	}
	return oneOfTwo
}

// WithoutRace returns the first number of objects or members, and the second one with the race detector.
func WithoutRace(without, with int) int {
	if RaceDetector {
		return with
	}
	return without
}
