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

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// TestSecretStore_PublishesState checks which state a store writes beside the record, and when.
func TestSecretStore_PublishesState(t *testing.T) {
	h, w := newByHand(t, "publish"), &wire{}
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
	require.NoError(t, store.publish(ctx), "there is nothing to write it on")
	require.Zero(t, writes())
	require.NoError(t, store.Save(ctx, []byte("1")))
	require.Equal(t, stored, written(), "it goes with the record")
	require.NoError(t, store.publish(ctx))
	require.NoError(t, store.publish(ctx))
	require.Equal(t, 1, writes(), "what is written is not written again")

	store.setState(agentstate.State{State: lifecycle.Joined, Hub: "https://hub"})
	require.NoError(t, store.publish(ctx))
	require.Equal(t, lifecycle.Joined, written().State)
	require.NoError(t, store.Save(ctx, []byte("2")), "its own write is not another client's")
	require.Equal(t, lifecycle.Joined, written().State, "a record keeps what is written")
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
	require.True(t, apierrors.IsConflict(store.publish(ctx)), "it speaks for a record that it does not know")
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

// TestAway checks that an agent with several hubs publishes in the Secret of the old hub that it has switched to
// another hub, if it publishes its state.
func TestAway(t *testing.T) {
	left := &recordingPublisher{}
	h, err := newHubs(&rest.Config{Host: "https://member.example.com"}, logr.Discard(), Options{Hubs: []HubOptions{
		{Name: "one", Store: left, Bootstrap: &forgetful{}}, {Name: "two", Store: &memory{}, Bootstrap: &forgetful{}},
	}})
	require.NoError(t, err)
	h.publishAway(t.Context(), "Switching to hub two.")
	require.Empty(t, left.published.State, "without a manager it publishes nothing")
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
	require.Nil(t, a.reports.publication.publisher, "a store that keeps no more than a record")
	h.at.hub = 1
	h.publishAway(t.Context(), "Switching to hub one.")
}

// TestNote checks the published states of steps and failures.
func TestNote(t *testing.T) {
	publisher := &recordingPublisher{}
	a, err := newAgent(&rest.Config{Host: "https://member.example.com"}, logr.Discard(),
		Options{Store: publisher, Bootstrap: &forgetful{}})
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
	require.Equal(t, lifecycle.Joining, publisher.set.State, "what fails for a member is its hub's to know")
	a.setFailure(lifecycle.AgentStep{Phase: lifecycle.Registering}, errors.New("no route"))
	require.Equal(t, agentstate.StepFailed, publisher.set.Reason)
	require.Contains(t, publisher.set.Message, "no route")
	a.publishState(t.Context())
	require.Empty(t, publisher.published.State, "its record is not known")
	a.state.loaded = true
	a.publishState(t.Context())
	require.Equal(t, agentstate.StepFailed, publisher.published.Reason)
}
