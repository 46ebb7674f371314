package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// rejectionGracePeriod is how long a rejection that is older than the call is ignored: the agent retries its request
// within one and a half poll intervals, and processes the response after the same time at most.
const rejectionGracePeriod = 2*lifecycle.BlockedPoll*3/2 + 5*time.Second

// joinProgress is the observed state while waiting for an agent.
type joinProgress struct {
	since   time.Time // zero: nothing yet
	first   string    // the earlier status of the agent
	refusal error     // a rejection that applies
}

// await waits until the agent reports that it has joined. It reads the member, because the caller of Register may have
// no access to the hub.
func (r *register) await(ctx context.Context) error {
	err := r.progress.await(ctx, "wait until the agent has joined", r.Wait, r.observe)
	if _, late := errors.AsType[*TimeoutError](err); late && r.waited.refusal != nil {
		return fmt.Errorf("%w: %w", err, r.waited.refusal)
	}
	return err
}

// observe reads the status that the agent has stored.
func (r *register) observe(ctx context.Context) (seen, error) {
	record, err := found(ctx, r.home, client.ObjectKey{Namespace: r.Namespace, Name: r.names.store}, &corev1.Secret{})
	if err != nil {
		return seen{}, err
	}
	if record == nil && r.Hub != "" {
		return seen{detail: fmt.Sprintf("no agent has started with hub %s: check that an agent runs on the member in "+
			"namespace %s, is configured with this hub, and belongs to no other hub", r.Hub, r.Namespace)}, nil
	}
	if record == nil {
		return seen{detail: fmt.Sprintf("no agent has started: check that an agent runs on the member in namespace %s",
			r.Namespace)}, nil
	}
	written := record.Annotations[agentstate.Annotation]
	state, unreadable := agentstate.Parse(written)
	if unreadable != nil {
		return seen{detail: "the agent status cannot be read: " + unreadable.Error()}, nil //nolint:nilerr // it may change
	}
	joinState, refusal := joinStatus(state,
		agentstate.State{Hub: r.bootstrap.Server, Bootstrap: agentstate.Fingerprint(r.bootstrap)})
	return r.waited.evaluate(written, joinState, refusal)
}

// evaluate ignores an earlier rejection until the agent must have retried its request.
func (o *joinProgress) evaluate(written string, joinState seen, refusal error) (seen, error) {
	real := clock.RealClock{}
	if o.since.IsZero() {
		o.since, o.first = real.Now(), written
	}
	o.refusal = refusal
	if refusal != nil && written == o.first && real.Since(o.since) < rejectionGracePeriod {
		return seen{detail: "the agent was rejected before and retries: " + refusal.Error()}, nil
	}
	return joinState, refusal
}

// joinStatus returns whether an agent with this status has joined, the reason why it has not, or the error of a
// permanent rejection. The wanted state contains the address of the hub and the fingerprint of the credential.
func joinStatus(state, wanted agentstate.State) (seen, error) {
	switch state.State {
	case "":
		return seen{detail: "the agent has not reported its status yet"}, nil
	case lifecycle.Joined:
		if state.Hub != wanted.Hub {
			return seen{detail: fmt.Sprintf("the agent is a member of the hub at %s, and joins this hub after the member has "+
				"left; if both are the same hub, restart the agent", state.Hub)}, nil
		}
		return seen{done: true, detail: "the member has joined"}, nil
	case lifecycle.Leaving, lifecycle.Left, agentstate.Away:
		return seen{detail: fmt.Sprintf("%s: %s", state.State, state.Message)}, nil
	}
	switch {
	case state.Reason == "" || state.Reason == agentstate.StepFailed:
		return seen{detail: state.Message}, nil
	case state.Bootstrap != wanted.Bootstrap:
		return seen{detail: "the agent has not used this join token yet; the previous status: " + state.Message}, nil
	}
	if kind := refusalOf(state.Reason); kind != nil {
		return seen{}, fmt.Errorf("the hub rejects the agent: %s (%s): %w", state.Message, state.Reason, kind)
	}
	return seen{detail: state.Message}, nil
}

// refusalOf returns the error of a permanent rejection, and nil for other reasons.
func refusalOf(reason string) error {
	switch reason {
	case v1alpha1.ReasonClusterIDTaken:
		return ErrClusterTaken
	case v1alpha1.ReasonNameTaken:
		return ErrNameTaken
	case v1alpha1.ReasonTokenRefused, agentstate.BootstrapRefused:
		return ErrExpired
	case v1alpha1.ReasonDenied, v1alpha1.ReasonInvalidRequest, agentstate.HubUnfit:
		return ErrDenied
	default:
		return nil
	}
}
