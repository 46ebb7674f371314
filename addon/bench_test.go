package addon_test

import (
	"context"
	"flag"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// The benchmarks of a fleet:
//
//	go test -run '^$' -bench . -benchtime 1x -timeout 30m ./addon -args -members 500
var benchMembers = flag.Int("members", 100, "how many members the benchmarks of add-ons have")

// fleet creates healthy members that the Placement "all" selects.
func (h *hub) fleet(n int) (names []string) {
	h.T.Helper()
	for i := range n {
		names = append(names, fmt.Sprintf("m%04d", i))
	}
	require.NoError(h.T, testkit.InParallel(names, func(name string) error { h.members(name); return nil }))
	h.choose("all", names...)
	return names
}

// BenchmarkInstall installs a new Addon on all members, until the last Work is written. The floor is the creation of
// a MemberAddon and a Work like these for each member with as many writers.
func BenchmarkInstall(b *testing.B) {
	h := newHubOnPlane(b)
	names := h.fleet(testkit.Size(*benchMembers))
	creates := &testkit.Created{Resource: "works"}
	h.wrap = creates.Wrap
	h.manage = func(o *manager.Options) { // the controllers ignore the objects of the floor
		ofAddons, err := labels.Parse(v1alpha1.AddonLabel)
		require.NoError(b, err)
		o.Cache.ByObject = map[client.Object]cache.ByObject{&v1alpha1.MemberAddon{}: {Label: ofAddons}}
	}
	agents := []addon.Agent{echo{h.name("first")}}
	for i := range b.N {
		agents = append(agents, echo{h.name(fmt.Sprintf("echo-%d", i))})
	}
	r := h.start(addon.Options{Agents: agents})
	spread := func(name string) {
		done := creates.Expect(len(names))
		h.addon(name, h.byPlacement("all"))
		<-done
	}
	// The first object of a kind takes longer, and so does the first in a namespace.
	h.bare("first-bare", names)
	spread("first")
	r.quiet(b)
	var cost testkit.Cost
	for i := range b.N {
		name := fmt.Sprintf("echo-%d", i)
		started := time.Now()
		h.bare(name+"-bare", names)
		cost.Floor += time.Since(started)
		r.quiet(b)

		started = time.Now()
		spread(name)
		cost.Spent += time.Since(started)
		r.quiet(b)
	}
	cost.Report(b, b.N*len(names), "member")
	b.ReportMetric(float64(r.wire.Writes()["PATCH memberaddons/status"])/float64((b.N+1)*len(names)),
		"status-writes/member")
}

// bare creates MemberAddons and Works as the controllers would, without owners.
func (h *hub) bare(name string, members []string) {
	h.T.Helper()
	create := func(object func(member string) client.Object) {
		require.NoError(h.T, testkit.InParallel(members, func(member string) error {
			return h.Client.Create(h.T.Context(), object(member))
		}))
	}
	marks := map[string]string{"example.com/addon": h.name(name)}
	create(func(m string) client.Object {
		return &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.namespaceOf(m), Name: h.name(name), Labels: marks,
			Annotations: map[string]string{"example.com/by": h.Namespace + "/all"},
			Finalizers:  []string{"example.com/bare"},
		}}
	})
	create(func(m string) client.Object {
		return &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: h.namespaceOf(m), Name: "bare-" + h.name(name) + "-0", Labels: marks,
				Finalizers: []string{"example.com/bare"},
				Annotations: map[string]string{"example.com/revision": name,
					"example.com/since": time.Now().Format(time.RFC3339Nano)},
			},
			Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(
				fmt.Sprintf(
					`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"muster-addons","name":%q},"data":{"member":%q,`+
						`"color":""}}`, h.name(name), h.name(m)))}}}},
		}
	})
}

// BenchmarkRestart starts the controllers with everything in place, until the workqueues are empty. Nothing is
// written.
func BenchmarkRestart(b *testing.B) {
	h := newHubOnPlane(b)
	names := h.fleet(testkit.Size(*benchMembers))
	h.runAgents()
	options := addon.Options{Agents: []addon.Agent{counting{echo{h.name("echo")}, nil}}}
	first := h.start(options)
	h.addon("echo", h.byPlacement("all"))
	require.Eventually(b, func() bool {
		s := h.get("echo").Status
		return s.Counts.Available == int32(len(names)) && s.Counts.Updated == s.Counts.Available
	}, 5*time.Minute, 50*time.Millisecond)
	first.quiet(b)
	first.stop()

	var spent time.Duration
	for range b.N {
		called := &userChanges{left: len(names), of: map[string]bool{}, done: make(chan struct{})}
		options.Agents = []addon.Agent{counting{echo{h.name("echo")}, called}}
		started := time.Now()
		r := h.start(options)
		<-called.done
		spent += time.Since(started)
		r.quiet(b)
		require.Empty(b, r.wire.Writes())
		r.stop()
	}
	b.ReportMetric(spent.Seconds()*1e3/float64(b.N), "ms/restart")
	b.ReportMetric(0, "ns/op")
}

// counting is an add-on that records the members for which it was called.
type counting struct {
	echo
	*userChanges
}

type userChanges struct {
	mu   sync.Mutex
	left int
	of   map[string]bool
	done chan struct{} // closed after the last member
}

func (c counting) Manifests(ctx context.Context, in addon.Input) ([]client.Object, error) {
	if c.userChanges != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.of[in.Member.Name] {
			c.of[in.Member.Name] = true
			if len(c.of) == c.left {
				close(c.done)
			}
		}
	}
	return c.echo.Manifests(ctx, in)
}
