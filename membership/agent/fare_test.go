package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

// TestFare is about what a store writes beside the record, and when.
func TestFare(t *testing.T) {
	h, w := newByHand(t, "fare"), &wire{}
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
	held := agentstate.State{State: lifecycle.Registering, Reason: "NameTaken", Message: "East is another."}
	store.note(held)
	require.NoError(t, store.tell(ctx), "there is nothing to write it on")
	require.Zero(t, writes())
	require.NoError(t, store.Save(ctx, []byte("1")))
	require.Equal(t, held, written(), "it goes with the record")
	require.NoError(t, store.tell(ctx))
	require.NoError(t, store.tell(ctx))
	require.Equal(t, 1, writes(), "what is written is not written again")

	store.note(agentstate.State{State: lifecycle.Joined, Hub: "https://hub"})
	require.NoError(t, store.tell(ctx))
	require.Equal(t, lifecycle.Joined, written().State)
	require.NoError(t, store.Save(ctx, []byte("2")), "its own write is none of somebody else")
	require.Equal(t, lifecycle.Joined, written().State, "a record keeps what is written")
	require.Equal(t, 2, writes())

	// Somebody puts a label on it, and then another record there.
	secret, err := secrets.Get(ctx, "s", metav1.GetOptions{})
	require.NoError(t, err)
	secret.Labels = map[string]string{"a": "b"}
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	store.note(held)
	require.NoError(t, store.tell(ctx))
	require.Equal(t, held, written())
	secret, err = secrets.Get(ctx, "s", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "b", secret.Labels["a"])
	secret.Data[recordKey] = []byte("3")
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	store.note(agentstate.State{State: lifecycle.Joined})
	require.True(t, apierrors.IsConflict(store.tell(ctx)), "it speaks for a record that it does not know")
	_, err = store.Load(ctx)
	require.NoError(t, err)
	require.NoError(t, store.tell(ctx))
	require.Equal(t, lifecycle.Joined, written().State)
	require.NoError(t, secrets.Delete(ctx, "s", metav1.DeleteOptions{}))
	store.note(held)
	require.Error(t, store.tell(ctx), "somebody has thrown the record away")
}
