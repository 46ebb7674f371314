package agent

import (
	"bytes"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// fareKeeper is a Store that publishes the state of the agent beside the record, for example for package admin.
type fareKeeper interface {
	// note stores the state, to be written together with the next record.
	note(state agentstate.State)
	// tell writes the state if it differs from the published one. Without a record it writes nothing.
	tell(ctx context.Context) error
}

const (
	// fareTimeout is the timeout of a write of the state, which delays everything else.
	fareTimeout = 5 * time.Second
	// fareRetry is the pause after a failed write of the state.
	fareRetry = time.Minute
)

// note stores the state of the agent, if it is published.
func (a *agent) note(step lifecycle.AgentStep) {
	if a.fare == nil {
		return
	}
	state := agentstate.State{State: step.Phase, Message: step.Message, Time: a.Clock.Now(), Hub: a.hub(),
		Bootstrap: a.askedWith}
	if step.Phase == lifecycle.Registering || step.Phase == lifecycle.Rejected {
		state.Reason = a.requests.reason
	}
	a.fare.note(state)
}

// noteFailure stores that a step failed before the agent has joined. Failures of a joined member are temporary, or the
// hub knows them.
func (a *agent) noteFailure(step lifecycle.AgentStep, err error) {
	if a.fare == nil || step.Phase == lifecycle.Joined || step.Phase == lifecycle.Leaving {
		return
	}
	a.fare.note(agentstate.State{
		State: step.Phase, Reason: agentstate.StepFailed, Message: fmt.Sprintf("A step of the agent failed; trying again. "+
			"(%v)", err),
		Time: a.Clock.Now(), Hub: a.hub(), Bootstrap: a.askedWith,
	})
}

// tell publishes the state before the agent waits. A failure does not stop the agent.
func (a *agent) tell(ctx context.Context) {
	now := a.Clock.Now()
	if a.fare == nil || !a.loaded || now.Before(a.untold) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, fareTimeout)
	defer cancel()
	err := a.fare.tell(ctx)
	if err == nil {
		return
	}
	a.untold = now.Add(fareRetry)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		a.loaded = false // the record has changed
	}
	a.log.V(1).Info("Cannot publish the state of the agent", "error", err.Error())
}

func (s *secretStore) note(state agentstate.State) { s.state = state }

func (s *secretStore) tell(ctx context.Context) error {
	const attempts = 2
	for attempt := 1; ; attempt++ {
		if s.seen == nil {
			return nil
		}
		next := s.seen.DeepCopy()
		if !s.annotate(next) {
			return nil
		}
		updated, err := s.secrets.Update(ctx, next, metav1.UpdateOptions{})
		if err == nil {
			s.seen = updated
			return nil
		}
		if err = fmt.Errorf("annotate the agent's Secret %s: %w", s.name, err); !apierrors.IsConflict(err) ||
			attempt == attempts {
			return err
		}
		// Another client may have changed the metadata.
		latest, failed := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
		if failed != nil || !bytes.Equal(latest.Data[recordKey], s.seen.Data[recordKey]) {
			return err
		}
		s.seen = latest
	}
}

// annotate sets the state on a Secret, and reports whether it has changed.
func (s *secretStore) annotate(secret *corev1.Secret) bool {
	written, err := agentstate.Parse(secret.Annotations[agentstate.Annotation])
	if s.state.State == "" || err == nil && !s.state.Replaces(written) {
		return false
	}
	words, err := s.state.Marshal()
	if err != nil {
		return false // the time is out of range
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, agentstate.Annotation, words)
	return true
}
