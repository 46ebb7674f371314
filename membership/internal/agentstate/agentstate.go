// Package agentstate contains the format of the agent status that an agent stores on its member, in an annotation of
// its state Secret. An Event contains the same information for users, and expires after an hour.
package agentstate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
)

// Annotation is the annotation of the agent's state Secret that contains a State.
const Annotation = "membership.muster.dev/agent-state"

// Reasons of a State in addition to the reasons of a JoinRequest's condition Issued.
const (
	HubUnreachable   = "HubUnreachable"
	BootstrapMissing = "BootstrapMissing"
	BootstrapRefused = "BootstrapRefused"
	HubFull          = "HubFull"
	HubUnfit         = "HubUnfit"
	// StepFailed means that a step of the agent itself failed.
	StepFailed = "StepFailed"
)

// Away is the state of an agent with several hubs that has switched to another hub.
const Away lifecycle.AgentPhase = "Away"

// limit is the maximum length of a message in bytes.
const limit = 1024

// A State is the status of an agent with one hub.
type State struct {
	// State is the phase of the agent, or Away.
	State lifecycle.AgentPhase `json:"state"`
	// Reason is the reason why the agent waits or was rejected. Empty: no action is required.
	Reason string `json:"reason,omitempty"`
	// Message describes the reason, as reported by the hub if it has reported one.
	Message string `json:"message,omitempty"`
	// Time of the last write, by the clock of the agent.
	Time time.Time `json:"time"`
	// Hub is the address of the hub. Empty: unknown.
	Hub string `json:"hub,omitempty"`
	// Bootstrap is the [Fingerprint] of the bootstrap credential of the last request. Empty: no request since the start.
	Bootstrap string `json:"bootstrap,omitempty"`
}

var errUnreadable = errors.New("not written by an agent of this version")

// Parse parses an annotation. An empty annotation is the zero State.
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

// Marshal returns the format that Parse reads.
func (s State) Marshal() (string, error) {
	s.Time = s.Time.UTC().Truncate(time.Second)
	s.Message = s.shortMessage()
	data, err := json.Marshal(s)
	return string(data), err
}

// shortMessage returns the message as it is written.
func (s State) shortMessage() string { return bounded.Text(s.Message, limit) }

// Replaces reports whether a state differs from the written one so that a write is required. Phases of a registration
// that last less than a second are treated as equal, and so are different network errors.
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
		return s.Hub != written.Hub || s.Bootstrap != written.Bootstrap || s.shortMessage() != written.Message &&
			s.Reason != HubUnreachable && s.Reason != StepFailed
	}
}

// stage groups the phases of a registration, or of a return to a hub.
func stage(phase lifecycle.AgentPhase) lifecycle.AgentPhase {
	switch phase {
	case lifecycle.Registering, lifecycle.Joining, lifecycle.Rejected:
		return lifecycle.Unregistered
	default:
		return phase
	}
}

// Fingerprint distinguishes bootstrap credentials. It does not reveal them. The expiration time is not included.
func Fingerprint(b *registration.Bootstrap) string {
	if b == nil {
		return ""
	}
	hash := sha256.New()
	for _, part := range [][]byte{[]byte("muster bootstrap"), []byte(b.Server), b.CA, []byte(b.Namespace),
		[]byte(b.TokenName), []byte(b.Token), b.Key} {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil)[:16])
}
