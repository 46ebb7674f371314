package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// TestSecretStore_PublishesState checks which state a store writes with the record, and when.
func TestSecretStore_PublishesState(t *testing.T) { testkit.Virtual(t, testSecretStorePublishesState) }

func testSecretStorePublishesState(t *testing.T) {
	h, w := newFakeHub(t, newMemory(t), "publish"), &wire{}
	w.config(h.config)
	core, err := newMember(h.config)
	require.NoError(t, err)
	defer core.close()
	ctx, secrets := t.Context(), core.core.Secrets(h.name)
	store := SecretStore(secrets, "s").(*secretStore)
	written := func() agentstate.State {
		secret, err := secrets.Get(ctx, "s", metav1.GetOptions{})
		require.NoError(t, err)
		state, err := agentstate.Parse(secret.Annotations[agentstate.Annotation])
		require.NoError(t, err)
		return state
	}
	writes := func() int {
		seen := w.take()
		return seen["PUT s"] + seen["POST secrets"]
	}
	stored := agentstate.State{State: lifecycle.Registering, Reason: "NameTaken", Message: "East is another."}
	store.setState(stored)
	require.NoError(t, store.publish(ctx), "without a record, the state is not written")
	require.Zero(t, writes())
	require.NoError(t, store.Save(ctx, []byte("1")))
	require.Equal(t, stored, written(), "the state is written with the record")
	require.NoError(t, store.publish(ctx))
	require.NoError(t, store.publish(ctx))
	require.Equal(t, 1, writes(), "an unchanged state is not written again")

	store.setState(agentstate.State{State: lifecycle.Joined, Hub: "https://hub"})
	require.NoError(t, store.publish(ctx))
	require.Equal(t, lifecycle.Joined, written().State)
	require.NoError(t, store.Save(ctx, []byte("2")), "the store's own write causes no conflict")
	require.Equal(t, lifecycle.Joined, written().State, "a write of the record keeps the state")
	require.Equal(t, 2, writes())

	// Another client adds a label, and then replaces the record.
	secret, err := secrets.Get(ctx, "s", metav1.GetOptions{})
	require.NoError(t, err)
	secret.Labels = map[string]string{"a": "b"}
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	store.setState(stored)
	require.NoError(t, store.publish(ctx))
	require.Equal(t, stored, written())
	secret, err = secrets.Get(ctx, "s", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "b", secret.Labels["a"])
	secret.Data[recordKey] = []byte("3")
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	store.setState(agentstate.State{State: lifecycle.Joined})
	require.True(t, apierrors.IsConflict(store.publish(ctx)), "a store must not write the state to an unknown record")
	_, err = store.Load(ctx)
	require.NoError(t, err)
	require.NoError(t, store.publish(ctx))
	require.Equal(t, lifecycle.Joined, written().State)
	require.NoError(t, secrets.Delete(ctx, "s", metav1.DeleteOptions{}))
	store.setState(stored)
	require.Error(t, store.publish(ctx), "the record was deleted")
}

// recordingPublisher is a store that records the published states.
type recordingPublisher struct {
	memory
	set, published agentstate.State
}

func (k *recordingPublisher) setState(state agentstate.State) { k.set = state }

func (k *recordingPublisher) publish(context.Context) error {
	k.published = k.set
	return nil
}

// TestPublishAway checks that an agent with several hubs publishes in the Secret of the old hub that it has switched to
// another hub, if it publishes its state.
func TestPublishAway(t *testing.T) {
	left := &recordingPublisher{}
	h, err := newHubs(&rest.Config{Host: "https://member.example.com"}, logr.Discard(), Options{Hubs: []HubOptions{
		{Name: "one", Store: left, Bootstrap: &deletableBootstrap{}},
		{Name: "two", Store: &memory{}, Bootstrap: &deletableBootstrap{}},
	}})
	require.NoError(t, err)
	h.publishAway(t.Context(), "Switching to hub two.")
	require.Empty(t, left.published.State, "without a manager, no state is published")
	a, err := h.agent(0)
	require.NoError(t, err)
	require.Nil(t, a.reports.publication.publisher)

	h.events.recorder = events.NewFakeRecorder(10)
	h.publishAway(t.Context(), "Switching to hub two.")
	require.Equal(t, agentstate.Away, left.published.State)
	require.Equal(t, "Switching to hub two.", left.published.Message)
	a, err = h.agent(0)
	require.NoError(t, err)
	require.Equal(t, left, a.reports.publication.publisher)
	a, err = h.agent(1)
	require.NoError(t, err)
	require.Nil(t, a.reports.publication.publisher, "a store without a published state")
	h.at.hub = 1
	h.publishAway(t.Context(), "Switching to hub one.")
}

// TestSetState checks the published states of steps and failures.
func TestSetState(t *testing.T) {
	publisher := &recordingPublisher{}
	a, err := newAgent(&rest.Config{Host: "https://member.example.com"}, logr.Discard(),
		Options{Store: publisher, Bootstrap: &deletableBootstrap{}})
	require.NoError(t, err)
	a.setState(lifecycle.AgentStep{Phase: lifecycle.Joined})
	a.setFailure(lifecycle.AgentStep{Phase: lifecycle.Registering}, errors.New("no"))
	require.Empty(t, publisher.set.State, "the state is not published")
	a.reports.publication.publisher, a.reports.publication.askedWith = publisher, "this"
	a.requests.reason = "NameTaken"
	a.setState(lifecycle.AgentStep{Phase: lifecycle.Registering, Message: "East is another."})
	require.Equal(t, "NameTaken", publisher.set.Reason)
	require.Equal(t, "this", publisher.set.Bootstrap)
	a.setState(lifecycle.AgentStep{Phase: lifecycle.Joining, Message: "Looking."})
	require.Empty(t, publisher.set.Reason, "the reason was that of the JoinRequest")
	a.setFailure(lifecycle.AgentStep{Phase: lifecycle.Joined}, errors.New("no"))
	require.Equal(t, lifecycle.Joining, publisher.set.State, "failures of a joined agent are not published")
	a.setFailure(lifecycle.AgentStep{Phase: lifecycle.Registering}, errors.New("no route"))
	require.Equal(t, agentstate.StepFailed, publisher.set.Reason)
	require.Contains(t, publisher.set.Message, "no route")
	a.publishState(t.Context())
	require.Empty(t, publisher.published.State, "the state is not published before the record is loaded")
	a.state.loaded = true
	a.publishState(t.Context())
	require.Equal(t, agentstate.StepFailed, publisher.published.Reason)
}
