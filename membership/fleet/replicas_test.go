package fleet_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestReplicas runs two replicas of a hub, and checks the connections of the one that is not the leader: without a
// Provider, with one, and after it becomes the leader.
func TestReplicas(t *testing.T) {
	election := manager.Options{
		LeaderElection: true, LeaderElectionID: "replicas", LeaderElectionNamespace: metav1.NamespaceDefault,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:          plane.ForTest(t).Config(), RetryPeriod: new(200 * time.Millisecond),
	}
	first, second := newRecorder(), newRecorder()
	// The leader asks the member when its Secret has changed, and not again: whatever else the member is asked is the
	// other's.
	leader := startReplica(t, fleet.Options{Runners: []fleet.Runner{first}, ProbeInterval: time.Hour}, election)
	<-leader.leads
	f := newFake(t, uidA)
	leader.member("replicas", f.data())
	leader.reachable("replicas", v1alpha1.ReasonReachable)
	leader.joined("replicas", metav1.ConditionTrue)
	led := first.called(t)
	f.requests.take()

	other := startReplica(t, fleet.Options{Runners: []fleet.Runner{second}}, election)
	follows := func() { // it does nothing that is the leader's
		t.Helper()
		for _, request := range other.requests.take() {
			require.True(t, strings.HasPrefix(request, http.MethodGet), "a replica that does not lead writes: %s", request)
		}
		second.quiet(t)
		select {
		case <-other.leads:
			t.Fatal("it leads")
		default:
		}
	}

	// Without a Provider it knows the member's Secret, and does not go there.
	const secretPath, reviewPath = "GET /api/v1/namespaces/muster-connections/secrets/replicas",
		"GET /api/v1/namespaces/kube-system"
	const rotations = 3
	reviews := 0
	for i := range rotations {
		f.token.Store(fmt.Sprintf("token-%d", i))
		leader.secret("replicas", f.data())
		read := 0
		mustertest.Eventually(t, maxFailures, "the leader goes by the new Secret, and the other has read it", func() error {
			reviews += count(f.requests.take(), reviewPath)
			read += count(other.requests.take(), secretPath)
			return orError(reviews > i && read > 0, "asked %d times, read %d times", reviews, read)
		})
	}
	require.Equal(t, rotations, reviews, "a replica that neither leads nor has a Provider started makes connections")
	follows()

	// With one it does, and says nothing of what it finds.
	provider := fleet.NewProvider[clusterName, aware](other.fleet, fleet.ProviderOptions{})
	many := &managerOfMany{engaged: make(chan engagement, 10)}
	ended := make(chan error, 1)
	provide := func() (engagement, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { ended <- provider.Start(ctx, many) }()
		return <-many.engaged, cancel
	}
	e, end := provide()
	live, err := provider.Get(t.Context(), "replicas")
	require.NoError(t, err)
	require.Same(t, e.live, live)
	probed := func(times int) {
		t.Helper()
		seen := 0
		mustertest.Eventually(t, maxFailures, "it probes the member", func() error {
			seen += count(f.requests.take(), "GET /readyz")
			return orError(seen >= times, "%d times", seen)
		})
	}
	f.fails.Store(true)
	before := leader.get("replicas").ResourceVersion
	probed(10) // far more than it takes the leader to say so
	require.Equal(t, before, leader.get("replicas").ResourceVersion)
	require.NoError(t, e.ctx.Err(), "a live cluster outlives a time without an answer")
	f.fails.Store(false)
	probed(1)
	follows()

	// With the end of the Provider its connections end.
	end()
	<-e.ctx.Done()
	require.NoError(t, <-ended)
	mustertest.Eventually(t, maxFailures, "its connections are closed", func() error {
		open := f.open.Load()
		return orError(open == 0, "%d are open", open)
	})
	f.requests.take()
	e, end = provide()
	defer end()

	// The leader ends, and the other leads: it has what it had, and does what was the leader's, from where that stopped.
	leader.stop()
	led.wait(t)
	<-other.leads
	c := second.called(t)
	require.NoError(t, e.ctx.Err(), "its live clusters are those that it had")
	probed(3)
	require.Equal(t, before, leader.get("replicas").ResourceVersion, "what is written is not written again")
	status, err := c.get("/mine")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	f.fails.Store(true)
	other.reachable("replicas", v1alpha1.ReasonUnreachable)
}

func count(requests []string, what string) (n int) {
	for _, request := range requests {
		if request == what {
			n++
		}
	}
	return n
}
