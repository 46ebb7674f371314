package agent

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the hub and the member of the tests with real connections. All other tests run in memory.
var plane = localplane.NewPool(1, localplane.Options{Name: "agent", Nodes: 1})

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(localplane.Run(m, plane.Shared()...))
}
