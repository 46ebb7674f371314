// Package agentstate is how an agent fares on its way to a hub, as it keeps it on the member for whoever waits for that: in an annotation of
// the Secret that it remembers in. An Event says the same to people, and is gone after an hour.
package agentstate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
)

// Annotation is where a State is, on the Secret that an agent remembers in.
const Annotation = "membership.muster.dev/agent-state"

// Reasons of a State beside those of a JoinRequest's condition Issued.
const (
	HubUnreachable   = "HubUnreachable"
	BootstrapMissing = "BootstrapMissing"
	BootstrapRefused = "BootstrapRefused"
	HubFull          = "HubFull"
	HubUnfit         = "HubUnfit"
	// StepFailed is about something that went wrong on the agent's own side.
	StepFailed = "StepFailed"
)

// Away is the state of an agent of several hubs that has left this one for another.
const Away lifecycle.AgentPhase = "Away"

// limit is how many bytes of a message are kept.
const limit = 1024

// A State is how an agent fares with one hub.
type State struct {
	// State is the agent's phase, or Away.
	State lifecycle.AgentPhase `json:"state"`
	// Reason is what it waits for, or what it was refused for. Empty: nothing that anybody has to know.
	Reason string `json:"reason,omitempty"`
	// Message says that to people, in the words of the hub where it has said something.
	Message string `json:"message,omitempty"`
	// Time is when it was written, by the agent's clock.
	Time time.Time `json:"time"`
	// Hub is the address of the hub. Empty: none is known.
	Hub string `json:"hub,omitempty"`
	// Bootstrap tells which bootstrap credential it asked with last; see [Fingerprint]. Empty: it has not asked since it was started.
	Bootstrap string `json:"bootstrap,omitempty"`
}

var errUnreadable = errors.New("it is not what an agent of this version writes")

// Parse reads an annotation. An empty one is the zero State.
func Parse(annotation string) (State, error) {
	var s State
	if annotation == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(annotation), &s); err != nil || s.State == "" {
		return State{}, fmt.Errorf("read annotation %s: %w", Annotation, errUnreadable)
	}
	return s, nil
}

// Marshal returns what Parse reads.
func (s State) Marshal() (string, error) {
	s.Time = s.Time.UTC().Truncate(time.Second)
	s.Message = s.Message[:min(limit, len(s.Message))] // JSON puts something in the place of half a character
	data, err := json.Marshal(s)
	return string(data), err
}

// Replaces reports whether a state says something else than the one that is written, so that it is worth a write. On the way to a hub an agent passes
// through phases in less than a second; until it waits for something they are all the same. So is a network that fails in one way and then in another.
func (s State) Replaces(written State) bool {
	switch {
	case s.State == "":
		return false
	case stage(s.State) != stage(written.State), s.Reason != written.Reason:
		return true
	case s.State == lifecycle.Joined:
		return s.Hub != written.Hub
	case s.Reason == "":
		return false
	default:
		return s.Hub != written.Hub || s.Bootstrap != written.Bootstrap || s.Message != written.Message && s.Reason != HubUnreachable && s.Reason != StepFailed
	}
}

// stage takes the phases together that lead to a hub, or back to it.
func stage(phase lifecycle.AgentPhase) lifecycle.AgentPhase {
	switch phase {
	case lifecycle.Registering, lifecycle.Joining, lifecycle.Rejected:
		return lifecycle.Unregistered
	default:
		return phase
	}
}

// Fingerprint tells bootstrap credentials apart, and nothing else: they cannot be found by it. When the credential ends does not count.
func Fingerprint(b *registration.Bootstrap) string {
	if b == nil {
		return ""
	}
	hash := sha256.New()
	for _, part := range [][]byte{[]byte("muster bootstrap"), []byte(b.Server), b.CA, []byte(b.Namespace), []byte(b.TokenName), []byte(b.Token), b.Key} {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
