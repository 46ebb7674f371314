package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/precondition"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const (
	// tokenLife is the lifetime of a JoinToken. Joining takes seconds, and the agent gets another JoinToken if required.
	tokenLife = time.Hour
	// freshFor is how long the content of a JoinToken is cached: an agent reads it twice a second while the hub processes
	// its JoinRequest.
	freshFor = time.Minute
	// tokenPoll is the interval between two reads of a JoinToken while the hub creates its credential.
	tokenPoll = 100 * time.Millisecond
)

// bootstrap is the [agent.BootstrapSource] of one agent, which uses it from one goroutine. It creates a JoinToken when
// the agent needs a credential.
type bootstrap struct {
	*member
	clusterID string
	clock     clock.PassiveClock
	phase     lifecycle.AgentPhase // of the agent

	existing *registration.Bootstrap // nil: none yet
	at       time.Time               // when it was read
}

// Load returns the credential. It waits until the hub has created it, or the context ends.
func (b *bootstrap) Load(ctx context.Context) (*registration.Bootstrap, error) {
	if b.phase == lifecycle.Leaving || b.existing != nil && b.clock.Since(b.at) < freshFor {
		return b.existing, nil // an agent that cleans up makes no JoinRequest
	}
	var existing *registration.Bootstrap
	var last error
	err := wait.PollUntilContextCancel(ctx, tokenPoll, true, func(ctx context.Context) (bool, error) {
		var err error
		existing, err = b.read(ctx)
		if errors.Is(err, membership.ErrPending) {
			last = err
			return false, nil
		}
		return err == nil, err
	})
	switch {
	case err != nil && last != nil && ctx.Err() != nil:
		return nil, last // more specific than the error of the context
	case err != nil:
		return nil, err
	}
	b.existing, b.at = existing, b.clock.Now()
	return existing, nil
}

// Forget does nothing: the runner deletes the JoinToken.
func (b *bootstrap) Forget(context.Context) error { return nil }

// read returns the credential of the member's JoinToken. It creates the JoinToken if it does not exist, and deletes it
// if it has expired or was used. The error wraps ErrPending while the hub creates the credential.
func (b *bootstrap) read(ctx context.Context) (*registration.Bootstrap, error) {
	token := b.newToken(b.clusterID)
	key := client.ObjectKeyFromObject(token)
	err := b.client.Get(ctx, key, token)
	if apierrors.IsNotFound(err) {
		token = b.newToken(b.clusterID)
		if err := b.client.Create(ctx, token); err != nil {
			return nil, fmt.Errorf("create JoinToken %s: %w", key, err)
		}
		return nil, fmt.Errorf("JoinToken %s was created a moment ago: %w", key, membership.ErrPending)
	}
	if err != nil {
		return nil, fmt.Errorf("read JoinToken %s: %w", key, err)
	}
	existing, err := jointoken.Read(ctx, b.client, token)
	if errors.Is(err, jointoken.ErrEnded) {
		if err := client.IgnoreNotFound(b.client.Delete(ctx, token, precondition.Unchanged(token))); err != nil {
			return nil, fmt.Errorf("delete JoinToken %s, which has expired or is used up: %w", key, err)
		}
		return nil, fmt.Errorf("JoinToken %s has expired or is used up, and is created again: %w", key, membership.ErrPending)
	}
	if err != nil {
		return nil, err
	}
	// The agent runs in the hub's process, and uses the hub's own address.
	existing.Server, existing.CA = b.hub.Host, b.hub.CAData
	return existing, nil
}

// newToken returns the member's JoinToken. It admits only this member: the MemberCluster owns it, and it is for one
// cluster ID. The member is accepted by spec.accepted only.
func (m *member) newToken(clusterID string) *v1alpha1.JoinToken {
	return &v1alpha1.JoinToken{
		ObjectMeta: ownedBy(m.connected.Cluster, metav1.ObjectMeta{
			Namespace: m.options.RegistrationNamespace, Name: "push-" + string(m.connected.Cluster.UID),
		}),
		Spec: v1alpha1.JoinTokenSpec{ClusterID: clusterID, MaxUses: new(int32(1)),
			TTLSeconds: new(int64(tokenLife / time.Second))},
	}
}
