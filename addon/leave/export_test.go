package leave

import (
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
)

// GateAt is Gate by a clock of the test.
func GateAt(c client.Client, clock clock.PassiveClock) interface {
	membership.LeaveGate
	membership.Forcer
} {
	return gate{c, clock}
}
