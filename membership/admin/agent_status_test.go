package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestJoinStatus checks the results for all states of an agent.
func TestJoinStatus(t *testing.T) {
	wanted := agentstate.State{Hub: "https://hub", Bootstrap: "this"}
	state := func(phase lifecycle.AgentPhase, reason string, change ...func(*agentstate.State)) agentstate.State {
		s := agentstate.State{State: phase, Reason: reason, Message: "Message of the agent.", Hub: wanted.Hub,
			Bootstrap: wanted.Bootstrap}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	otherToken := func(s *agentstate.State) { s.Bootstrap = "another" }
	for _, test := range []struct {
		reason string
		state  agentstate.State
		done   bool
		detail string
		err    error
	}{
		{"no report of the agent", agentstate.State{}, false, "has not reported", nil},
		{"registering", state(lifecycle.Registering, ""), false, "Message of the agent.", nil},
		{"registering, waits for acceptance", state(lifecycle.Registering, v1alpha1.ReasonWaitingForAcceptance), false,
			"Message of the agent.",
			nil},
		{"registering, hub unreachable", state(lifecycle.Registering, agentstate.HubUnreachable), false,
			"Message of the agent.", nil},
		{"registering, name reserved", state(lifecycle.Registering, v1alpha1.ReasonNameReserved), false,
			"Message of the agent.", nil},
		{"unregistered, a step failed with another token", state(lifecycle.Unregistered, agentstate.StepFailed, otherToken),
			false,
			"Message of the agent.", nil},
		{"joined", state(lifecycle.Joined, ""), true, "the member has joined", nil},
		{"joined with another token", state(lifecycle.Joined, "", otherToken), true, "the member has joined", nil},
		{"joined to another hub", state(lifecycle.Joined, "", func(s *agentstate.State) { s.Hub = "https://elsewhere" }),
			false, "https://elsewhere", nil},
		{"cluster ID belongs to another member", state(lifecycle.Registering, v1alpha1.ReasonClusterIDTaken), false, "",
			ErrClusterTaken},
		{"name belongs to another cluster", state(lifecycle.Registering, v1alpha1.ReasonNameTaken), false, "", ErrNameTaken},
		{"token refused", state(lifecycle.Rejected, v1alpha1.ReasonTokenRefused), false, "", ErrExpired},
		{"bootstrap credential refused", state(lifecycle.Rejected, agentstate.BootstrapRefused), false, "", ErrExpired},
		{"denied", state(lifecycle.Rejected, v1alpha1.ReasonDenied), false, "", ErrDenied},
		{"invalid request", state(lifecycle.Rejected, v1alpha1.ReasonInvalidRequest), false, "",
			ErrDenied},
		{"rejected with another token", state(lifecycle.Rejected, v1alpha1.ReasonTokenRefused, otherToken), false,
			"not used this join token", nil},
		{"bootstrap credential missing, report of another token",
			state(lifecycle.Rejected, agentstate.BootstrapMissing, otherToken), false,
			"not used this join token", nil},
		{"rejected without a reason", state(lifecycle.Rejected, ""), false, "Message of the agent.", nil},
		{"leaving", state(lifecycle.Leaving, ""), false, "Leaving: Message of the agent.", nil},
		{"connected to another of its hubs", state(agentstate.Away, ""), false, "Message of the agent.", nil},
	} {
		got, err := joinStatus(test.state, wanted)
		require.ErrorIs(t, err, test.err, test.reason)
		require.Equal(t, test.done, got.done, test.reason)
		require.Contains(t, got.detail, test.detail, test.reason)
	}
}

// TestJoinProgress_OldRejections covers rejections that are older than the call.
func TestJoinProgress_OldRejections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o joinProgress
		got, err := o.evaluate("before", seen{}, ErrDenied)
		require.NoError(t, err, "an old rejection may no longer apply")
		require.Contains(t, got.detail, ErrDenied.Error())
		require.ErrorIs(t, o.refusal, ErrDenied, "the rejection is stored until the agent has retried")
		_, err = o.evaluate("since", seen{}, ErrNameTaken)
		require.ErrorIs(t, err, ErrNameTaken, "a rejection after the call applies")
		<-time.After(rejectionGracePeriod) // by the bubble's clock
		_, err = o.evaluate("before", seen{}, ErrDenied)
		require.ErrorIs(t, err, ErrDenied, "after the grace period, the agent must have retried")
		got, err = o.evaluate("before", seen{detail: "soon"}, nil)
		require.NoError(t, err)
		require.Equal(t, "soon", got.detail)
		require.NoError(t, o.refusal)
	})
}

// TestRegister_Rejections registers a cluster that its hub rejects, for one reason after the other, until the hub
// accepts it.
func TestRegister_Rejections(t *testing.T) {
	testkit.Virtual(t, testRegisterRejections)
}

func testRegisterRejections(t *testing.T) {
	f := newFleet(t, newMemory(t))
	f.run()
	ctx := t.Context()
	bootstrap := f.token(v1alpha1.JoinTokenSpec{})
	wait := RegisterOptions{HubConfig: f.connect, Wait: timeLimit}
	named := &v1alpha1.MemberCluster{}
	named.Name, named.Spec.ClusterID = "refused-east", "another"
	f.create(named)
	f.runAgent("refused-east", nil)
	err := Register(ctx, f.config, bootstrap, wait)
	require.ErrorIs(t, err, ErrNameTaken)
	require.ErrorContains(t, err, "belongs to another cluster")
	require.ErrorIs(t,
		Register(ctx, f.config, bootstrap, RegisterOptions{HubConfig: f.connect, Wait: time.Second}), ErrNameTaken,
		"the stored rejection applies")

	// The name is free now, but the agent has not retried yet. Another member now has the cluster ID.
	taken := &v1alpha1.MemberCluster{}
	taken.Name, taken.Spec.ClusterID, taken.Spec.Claim = "refused-west", f.id(), strings.Repeat("a", 64)
	f.create(taken)
	require.NoError(t, f.c.Delete(ctx, named))
	reported := &steps{}
	wait.Progress = reported.record
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, wait), ErrClusterTaken)
	require.Contains(t, reported.details("wait until the agent has joined")[1], "was rejected before")

	// The member is denied, then accepted, and Register returns no error. The same applies without Events.
	require.NoError(t,
		f.c.Patch(ctx, &v1alpha1.MemberCluster{ObjectMeta: taken.ObjectMeta},
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"claim":null,"accepted":false}}`))))
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, wait), ErrDenied)
	_, err = Accept(ctx, f.config, "refused-west", DecideOptions{})
	require.NoError(t, err)
	require.NoError(t, Register(ctx, f.config, bootstrap, wait))
	mustertest.Holds(f.t, timeLimit, "all Events are deleted", func() bool {
		return f.c.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace(agent.DefaultNamespace)) == nil
	})
	require.NoError(t, Register(ctx, f.config, f.token(v1alpha1.JoinTokenSpec{}), wait),
		"a joined member needs no other token")
}

// TestRegister_UnusableToken registers a cluster with a token of another cluster ID, and then with another one.
func TestRegister_UnusableToken(t *testing.T) {
	testkit.Virtual(t, testRegisterUnusableToken)
}

func testRegisterUnusableToken(t *testing.T) {
	f := newFleet(t, newMemory(t))
	f.run()
	ctx := t.Context()
	used := f.token(v1alpha1.JoinTokenSpec{ClusterID: "another"})
	f.runAgent("used-up", nil)
	wait := RegisterOptions{HubConfig: f.connect, Wait: timeLimit}
	require.ErrorIs(t, Register(ctx, f.config, used, wait), ErrExpired)
	require.NoError(t, Register(ctx, f.config, f.token(v1alpha1.JoinTokenSpec{AutoAccept: true}), wait),
		"the rejection of the other token does not apply")
	require.True(t, f.get(&v1alpha1.MemberCluster{}, "", "used-up"))
}
