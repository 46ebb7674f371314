package agent

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ActionRegister is the action of Events about the reason of a pending registration.
const ActionRegister = "Register"

// eventRecorder records Kubernetes Events about the agent's Secret, in the cluster of that Secret. The hub records
// separate Events.
type eventRecorder struct {
	recorder events.EventRecorder // nil: no Events
	about    *corev1.ObjectReference
}

func newEventRecorder(mgr manager.Manager, namespace string) eventRecorder {
	return eventRecorder{
		recorder: mgr.GetEventRecorder("muster-agent"),
		about:    &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: DefaultStoreSecret},
	}
}

// phase records an Event for the phases that are relevant to users.
func (s eventRecorder) phase(step lifecycle.AgentStep) {
	switch step.Phase {
	case lifecycle.Joined, lifecycle.Leaving, lifecycle.Left:
		// +event:reason=Joined, Leaving, Left
		// +event:message=the message of the phase
		s.normal(string(step.Phase), step.Message)
	case lifecycle.Rejected:
		// +event:reason=Rejected
		// +event:message=the message of the phase
		s.warn(string(step.Phase), step.Message)
	default: // intermediate phases
	}
}

// waits records an Event with the reason of a pending JoinRequest.
func (s eventRecorder) waits(reason, note string) {
	kind := corev1.EventTypeWarning
	if reason == v1alpha1.ReasonWaitingForAcceptance {
		kind = corev1.EventTypeNormal
	}
	s.emit(kind, reason, ActionRegister, note)
}

func (s eventRecorder) normal(reason, note string) {
	s.emit(corev1.EventTypeNormal, reason, "Membership", note)
}

func (s eventRecorder) warn(reason, note string) {
	s.emit(corev1.EventTypeWarning, reason, "Membership", note)
}

func (s eventRecorder) emit(kind, reason, action, note string) {
	if s.recorder != nil {
		// +event:object=Secret of an agent
		s.recorder.Eventf(s.about, nil, kind, reason, action, "%s", short(note))
	}
}

// short cuts a note to the maximum length in bytes of the API, between two characters: the API server rejects invalid
// UTF-8.
func short(note string) string {
	const limit = 1024
	end := min(limit, len(note))
	for end < len(note) && end > 0 && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end]
}
