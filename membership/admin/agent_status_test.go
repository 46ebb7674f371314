package admin

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestJoinStatus checks the results for all states of an agent.
func TestJoinStatus(t *testing.T) {
	wanted := agentstate.State{Hub: "https://hub", Bootstrap: "this"}
	says := func(phase lifecycle.AgentPhase, reason string, change ...func(*agentstate.State)) agentstate.State {
		s := agentstate.State{State: phase, Reason: reason, Message: "Its words.", Hub: wanted.Hub,
			Bootstrap: wanted.Bootstrap}
		for _, c := range change {
			c(&s)
		}
		return s
	}
	before := func(s *agentstate.State) { s.Bootstrap = "another" }
	for _, test := range []struct {
		reason string
		state  agentstate.State
		done   bool
		detail string
		err    error
	}{
		{"it has said nothing", agentstate.State{}, false, "has not reported", nil},
		{"it is on its way", says(lifecycle.Registering, ""), false, "Its words.", nil},
		{"it waits for acceptance", says(lifecycle.Registering, v1alpha1.ReasonWaitingForAcceptance), false, "Its words.",
			nil},
		{"it waits for the hub", says(lifecycle.Registering, agentstate.HubUnreachable), false, "Its words.", nil},
		{"a name that an administrator has to give to it", says(lifecycle.Registering, v1alpha1.ReasonNameReserved), false,
			"Its words.", nil},
		{"something is wrong where it runs", says(lifecycle.Unregistered, agentstate.StepFailed, before), false,
			"Its words.", nil},
		{"it is in", says(lifecycle.Joined, ""), true, "the member has joined", nil},
		{"it came in by another token", says(lifecycle.Joined, "", before), true, "the member has joined", nil},
		{"it is in another hub", says(lifecycle.Joined, "", func(s *agentstate.State) { s.Hub = "https://elsewhere" }),
			false, "https://elsewhere", nil},
		{"the cluster is another member", says(lifecycle.Registering, v1alpha1.ReasonClusterIDTaken), false, "",
			ErrClusterTaken},
		{"the name is another cluster's", says(lifecycle.Registering, v1alpha1.ReasonNameTaken), false, "", ErrNameTaken},
		{"the token is used up", says(lifecycle.Rejected, v1alpha1.ReasonTokenRefused), false, "", ErrExpired},
		{"the credential has ended", says(lifecycle.Rejected, agentstate.BootstrapRefused), false, "", ErrExpired},
		{"it is denied", says(lifecycle.Rejected, v1alpha1.ReasonDenied), false, "", ErrDenied},
		{"the hub makes nothing of what it asks", says(lifecycle.Rejected, v1alpha1.ReasonInvalidRequest), false, "",
			ErrDenied},
		{"it was denied with another token", says(lifecycle.Rejected, v1alpha1.ReasonTokenRefused, before), false,
			"not used this join token", nil},
		{"it has nothing to ask with, as it knows", says(lifecycle.Rejected, agentstate.BootstrapMissing, before), false,
			"not used this join token", nil},
		{"the hub refuses it, and it asks why", says(lifecycle.Rejected, ""), false, "Its words.", nil},
		{"it leaves", says(lifecycle.Leaving, ""), false, "Leaving: Its words.", nil},
		{"it is at another of its hubs", says(agentstate.Away, ""), false, "Its words.", nil},
	} {
		got, err := joinStatus(test.state, wanted)
		require.ErrorIs(t, err, test.err, test.reason)
		require.Equal(t, test.done, got.done, test.reason)
		require.Contains(t, got.detail, test.detail, test.reason)
	}
}

// TestWeigh covers rejections that are older than the call.
func TestWeigh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o joinProgress
		got, err := o.evaluate("before", seen{}, ErrDenied)
		require.NoError(t, err, "the hub may think otherwise by now")
		require.Contains(t, got.detail, ErrDenied.Error())
		require.ErrorIs(t, o.refusal, ErrDenied, "it stands until the agent has asked again")
		_, err = o.evaluate("since", seen{}, ErrNameTaken)
		require.ErrorIs(t, err, ErrNameTaken, "that was written a moment ago")
		<-time.After(rejectionGracePeriod) // by the bubble's clock
		_, err = o.evaluate("before", seen{}, ErrDenied)
		require.ErrorIs(t, err, ErrDenied, "it must have asked again")
		got, err = o.evaluate("before", seen{detail: "soon"}, nil)
		require.NoError(t, err)
		require.Equal(t, "soon", got.detail)
		require.NoError(t, o.refusal)
	})
}

// TestRefused registers a cluster that its hub rejects, for one reason after the other, until the hub accepts it.
func TestRefused(t *testing.T) {
	f := newFleet(t)
	f.run()
	ctx := t.Context()
	bootstrap := f.token(v1alpha1.JoinTokenSpec{})
	wait := RegisterOptions{Wait: timeLimit}
	named := &v1alpha1.MemberCluster{}
	named.Name, named.Spec.ClusterID = "refused-east", "another"
	f.create(named)
	f.attend("refused-east", nil)
	err := Register(ctx, f.config, bootstrap, wait)
	require.ErrorIs(t, err, ErrNameTaken)
	require.ErrorContains(t, err, "belongs to another cluster")
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, RegisterOptions{Wait: time.Second}), ErrNameTaken,
		"it applies")

	// The name is free now, which the agent does not know yet; another member has its cluster's ID instead.
	taken := &v1alpha1.MemberCluster{}
	taken.Name, taken.Spec.ClusterID, taken.Spec.Claim = "refused-west", f.id(), strings.Repeat("a", 64)
	f.create(taken)
	require.NoError(t, f.c.Delete(ctx, named))
	reported := &steps{}
	wait.Progress = reported.record
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, wait), ErrClusterTaken)
	require.Contains(t, reported.details("wait until the agent has joined")[1], "was rejected before")

	// Denied, then let in. That is so without Events.
	require.NoError(t,
		f.c.Patch(ctx, &v1alpha1.MemberCluster{ObjectMeta: taken.ObjectMeta},
			client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"claim":null,"accepted":false}}`))))
	require.ErrorIs(t, Register(ctx, f.config, bootstrap, wait), ErrDenied)
	_, err = Accept(ctx, f.config, "refused-west", DecideOptions{})
	require.NoError(t, err)
	require.NoError(t, Register(ctx, f.config, bootstrap, wait))
	mustertest.Holds(f.t, timeLimit, "there are no events", func() bool {
		return f.c.DeleteAllOf(ctx, &eventsv1.Event{}, client.InNamespace(agent.DefaultNamespace)) == nil
	})
	require.NoError(t, Register(ctx, f.config, f.token(v1alpha1.JoinTokenSpec{}), wait), "it is in, whatever it is given")
}

// TestUsedUp registers a cluster with a token that is used up, and then with another one.
func TestUsedUp(t *testing.T) {
	f := newFleet(t)
	f.run()
	ctx := t.Context()
	used := f.token(v1alpha1.JoinTokenSpec{ClusterID: "another"})
	f.attend("used-up", nil)
	wait := RegisterOptions{Wait: timeLimit}
	require.ErrorIs(t, Register(ctx, f.config, used, wait), ErrExpired)
	require.NoError(t, Register(ctx, f.config, f.token(v1alpha1.JoinTokenSpec{AutoAccept: true}), wait),
		"what was said of the other token does not count")
	require.True(t, f.get(&v1alpha1.MemberCluster{}, "", "used-up"))
}
