package agent

import (
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// ActionRegister is the action of Events that tell what the agent waits for on its way to a credential.
const ActionRegister = "Register"

// story tells what happens to the agent by Kubernetes Events about its Secret, in the cluster where that is. On the hub
// it is the hub that tells.
type story struct {
	recorder events.EventRecorder // nil: nobody listens
	about    *corev1.ObjectReference
}

func newStory(mgr manager.Manager, namespace string) story {
	return story{
		recorder: mgr.GetEventRecorder("muster-agent"),
		about:    &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: DefaultStoreSecret},
	}
}

// phase tells of the phases that somebody may want to know about later.
func (s story) phase(step lifecycle.AgentStep) {
	switch step.Phase {
	case lifecycle.Joined, lifecycle.Leaving, lifecycle.Left:
		s.normal(string(step.Phase), step.Message)
	case lifecycle.Rejected:
		s.warn(string(step.Phase), step.Message)
	default: // on the way to one of those
	}
}

// waits tells what the agent waits for at the door: for a while, or for somebody to do something.
func (s story) waits(reason, note string) {
	kind := corev1.EventTypeWarning
	if reason == v1alpha1.ReasonWaitingForAcceptance {
		kind = corev1.EventTypeNormal
	}
	s.tell(kind, reason, ActionRegister, note)
}

func (s story) normal(reason, note string) {
	s.tell(corev1.EventTypeNormal, reason, "Membership", note)
}

func (s story) warn(reason, note string) { s.tell(corev1.EventTypeWarning, reason, "Membership", note) }

func (s story) tell(kind, reason, action, note string) {
	if s.recorder != nil {
		s.recorder.Eventf(s.about, nil, kind, reason, action, "%s", short(note))
	}
}

// short cuts a note to the bytes that the API takes, between two characters: half of one would make it refuse the event.
func short(note string) string {
	const limit = 1024
	end := min(limit, len(note))
	for end < len(note) && end > 0 && !utf8.RuneStart(note[end]) {
		end--
	}
	return note[:end]
}
