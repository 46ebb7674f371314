package hub_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// site is the label that the policy of this test uses.
const site = "example.com/site"

// siteAcceptor accepts known sites, and records the requests.
type siteAcceptor struct {
	mu       sync.Mutex
	requests map[string]*v1alpha1.JoinRequest

	slow chan struct{} // closed: requests of the site "slow" are accepted
	busy atomic.Int64  // the calls in progress for that site
	most atomic.Int64  // the maximum of busy
}

func (a *siteAcceptor) Accept(ctx context.Context, request *v1alpha1.JoinRequest) (membership.Acceptance, error) {
	a.mu.Lock()
	a.requests[request.Spec.Name] = request
	a.mu.Unlock()
	switch request.Spec.Labels[site] {
	case "ours":
		return membership.Acceptance{Decision: membership.Accept, Reason: "One of ours."}, nil
	case "theirs":
		return membership.Acceptance{Decision: membership.Deny, Reason: "None of ours."}, nil
	case "slow":
		if busy := a.busy.Add(1); busy > a.most.Load() {
			a.most.Store(busy)
		}
		defer a.busy.Add(-1)
		select {
		case <-a.slow:
			return membership.Acceptance{Decision: membership.Accept}, nil
		case <-ctx.Done():
			return membership.Acceptance{}, ctx.Err()
		}
	case "unknown":
		return membership.Acceptance{}, errors.New("no route to the inventory")
	default:
		return membership.Acceptance{Decision: membership.Hold, Reason: "Say where it is."}, nil
	}
}

func (a *siteAcceptor) request(name string) *v1alpha1.JoinRequest {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.requests[name]
}

// TestAcceptor_DecidesWithoutJoinRequest checks that the policy for JoinRequests also decides on members whose agent
// sends no JoinRequest before a decision.
func TestAcceptor_DecidesWithoutJoinRequest(t *testing.T) {
	testkit.Virtual(t, testAcceptorDecidesWithoutJoinRequest)
}

func testAcceptorDecidesWithoutJoinRequest(t *testing.T) {
	acceptor := &siteAcceptor{requests: map[string]*v1alpha1.JoinRequest{}, slow: make(chan struct{})}
	var counted requests
	h := startHub(t, newMemory(t), hub.Options{Acceptor: acceptor, Workers: 2}, counted.wrap)
	for _, test := range []struct {
		name, reason string
		mode         v1alpha1.JoinMode
		site         string
		accepted     *bool // by an administrator
		called       bool
		want         *bool // spec.accepted
		phase        v1alpha1.Phase
		cause, text  string // the reason and message of the condition Accepted
	}{
		{
			name:   "sites-ours",
			reason: "the Acceptor accepts a member whose agent the hub runs", mode: v1alpha1.JoinPush, site: "ours",
			called: true,
			want:   new(true), phase: v1alpha1.PhaseAccepted, cause: v1alpha1.ReasonAccepted,
			text: "The cluster is accepted.",
		},
		{
			name:   "sites-installed",
			reason: "the Acceptor accepts a member whose agent the hub installs", mode: v1alpha1.JoinInstall,
			site: "ours", called: true,
			want: new(true), phase: v1alpha1.PhaseAccepted, cause: v1alpha1.ReasonAccepted, text: "The cluster is accepted.",
		},
		{
			name:   "sites-theirs",
			reason: "the Acceptor denies the member, and an administrator can accept it", mode: v1alpha1.JoinPush,
			site:   "theirs",
			called: true,
			phase:  v1alpha1.PhaseDenied, cause: v1alpha1.ReasonDenied,
			text: "The hub's policy denies the cluster: set spec.accepted to true to accept the cluster anyway. Reason: None " +
				"of ours.",
		},
		{
			name:   "sites-nowhere",
			reason: "the Acceptor returns Hold, and the message has the next step", mode: v1alpha1.JoinPush, called: true,
			phase: v1alpha1.PhasePending, cause: v1alpha1.ReasonNotDecided,
			text: "No administrator has decided: set spec.accepted to true to accept the cluster, or to false to deny it. The " +
				"hub's policy says: Say where it is.",
		},
		{
			name:   "sites-unknown",
			reason: "the Acceptor fails, and an administrator can decide", mode: v1alpha1.JoinPush, site: "unknown",
			called: true,
			phase:  v1alpha1.PhasePending, cause: v1alpha1.ReasonPolicyFailed,
			text: "The hub's policy failed and is retried. To decide without the policy, set spec.accepted. Error: call the " +
				"Acceptor: no route to the inventory",
		},
		{
			name:   "sites-refused",
			reason: "the decision of an administrator has precedence", mode: v1alpha1.JoinPush, site: "ours",
			accepted: new(false),
			want:     new(false), phase: v1alpha1.PhaseDenied, cause: v1alpha1.ReasonDenied,
			text: "The cluster is denied, or its acceptance was withdrawn: set spec.accepted to true to accept the cluster.",
		},
		{
			name: "sites-pulled", reason: "the Acceptor decides on the JoinRequest", mode: v1alpha1.JoinPull, site: "ours",
			phase: v1alpha1.PhasePending, cause: v1alpha1.ReasonNotDecided,
			text: "No administrator has decided: set spec.accepted to true to accept the cluster, or to false to deny it.",
		},
	} {
		testkit.Step(t, test.name, func() {
			cluster := atSite(test.name, test.site, test.mode)
			cluster.Spec.Accepted = test.accepted
			h.Create(cluster)
			h.untilPhase(test.name, test.phase)
			cluster = h.untilCondition(test.name, v1alpha1.ConditionAccepted, conditionStatus(test.want), test.cause)
			require.Equal(t, test.text,
				meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAccepted).Message,
				test.reason)
			require.Equal(t, test.want, cluster.Spec.Accepted, test.reason)

			request := acceptor.request(test.name)
			require.Equal(t, test.called, request != nil, test.reason)
			if test.called {
				require.Empty(t, request.UID, "the request does not exist on the hub")
				require.Equal(t, v1alpha1.JoinRequestSpec{
					Name: test.name, MemberUID: cluster.UID, ClusterID: "id-" + test.name, Labels: cluster.Labels,
				}, request.Spec)
			}
		})
	}

	// The decisions are in the status. Without a change, the hub writes nothing.
	pause(time.Second)
	counted.take()
	pause(2 * time.Second)
	require.Empty(t, writes(counted.take()))
	_, columns := crdtest.Columns(t, h.Config, "/apis/membership.muster.dev/v1alpha1/memberclusters/sites-nowhere")
	require.Equal(t, "Pending", columns["Phase"])
	require.Contains(t, columns["Why"], "set spec.accepted to true")

	// A slow Acceptor delays no other member.
	slow := []string{"sites-slow-1", "sites-slow-2"}
	for _, name := range slow {
		h.Create(atSite(name, "slow", v1alpha1.JoinPush))
	}
	h.Eventually("the Acceptor is called for the slow site",
		func() error { return orError(acceptor.busy.Load() > 0, "the Acceptor is not called") })
	h.change("sites-refused", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	h.untilPhase("sites-refused", v1alpha1.PhaseAccepted)
	close(acceptor.slow)
	for _, name := range slow {
		h.untilPhase(name, v1alpha1.PhaseAccepted)
	}
	require.EqualValues(t, 1, acceptor.most.Load(), "one of two workers is free for other members")

	// Changes cause another decision, and the decision of an administrator has precedence.
	for _, name := range []string{"sites-nowhere", "sites-unknown"} {
		h.change(name, func(c *v1alpha1.MemberCluster) { c.Labels[site] = "ours" })
	}
	h.change("sites-theirs", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	for _, name := range []string{"sites-nowhere", "sites-unknown", "sites-theirs"} {
		h.untilPhase(name, v1alpha1.PhaseAccepted)
	}
	h.change("sites-ours", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(false) })
	h.untilPhase("sites-ours", v1alpha1.PhaseDenied)

	var all v1alpha1.MemberClusterList
	require.NoError(t, h.Client.List(t.Context(), &all))
	for i := range all.Items {
		require.NoError(t, h.Client.Delete(t.Context(), &all.Items[i]))
	}
	for i := range all.Items {
		h.untilGone(all.Items[i].Name)
	}
}

func atSite(name, at string, mode v1alpha1.JoinMode) *v1alpha1.MemberCluster {
	return &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{site: at}},
		Spec: v1alpha1.MemberClusterSpec{
			JoinMode: mode, ClusterID: "id-" + name, KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Name: name},
		},
	}
}

func conditionStatus(accepted *bool) metav1.ConditionStatus {
	if accepted != nil && *accepted {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}
