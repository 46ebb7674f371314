package leave

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
)

// GateAt returns a Gate with the clock of a test.
func GateAt(c client.Client, clock clock.PassiveClock) interface {
	membership.LeaveGate
	membership.Forcer
} {
	return gate{c, clock}
}
