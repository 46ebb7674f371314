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

// readinessNotifier is a ReadinessNotifier.
type readinessNotifier struct {
	readiness
	mu     sync.Mutex
	notify func(types.NamespacedName)
	stops  int
}

func (r *readinessNotifier) Notify(_ context.Context, changed func(types.NamespacedName)) (stop func(), _ error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notify = changed
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notify, r.stops = nil, r.stops+1
	}, nil
}

func (r *readinessNotifier) changed(placement types.NamespacedName) {
	r.mu.Lock()
	notify := r.notify
	r.mu.Unlock()
	notify(placement)
}

func tainted(name string) *scheduler.Cluster {
	return cluster(name, "eu", func(c *scheduler.Cluster) {
		c.Taints = []corev1.Taint{{Key: "away", Effect: corev1.TaintEffectNoExecute}}
	})
}

// TestReadiness_Notifies checks that a ReadinessNotifier is not polled, and that its notification about a placement
// that waits for nothing causes no decision. The clock stands still, so nothing is polled.
func TestReadiness_Notifies(t *testing.T) { testkit.Virtual(t, testReadinessNotifies) }

func testReadinessNotifies(t *testing.T) {
	h, s, decider := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu")), newCounting(t)
	ready := &readinessNotifier{readiness: readiness{ready: map[string]bool{"a": true}}}
	clock := clocktesting.NewFakeClock(time.Now())
	r := h.start(placement.Options{Clusters: s, Decider: decider, Ready: ready, Clock: clock})
	for _, name := range []string{"web", "other"} {
		h.evictable(name, v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	}
	observed := func() map[string]int {
		quiet(t, func() int64 { return int64(decider.total()) })
		return decider.takeCounts()
	}
	observed()
	web, other := types.NamespacedName{Namespace: h.Namespace, Name: "web"}, types.NamespacedName{Namespace: h.Namespace,
		Name: "other"}
	for range 100 {
		ready.changed(web)
		ready.changed(types.NamespacedName{Namespace: h.Namespace, Name: "unknown"})
	}
	require.Empty(t, observed(), "a placement that does not wait is not decided again")

	h.change("other", func(p *v1alpha1.Placement) { p.Spec.Failover = nil })
	h.Holds("the placement is decided again", func() bool { return h.get("other").Status.ObservedGeneration == 2 })
	s.set(tainted("a"))
	h.Holds("both clusters are published", func() bool { return len(h.chosen("web")) == 2 })
	observed()
	clock.Step(time.Minute)
	require.Empty(t, observed(), "nothing is polled")
	ready.changed(other)
	require.Empty(t, observed(), "the notification is about another placement")
	ready.set("b")
	ready.changed(web)
	h.Holds("a is left when b is ready", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
	require.Equal(t, map[string]int{"web": 1}, observed())
	r.stop()
	require.Equal(t, 1, ready.stops)
}

// TestReadiness_Polled checks that a Readiness that does not report changes is called every two seconds while a
// placement waits, and not afterwards.
func TestReadiness_Polled(t *testing.T) { testkit.Virtual(t, testReadinessPolled) }

func testReadinessPolled(t *testing.T) {
	h, s, decider := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu")), newCounting(t)
	ready, clock := &readiness{ready: map[string]bool{"a": true}}, clocktesting.NewFakeClock(time.Now())
	h.start(placement.Options{Clusters: s, Decider: decider, Ready: placement.ReadyFunc(ready.Ready), Clock: clock})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	observed := func() int {
		quiet(t, func() int64 { return int64(decider.total()) })
		return decider.takeCounts()["web"]
	}
	s.set(tainted("a"))
	h.Holds("both clusters are published", func() bool { return len(h.chosen("web")) == 2 })
	observed()
	for range 3 {
		clock.Step(2 * time.Second)
		require.Equal(t, 1, observed(), "the readiness is read while a placement waits")
	}
	ready.set("b")
	clock.Step(2 * time.Second)
	h.Holds("a is left when b is ready", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
	observed()
	clock.Step(time.Minute)
	require.Zero(t, observed(), "the readiness is not read afterwards")
}

// TestReadiness_Default checks that by default a cluster is ready as soon as it is published, without waiting for the
// clock.
func TestReadiness_Default(t *testing.T) { testkit.Virtual(t, testReadinessDefault) }

func testReadinessDefault(t *testing.T) {
	h, s := newHub(t), newSource(cluster("a", "eu"), cluster("b", "eu"))
	h.start(placement.Options{Clusters: s, Clock: clocktesting.NewFakeClock(time.Now())})
	h.evictable("web", v1alpha1.PlacementSpec{Policy: pick(1), Failover: &v1alpha1.FailoverPolicy{}})
	s.set(tainted("a"))
	h.Holds("the placement moves", func() bool { return slices.Equal(h.chosen("web"), []string{"b"}) })
}
