package testkit

import (
	"os"

	"github.com/muster-sdk/muster/mustertest"
)

// Exhaustive reports whether tests explore models completely, which takes minutes: MUSTER_MODEL=full, as in the step
// models of .ci/run. Otherwise tests explore a part that finds most defects.
func Exhaustive() bool { return os.Getenv("MUSTER_MODEL") == "full" }

// Crashes reports whether a test ends a controller at its write number at, which is lost in the given way. Exhaustive
// tests do so at each write in both ways. Others do so at each second write, and with the race detector at each fourth
// one, in one of the two ways.
func Crashes(at int, how mustertest.Loss) bool {
	oneOfTwo := (how == mustertest.ResponseLost) == (at%2 == 1)
	switch {
	case RaceDetector:
		return oneOfTwo && (at%8 == 1 || at%8 == 4)
	case Exhaustive():
		return true
	}
	return oneOfTwo && at%4 <= 1
}

// WithoutRace returns the first number of objects or members, and the second one with the race detector.
func WithoutRace(without, with int) int {
	if RaceDetector {
		return with
	}
	return without
}
