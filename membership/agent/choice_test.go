package agent

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"github.com/muster-sdk/muster/membership/lifecycle"
)

// TestHubChanged_ReturnIsNoWarning checks that an agent that leaves a hub which does not serve it records a Warning,
// and that the return to the first hub is an Event of type Normal.
func TestHubChanged_ReturnIsNoWarning(t *testing.T) {
	for want, here := range map[string]lifecycle.HubStatus{
		"Normal HubChanged m":        {},
		"Warning HubChanged m":       {Unserved: time.Unix(1, 0)},
		"Warning HubChanged refused": {Refused: true},
		"Warning HubChanged out":     {Out: true},
	} {
		recorder := events.NewFakeRecorder(1)
		h := &hubs{
			Options: Options{OnPhase: func(lifecycle.AgentStep) {}}, log: logr.Discard(),
			events:   eventRecorder{recorder: recorder, about: &corev1.ObjectReference{}},
			statuses: []lifecycle.HubStatus{{}, here}, at: hubStay{hub: 1},
		}
		message := "m"
		switch {
		case here.Refused:
			message = "refused"
		case here.Out:
			message = "out"
		}
		h.reportGoing(message)
		require.Equal(t, want, <-recorder.Events)
	}
}
