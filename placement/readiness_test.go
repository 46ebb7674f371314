package placement_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// telling is a ReadinessNotifier.
type telling struct {
	readiness
	mu     sync.Mutex
	notify func(types.NamespacedName)
	stops  int
}

func (r *telling) Notify(_ context.Context, changed func(types.NamespacedName)) (stop func(), _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notify, r.stops = nil, r.stops+1
	}, nil
}

func (r *telling) changed(placement types.NamespacedName) {
	r.mu.Lock()
	notify := r.notify
	r.mu.Unlock()
	notify(placement)
}

func away(name string) *scheduler.Cluster {
	return cluster(name, "eu", func(c *scheduler.Cluster) {
		c.Taints = []corev1.Taint{{Key: "away", Effect: corev1.TaintEffectNoExecute}}
	})
}

// TestReadiness_Notifies checks that a ReadinessNotifier is not polled, and that its notification about a placement
// that waits for nothing causes no decision. The clock stands still, so nothing is polled.
func TestReadiness_Notifies(t *testing.T) { testkit.Virtual(t, testReadinessNotifies) }

func testReadinessNotifies(t *testing.T) {
	h, s, decider := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu")), newCounting(t)
	ready := &telling{readiness: readiness{ready: map[string]bool{"a": true}}}
	clock := clocktesting.NewFakeClock(time.Now())
	r := h.start(placement.Options{Clusters: s, Decider: decider, Ready: ready, Clock: clock})
	for _, name := range []string{"web", "other"} {
		h.evictable(name, v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	}
	observed := func() map[string]int {
		quiet(t, func() int64 { return int64(decider.total()) })
		return decider.taken()
	}
	observed()
	web, other := types.NamespacedName{Namespace: h.namespace, Name: "web"}, types.NamespacedName{Namespace: h.namespace,
		Name: "other"}
	for range 100 {
		ready.changed(web)
		ready.changed(types.NamespacedName{Namespace: h.namespace, Name: "unknown"})
	}
	require.Empty(t, observed(), "what waits for nothing is not decided again")

	h.change("other", func(p *v1alpha1.Placement) { p.Spec.Failover = nil })
	h.eventually("decided again", func() bool { return h.get("other").Status.ObservedGeneration == 2 })
	s.set(away("a"))
	h.eventually("both", func() bool { return len(h.chosen("web")) == 2 })
	observed()
	clock.Step(time.Minute)
	require.Empty(t, observed(), "nothing is polled")
	ready.changed(other)
	require.Empty(t, observed(), "that is about another")
	ready.set("b")
	ready.changed(web)
	h.eventually("it goes when the other is ready", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
	require.Equal(t, map[string]int{"web": 1}, observed())
	r.stop()
	require.Equal(t, 1, ready.stops)
}

// TestReadinessThatIsPolled checks that a Readiness that does not report changes is called every two seconds while a
// placement waits, and not afterwards.
func TestReadinessThatIsPolled(t *testing.T) { testkit.Virtual(t, testReadinessThatIsPolled) }

func testReadinessThatIsPolled(t *testing.T) {
	h, s, decider := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu")), newCounting(t)
	ready, clock := &readiness{ready: map[string]bool{"a": true}}, clocktesting.NewFakeClock(time.Now())
	h.start(placement.Options{Clusters: s, Decider: decider, Ready: placement.ReadyFunc(ready.Ready), Clock: clock})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	observed := func() int {
		quiet(t, func() int64 { return int64(decider.total()) })
		return decider.taken()["web"]
	}
	s.set(away("a"))
	h.eventually("both", func() bool { return len(h.chosen("web")) == 2 })
	observed()
	for range 3 {
		clock.Step(2 * time.Second)
		require.Equal(t, 1, observed(), "the readiness is read while a placement waits")
	}
	ready.set("b")
	clock.Step(2 * time.Second)
	h.eventually("it goes when the other is ready", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
	observed()
	clock.Step(time.Minute)
	require.Zero(t, observed(), "and not after that")
}

// TestReadinessByDefault checks that by default a cluster is ready as soon as it is published, without waiting for the
// clock.
func TestReadinessByDefault(t *testing.T) { testkit.Virtual(t, testReadinessByDefault) }

func testReadinessByDefault(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu"))
	h.start(placement.Options{Clusters: s, Clock: clocktesting.NewFakeClock(time.Now())})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	s.set(away("a"))
	h.eventually("it moves", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
}
