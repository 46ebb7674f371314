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
)

// TestReplicas runs two replicas of a hub, and checks the connections of the one that is not the leader: without a
// Provider, with one, and after it becomes the leader.
func TestReplicas(t *testing.T) {
	p := plane.ForTest(t)
	election := manager.Options{
		LeaderElection: true, LeaderElectionID: "replicas", LeaderElectionNamespace: metav1.NamespaceDefault,
		LeaderElectionReleaseOnCancel: true,
		LeaderElectionConfig:          p.Config(), RetryPeriod: new(200 * time.Millisecond),
	}
	first, second := newRecorder(), newRecorder()
	// The leader sends requests to the member only after a change of its Secret. All other requests are those of the
	// second replica.
	leader := startReplica(t, p, fleet.Options{Runners: []fleet.Runner{first}, ProbeInterval: time.Hour}, election)
	<-leader.elected
	f := newFake(t, uidA)
	leader.member("replicas", f.data())
	leader.reachable("replicas", v1alpha1.ReasonReachable)
	leader.joined("replicas", metav1.ConditionTrue)
	leaderCall := first.called(t)
	f.requests.take()

	other := startReplica(t, p, fleet.Options{Runners: []fleet.Runner{second}}, election)
	requireFollower := func() { // it does no work of the leader
		t.Helper()
		for _, request := range other.requests.take() {
			require.True(t, strings.HasPrefix(request, http.MethodGet), "a replica that is not the leader must not write: %s",
				request)
		}
		second.requireNotCalled(t)
		select {
		case <-other.elected:
			t.Fatal("the second replica is the leader, want the first")
		default:
		}
	}

	// Without a Provider, the second replica reads the member's Secret, but does not connect to the member.
	const secretPath, reviewPath = "GET /api/v1/namespaces/muster-connections/secrets/replicas",
		"GET /api/v1/namespaces/kube-system"
	const rotations = 3
	reviews := 0
	for i := range rotations {
		f.token.Store(fmt.Sprintf("token-%d", i))
		leader.secret("replicas", f.data())
		read := 0
		leader.Eventually("the leader uses the new Secret, and the other replica has read it",
			func() error {
				reviews += count(f.requests.take(), reviewPath)
				read += count(other.requests.take(), secretPath)
				return orError(reviews > i && read > 0, "%d reviews, %d reads of the Secret", reviews, read)
			})
	}
	require.Equal(t, rotations, reviews, "a replica that is not the leader and runs no Provider must not connect")
	requireFollower()

	// With a Provider, it connects to the member, but does not report the result.
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
	waitForProbes := func(times int) {
		t.Helper()
		probes := 0
		leader.Eventually("the second replica probes the member", func() error {
			probes += count(f.requests.take(), "GET /readyz")
			return orError(probes >= times, "%d probes", probes)
		})
	}
	f.fails.Store(true)
	before := leader.get("replicas").ResourceVersion
	waitForProbes(10) // far more than the leader needs to report the failure
	require.Equal(t, before, leader.get("replicas").ResourceVersion)
	require.NoError(t, e.ctx.Err(), "a live cluster stays engaged while the member does not respond")
	f.fails.Store(false)
	waitForProbes(1)
	requireFollower()

	// When the Provider stops, its connections are closed.
	end()
	<-e.ctx.Done()
	require.NoError(t, <-ended)
	leader.Eventually("the connections of the Provider are closed", func() error {
		open := f.open.Load()
		return orError(open == 0, "%d connections are open", open)
	})
	f.requests.take()
	e, end = provide()
	defer end()

	// The leader stops, and the second replica becomes the leader: its live clusters stay, and it continues the work of
	// the former leader.
	leader.stop()
	leaderCall.wait(t)
	<-other.elected
	c := second.called(t)
	require.NoError(t, e.ctx.Err(), "the live clusters of the new leader stay")
	waitForProbes(3)
	require.Equal(t, before, leader.get("replicas").ResourceVersion, "a new leader does not repeat writes")
	status, err := c.get("/mine")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	f.fails.Store(true)
	other.reachable("replicas", v1alpha1.ReasonUnreachable)
}

func count(requests []string, wanted string) (n int) {
	for _, request := range requests {
		if request == wanted {
			n++
		}
	}
	return n
}
