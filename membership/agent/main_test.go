package agent

import (
	"os"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the hub and the member of a test. Tests mostly wait, so two run in parallel, each on a separate plane.
var plane = localplane.NewPool(2, localplane.Options{Name: "agent", Nodes: 1})

// secondHub is a second hub, which can be killed while the member and the first hub continue.
var secondHub = localplane.Shared{Options: localplane.Options{Name: "agent-elsewhere"}}

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(localplane.Run(m, append(plane.Shared(), &secondHub)...))
}
