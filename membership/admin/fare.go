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

// refusalPatience is how long a refusal is not believed that was written before anybody waited: the agent asks again within one and a half times its
// poll, and acts on the answer after as long at the most.
const refusalPatience = 2*lifecycle.HeldPoll*3/2 + 5*time.Second

// outlook is what has been seen while waiting for an agent.
type outlook struct {
	since   time.Time // zero: nothing yet
	first   string    // what the agent had written before
	refusal error     // that stands
}

// await waits until the agent says that it has joined. It is the member that is asked, since whoever registers a cluster need have
// no access to the hub.
func (r *register) await(ctx context.Context) error {
	err := r.tell.await(ctx, "wait until the agent has joined", r.Wait, r.look)
	if _, late := errors.AsType[*TimeoutError](err); late && r.waited.refusal != nil {
		return fmt.Errorf("%w: %w", err, r.waited.refusal)
	}
	return err
}

// look looks at what the agent has written down for whoever waits.
func (r *register) look(ctx context.Context) (seen, error) {
	record, err := found(ctx, r.member, client.ObjectKey{Namespace: r.Namespace, Name: r.names.store}, &corev1.Secret{})
	if err != nil {
		return seen{}, err
	}
	if record == nil && r.Hub != "" {
		return seen{detail: fmt.Sprintf("no agent has begun with hub %s: is one running on the member, in namespace %s, that knows this hub and is in no other?", r.Hub, r.Namespace)}, nil
	}
	if record == nil {
		return seen{detail: fmt.Sprintf("no agent has begun: is one running on the member, in namespace %s?", r.Namespace)}, nil
	}
	written := record.Annotations[agentstate.Annotation]
	state, unreadable := agentstate.Parse(written)
	if unreadable != nil {
		return seen{detail: "the agent does not say how it fares: " + unreadable.Error()}, nil //nolint:nilerr // another agent may
	}
	fares, refusal := faring(state, agentstate.State{Hub: r.bootstrap.Server, Bootstrap: agentstate.Fingerprint(r.bootstrap)})
	return r.waited.weigh(written, fares, refusal)
}

// weigh has a refusal that was written before count only when the agent must have asked again.
func (o *outlook) weigh(written string, fares seen, refusal error) (seen, error) {
	real := clock.RealClock{}
	if o.since.IsZero() {
		o.since, o.first = real.Now(), written
	}
	o.refusal = refusal
	if refusal != nil && written == o.first && real.Since(o.since) < refusalPatience {
		return seen{detail: "the agent was refused before, and is to ask again: " + refusal.Error()}, nil
	}
	return fares, refusal
}

// faring is whether an agent has joined that says this, and if not, what it waits for, or why it never will. Of wanted are the address of the hub and the
// fingerprint of the credential.
func faring(state, wanted agentstate.State) (seen, error) {
	switch state.State {
	case "":
		return seen{detail: "the agent has not said yet how it fares"}, nil
	case lifecycle.Joined:
		if state.Hub != wanted.Hub {
			return seen{detail: fmt.Sprintf("the agent is in the hub at %s, and asks this one when it is out of there; if that is the same hub, restart the agent", state.Hub)}, nil
		}
		return seen{done: true, detail: "it has joined"}, nil
	case lifecycle.Leaving, lifecycle.Left, agentstate.Away:
		return seen{detail: fmt.Sprintf("%s: %s", state.State, state.Message)}, nil
	}
	switch {
	case state.Reason == "" || state.Reason == agentstate.StepFailed:
		return seen{detail: state.Message}, nil
	case state.Bootstrap != wanted.Bootstrap:
		return seen{detail: "the agent has not asked with this join token yet; before, it said: " + state.Message}, nil
	}
	if kind := refusalOf(state.Reason); kind != nil {
		return seen{}, fmt.Errorf("the hub does not let the agent in: %s (%s): %w", state.Message, state.Reason, kind)
	}
	return seen{detail: state.Message}, nil
}

// refusalOf is the error of a reason for which an agent waits in vain, and nil of all others.
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
