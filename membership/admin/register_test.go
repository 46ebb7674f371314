package admin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestRegister(t *testing.T) {
	f := newFleet(t)
	f.run()
	ctx := t.Context()
	bootstrap := f.token(v1alpha1.JoinTokenSpec{})
	given := func() *registration.Bootstrap {
		t.Helper()
		var secret corev1.Secret
		if !f.get(&secret, agent.DefaultNamespace, agent.DefaultBootstrapSecret) {
			return nil
		}
		b, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
		require.NoError(t, err)
		return b
	}

	wrong := *bootstrap
	wrong.Server = "https://127.0.0.1:1"
	err := Register(ctx, f.config, &wrong, RegisterOptions{})
	var unreachable *UnreachableError
	require.ErrorAs(t, err, &unreachable)
	require.Equal(t, Hub, unreachable.Which)
	ended := *bootstrap
	ended.Token = "secret-words"
	err = Register(ctx, f.config, &ended, RegisterOptions{})
	require.ErrorIs(t, err, ErrExpired)
	require.NotContains(t, err.Error(), ended.Token)
	require.Error(t, Register(ctx, f.plane.User("nobody"), bootstrap, RegisterOptions{}))
	require.Nil(t, given(), "nothing has been changed")

	require.NoError(t, Register(ctx, f.config, &wrong, RegisterOptions{Unchecked: true}), "this machine need not reach the hub")
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, RegisterOptions{}), ErrClusterTaken)
	require.Equal(t, wrong.Server, given().Server)
	require.NoError(t, Register(ctx, f.config, bootstrap, RegisterOptions{Replace: true}))
	require.NoError(t, Register(ctx, f.config, bootstrap, RegisterOptions{}), "twice is harmless")
	next := f.token(v1alpha1.JoinTokenSpec{})
	require.NoError(t, Register(ctx, f.config, next, RegisterOptions{}), "another token of the same hub replaces the one before")
	require.Equal(t, next.TokenName, given().TokenName)

	var invalid *membership.InvalidError
	require.ErrorAs(t, Register(ctx, f.config, nil, RegisterOptions{}), &invalid)
	require.ErrorAs(t, Register(ctx, f.config, &registration.Bootstrap{}, RegisterOptions{}), &invalid)
	require.Error(t, Register(ctx, nil, bootstrap, RegisterOptions{}))
	gone := rest.CopyConfig(f.config)
	gone.Host = "https://127.0.0.1:1"
	require.ErrorAs(t, Register(ctx, gone, bootstrap, RegisterOptions{}), &unreachable)
	require.Equal(t, Member, unreachable.Which)
}

// TestTold is about what the Events of an agent say.
func TestTold(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	event := func(reason string, after time.Duration) eventsv1.Event {
		return eventsv1.Event{Reason: reason, Note: "Its words.", EventTime: metav1.NewMicroTime(at.Add(after)), Regarding: corev1.ObjectReference{Name: agent.DefaultStoreSecret}}
	}
	series := event("Rejected", 0)
	series.Series = &eventsv1.EventSeries{LastObservedTime: metav1.NewMicroTime(at.Add(time.Hour))}
	waits := func(after time.Duration) eventsv1.Event {
		e := event(v1alpha1.ReasonIssueFailed, after)
		e.Action, e.Note = agent.ActionRegister, "There is no signer."
		return e
	}
	elsewhere := event("Joined", time.Hour)
	elsewhere.Regarding.Name = "another"
	for _, test := range []struct {
		reason string
		events []eventsv1.Event
		done   bool
		err    error
	}{
		{"what it waits for is no end", []eventsv1.Event{waits(0)}, false, nil},
		{"it has waited for that, and joined", []eventsv1.Event{waits(0), event("Joined", time.Minute)}, true, nil},
		{"it has been denied before, and waits now", []eventsv1.Event{event("Rejected", 0), waits(time.Minute)}, false, nil},
		{"nobody has said anything", nil, false, nil},
		{"it has joined", []eventsv1.Event{event("Joined", 0)}, true, nil},
		{"the last counts", []eventsv1.Event{event("Joined", time.Minute), event("Rejected", 0)}, true, nil},
		{"in whatever order", []eventsv1.Event{event("Left", time.Minute), event("Joined", 0)}, false, nil},
		{"one that is seen again is as new as that", []eventsv1.Event{series, event("Joined", time.Minute)}, false, ErrDenied},
		{"others are not about the phase", []eventsv1.Event{event("Joined", 0), event("CompanionFailed", time.Minute)}, true, nil},
		{"nor about the agent", []eventsv1.Event{elsewhere}, false, nil},
	} {
		got, err := told(test.events)
		require.ErrorIs(t, err, test.err, test.reason)
		require.Equal(t, test.done, got.done, test.reason)
		require.True(t, err != nil || got.detail != "", "a reason is always told: %s", test.reason)
	}
	got, err := told([]eventsv1.Event{waits(0)})
	require.NoError(t, err)
	require.Equal(t, "There is no signer.", got.detail, "in the words of the hub")
}
