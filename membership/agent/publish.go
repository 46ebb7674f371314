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

// statePublisher is a Store that publishes the state of the agent together with the record, for example for package
// admin.
type statePublisher interface {
	// setState stores the state, to be written together with the next record.
	setState(state agentstate.State)
	// publish writes the state if it differs from the published one. Without a record it writes nothing.
	publish(ctx context.Context) error
}

const (
	// publishTimeout is the timeout of a write of the state, during which the main loop is blocked.
	publishTimeout = 5 * time.Second
	// publishRetry is the pause after a failed write of the state.
	publishRetry = time.Minute
)

// setState stores the state of the agent, if it is published.
func (a *agent) setState(step lifecycle.AgentStep) {
	if a.reports.publication.publisher == nil {
		return
	}
	state := agentstate.State{State: step.Phase, Message: step.Message, Time: a.Clock.Now(), Hub: a.hubServer(),
		Bootstrap: a.reports.publication.askedWith}
	if step.Phase == lifecycle.Registering || step.Phase == lifecycle.Rejected {
		state.Reason = a.requests.reason
	}
	a.reports.publication.publisher.setState(state)
}

// setFailure stores that a step failed before the agent has joined. Failures of a joined member are not stored: they
// are temporary, or reported on the hub.
func (a *agent) setFailure(step lifecycle.AgentStep, err error) {
	if a.reports.publication.publisher == nil || step.Phase == lifecycle.Joined || step.Phase == lifecycle.Leaving {
		return
	}
	a.reports.publication.publisher.setState(agentstate.State{
		State: step.Phase, Reason: agentstate.StepFailed, Message: fmt.Sprintf("A step of the agent failed; trying again. "+
			"(%v)", err),
		Time: a.Clock.Now(), Hub: a.hubServer(), Bootstrap: a.reports.publication.askedWith,
	})
}

// publishState publishes the state before the agent waits. A failure does not stop the agent.
func (a *agent) publishState(ctx context.Context) {
	now := a.Clock.Now()
	if a.reports.publication.publisher == nil || !a.state.loaded || now.Before(a.reports.publication.after) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	err := a.reports.publication.publisher.publish(ctx)
	if err == nil {
		return
	}
	a.reports.publication.after = now.Add(publishRetry)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		a.state.loaded = false // the record has changed
	}
	a.Log.V(1).Info("Cannot publish the state of the agent", "error", err.Error())
}

func (s *secretStore) setState(state agentstate.State) { s.state = state }

func (s *secretStore) publish(ctx context.Context) error {
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
