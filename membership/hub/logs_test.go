package hub_test

import (
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
)

// testingLogger returns a logger that writes to the test's output if MUSTER_TEST_LOGS is set.
func testingLogger(t testing.TB, name string) logr.Logger {
	return funcr.New(func(prefix, args string) { t.Log(prefix, args) }, funcr.Options{LogTimestamp: true}).WithName(name)
}
