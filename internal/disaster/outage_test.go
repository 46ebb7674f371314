package disaster

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/heartbeat"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// outage is the duration of an outage: five minutes at full length, otherwise four grace periods of a member with the
// period of the tests.
var outage = atFullLength(5*time.Minute, 4*heartbeat.DefaultGrace(time.Duration(period)*time.Second))

// TestOutage_HubUnreachable checks with one, two and five members that an outage of the hub's network deletes and moves
// nothing, not even with spec.failover: neither during the outage nor when the members return one after the other.
func TestOutage_HubUnreachable(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 5}, 170)
	w := prepareSystem(t)
	w.startHub()
	proxies := map[string]*localplane.Proxy{}
	for _, joining := range [][]string{{"a"}, {"b"}, {"c", "d", "e"}} {
		for _, name := range joining {
			proxy, err := localplane.NewProxy(w.plane.Config().Host)
			require.NoError(t, err)
			t.Cleanup(func() { _ = proxy.Close() })
			m := w.newMember(name)
			m.hub = through(proxy)
			proxies[name], w.members = proxy, append(w.members, m)
			w.register(m)
		}
		for _, m := range w.members {
			w.waitUntilJoined(m.name)
		}
		w.deploy()
		w.deployMobile()
		w.step(fmt.Sprint(len(w.members), " members"), func(*testing.T) { w.hubUnreachable(proxies) })
	}
}

// hubUnreachable cuts all members off from the hub, each by its proxy.
func (w *system) hubUnreachable(proxies map[string]*localplane.Proxy) {
	before := w.observePlaced()
	for _, m := range w.members {
		proxies[m.name].Stall()
	}
	w.requirePlacedFor(before, outage)
	// The first member that returns is the one that failover may deselect. Its return ends the outage for the other
	// members.
	slices.SortStableFunc(w.members, func(a, _ *member) int {
		if slices.Contains(before.decisions["mobile"], a.name) {
			return -1
		}
		return 0
	})
	for _, m := range w.members {
		proxies[m.name].Heal()
		w.waitUntilJoined(m.name)
		w.requirePlacedFor(before, 2*time.Second)
	}
	w.update()
	w.requirePlacedFor(before, 0)
}

// placed is the location of workloads: the clusters that Placements have selected, the Works on the hub, and the
// objects on the members.
type placed struct {
	decisions map[string][]string
	works     map[string]types.UID
	objects   map[string]map[string]types.UID // by member
}

func (w *system) observePlaced() placed {
	w.t.Helper()
	p := placed{decisions: w.decisions(), works: w.uidsOfWorks(), objects: map[string]map[string]types.UID{}}
	for _, m := range w.members {
		p.objects[m.name] = m.uids(w.t)
	}
	return p
}

// uidsOfWorks returns the UID of each Work on the hub.
func (w *system) uidsOfWorks() map[string]types.UID {
	w.t.Helper()
	var works workv1alpha1.WorkList
	require.NoError(w.t, w.client.List(context.WithoutCancel(w.t.Context()), &works))
	uids := map[string]types.UID{}
	for i := range works.Items {
		uids[client.ObjectKeyFromObject(&works.Items[i]).String()] = works.Items[i].UID
	}
	return uids
}

// decisions returns the clusters that each Placement has selected.
func (w *system) decisions() map[string][]string {
	w.t.Helper()
	var list placementv1alpha1.PlacementDecisionList
	require.NoError(w.t, w.client.List(context.WithoutCancel(w.t.Context()), &list))
	decisions := map[string][]string{}
	for i := range list.Items {
		placement := list.Items[i].Labels[placementv1alpha1.PlacementLabel]
		for _, decision := range list.Items[i].Decisions {
			decisions[placement] = append(decisions[placement], decision.ClusterName)
		}
	}
	return decisions
}

// requirePlacedFor checks for a duration that nothing is moved, deleted or re-created, on the hub and on all members.
// The hub may create further Works. The members record each deletion, so their UIDs are compared at the end only.
func (w *system) requirePlacedFor(before placed, while time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(while); ; <-time.After(500 * time.Millisecond) {
		over := time.Now().After(end)
		for _, m := range w.members {
			require.Empty(w.t, m.recorded(), "objects deleted on %s", m.name)
		}
		decisions, works := w.decisions(), w.uidsOfWorks()
		for placement, clusters := range before.decisions {
			require.ElementsMatch(w.t, clusters, decisions[placement], "clusters of Placement %s", placement)
		}
		for work, uid := range before.works {
			require.Equal(w.t, uid, works[work], "Work %s was deleted or re-created", work)
		}
		if over {
			break
		}
	}
	for _, m := range w.members {
		m.requireUnchanged(w.t, before.objects[m.name])
	}
}

// health returns the condition Healthy of a MemberCluster.
func (w *system) health(name string) metav1.ConditionStatus {
	w.t.Helper()
	cluster := &membershipv1alpha1.MemberCluster{}
	require.NoError(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, cluster))
	for _, c := range cluster.Status.Conditions {
		if c.Type == membershipv1alpha1.ConditionHealthy {
			return c.Status
		}
	}
	return ""
}
