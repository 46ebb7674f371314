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

// fareKeeper is a Store that keeps beside the record how the agent fares, for others to read: package admin waits for that.
type fareKeeper interface {
	// note has the state be written together with the next record.
	note(state agentstate.State)
	// tell writes it by itself, if it says something else than what is written. Without a record it writes nothing.
	tell(ctx context.Context) error
}

const (
	// fareTimeout bounds the write of a state, which holds up everything else.
	fareTimeout = 5 * time.Second
	// fareRetry is how long a state is not written that could not be.
	fareRetry = time.Minute
)

// note takes down how the agent fares, where somebody reads that.
func (a *agent) note(step lifecycle.AgentStep) {
	if a.fare == nil {
		return
	}
	state := agentstate.State{State: step.Phase, Message: step.Message, Time: a.Clock.Now(), Hub: a.hub(), Bootstrap: a.askedWith}
	if step.Phase == lifecycle.Registering || step.Phase == lifecycle.Rejected {
		state.Reason = a.door.reason
	}
	a.fare.note(state)
}

// noteFailure takes down that a step failed on the way to a hub. What fails for a member that is in the fleet passes, or its hub knows.
func (a *agent) noteFailure(step lifecycle.AgentStep, err error) {
	if a.fare == nil || step.Phase == lifecycle.Joined || step.Phase == lifecycle.Leaving {
		return
	}
	a.fare.note(agentstate.State{
		State: step.Phase, Reason: agentstate.StepFailed, Message: fmt.Sprintf("A step of the agent failed; trying again. (%v)", err),
		Time: a.Clock.Now(), Hub: a.hub(), Bootstrap: a.askedWith,
	})
}

// tell has those who wait know how the agent fares, before it waits itself. That it cannot is nothing to stop at.
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
		a.loaded = false // the record is not what it was
	}
	a.log.V(1).Info("How the agent fares could not be written.", "error", err.Error())
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
		if err = fmt.Errorf("annotate the agent's Secret %s: %w", s.name, err); !apierrors.IsConflict(err) || attempt == attempts {
			return err
		}
		// Somebody may have put a label on it.
		latest, failed := s.secrets.Get(ctx, s.name, metav1.GetOptions{})
		if failed != nil || !bytes.Equal(latest.Data[recordKey], s.seen.Data[recordKey]) {
			return err
		}
		s.seen = latest
	}
}

// annotate puts the state on a Secret, and reports whether that says something else than what is there.
func (s *secretStore) annotate(secret *corev1.Secret) bool {
	written, err := agentstate.Parse(secret.Annotations[agentstate.Annotation])
	if s.state.State == "" || err == nil && !s.state.Replaces(written) {
		return false
	}
	words, err := s.state.Marshal()
	if err != nil {
		return false // a clock that far off
	}
	metav1.SetMetaDataAnnotation(&secret.ObjectMeta, agentstate.Annotation, words)
	return true
}
