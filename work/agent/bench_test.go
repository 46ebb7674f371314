package agent_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// BenchmarkWork measures what a small Work of one ConfigMap costs, as one of a hundred that are created at once: eight
// clients create them concurrently, and the time ends when a watch has shown each of them Applied and Available. A user
// creates Works without the finalizer, and the controllers of WorkSets and Addons create them with it.
//
// The floor is measured in the same run. It is the writes that every agent with an inventory and reports must make: the
// finalizer and the status on the hub, and the inventory, the object and its UID in the inventory on the member. Eight
// clients create the Works as above, and as many writers as the agent has workers make these writes for each Work as
// soon as it is created. The floor decides nothing, watches nothing, reads nothing and sends no Event. The agent sends
// one Event for each Work, at a limited rate, so part of them after the measured time. The first Work, which starts the
// watch of ConfigMaps, is not measured. The CPU time is that of this process and of the API server and etcd.
func BenchmarkWork(b *testing.B) {
	b.Run("by-user", func(b *testing.B) { benchmarkWork(b, nil) })
	b.Run("by-controller", func(b *testing.B) { benchmarkWork(b, []string{v1alpha1.Finalizer}) })
}

func benchmarkWork(b *testing.B, finalizers []string) {
	works := testkit.Size(100)
	f := newFixture(b)
	f.start()
	f.ready(f.work("first", "{"+manifests(configMap("first", "{k: v}"))+"}"))
	var agent, floor cost
	var requests int
	round := 0
	for b.Loop() {
		round++
		var all []*v1alpha1.Work
		for i := range works {
			name := fmt.Sprintf("a%d-%d", round, i)
			work := f.spec(name, "{"+manifests(configMap(name, "{k: v}"))+"}")
			work.Finalizers = finalizers
			all = append(all, work)
		}
		f.awaitNoRequests()
		agent.measure(func() time.Duration { return f.burst(all) })
		hub, member := f.awaitNoRequests()
		requests += len(hub) + len(member)
		for _, work := range all {
			f.delete(work)
		}
		for _, work := range all {
			f.gone(work)
		}
		f.awaitNoRequests()
		floor.measure(func() time.Duration { return f.bare(works, finalizers) })
	}
	each := func(d time.Duration) float64 { return d.Seconds() * 1000 / float64(round*works) }
	b.ReportMetric(each(agent.took), "ms/work")
	b.ReportMetric(each(floor.took), "floor-ms/work")
	b.ReportMetric(agent.took.Seconds()/floor.took.Seconds(), "x-floor")
	b.ReportMetric(float64(round*works)/agent.took.Seconds(), "works/s")
	b.ReportMetric(float64(requests)/float64(round*works), "requests/work")
	b.ReportMetric(each(agent.own), "cpu-ms/work")
	b.ReportMetric(each(agent.servers), "servers-cpu-ms/work")
	b.ReportMetric(each(floor.own), "floor-cpu-ms/work")
	b.ReportMetric(each(floor.servers), "floor-servers-cpu-ms/work")
}

// cost is the time that something takes, and the CPU time of this process and of those that it started.
type cost struct{ took, own, servers time.Duration }

func (c *cost) measure(do func() time.Duration) {
	own, servers := cpuTime()
	c.took += do()
	ownThen, serversThen := cpuTime()
	c.own += ownThen - own
	c.servers += serversThen - servers
}

// cpuTime returns the CPU time of this process and of its children; both are 0 where there is no /proc.
func cpuTime() (own, children time.Duration) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		_, text, _ := strings.Cut(string(data), ") ") // the name of the program may contain spaces
		fields := strings.Fields(text)
		if len(fields) < 13 {
			continue
		}
		user, _ := strconv.Atoi(fields[11])
		system, _ := strconv.Atoi(fields[12])
		used := time.Duration(user+system) * 10 * time.Millisecond // a hundred ticks a second
		switch {
		case filepath.Base(filepath.Dir(file)) == strconv.Itoa(os.Getpid()):
			own = used
		case fields[1] == strconv.Itoa(os.Getpid()):
			children += used
		}
	}
	return own, children
}

// creators is how many clients create Works concurrently, and writers how many make the writes of the floor.
const creators, writers = 8, agent.DefaultWorkers

// burst creates Works concurrently, and returns the time until all of them are ready.
func (f *fixture) burst(works []*v1alpha1.Work) time.Duration {
	f.T.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	hub, err := client.NewWithWatch(f.options.Hub, client.Options{Scheme: scheme})
	require.NoError(f.T, err)
	open := func() watch.Interface {
		changes, err := hub.Watch(ctx, &v1alpha1.WorkList{}, client.InNamespace(f.options.Namespace))
		require.NoError(f.T, err)
		return changes
	}
	changes := open()
	defer func() { changes.Stop() }()
	missing := map[string]bool{}
	for _, work := range works {
		missing[work.Name] = true
	}
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(creators)
	created := make(chan error, 1)
	go func() {
		for _, work := range works {
			group.Go(func() error { return f.Client.Create(ctx, work) })
		}
		created <- group.Wait()
	}()
	for len(missing) > 0 {
		event, more := <-changes.ResultChan()
		if !more { // The API server may end a watch at any time. The next one begins with all Works that exist.
			require.NoError(f.T, ctx.Err(), "%d Works are not ready", len(missing))
			changes = open()
			continue
		}
		work, ok := event.Object.(*v1alpha1.Work)
		if ok && isTrue(work, v1alpha1.ConditionApplied) && isTrue(work, v1alpha1.ConditionAvailable) {
			delete(missing, work.Name)
		}
	}
	took := time.Since(began)
	require.NoError(f.T, <-created)
	return took
}

func isTrue(work *v1alpha1.Work, name string) bool {
	c := condition(work, name)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == work.Generation
}

var bares atomic.Int32

// bare makes the writes of some Works, and returns the time that took.
func (f *fixture) bare(works int, finalizers []string) time.Duration {
	f.T.Helper()
	ctx, prefix := context.Background(), fmt.Sprintf("bare%d-", bares.Add(1))
	// No agent watches this namespace.
	namespace := f.create(f.Client, "{apiVersion: v1, kind: Namespace, metadata: {name: "+prefix+"NS}}").GetName()
	began := time.Now()
	var group, create errgroup.Group
	create.SetLimit(creators)
	created := make(chan string, works)
	group.Go(func() error {
		defer close(created)
		for i := range works {
			create.Go(func() error {
				work := f.spec(prefix+fmt.Sprint(i), "{"+manifests(configMap("x", "{k: v}"))+"}")
				work.Namespace, work.Finalizers = namespace, bareFinalizers(finalizers)
				if err := f.Client.Create(ctx, work); err != nil {
					return err
				}
				created <- work.Name
				return nil
			})
		}
		return create.Wait()
	})
	for range writers {
		group.Go(func() error {
			for name := range created {
				if err := f.bareWrites(ctx, namespace, name, len(finalizers) == 0); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(f.T, group.Wait())
	took := time.Since(began)
	for i := range works {
		name := prefix + fmt.Sprint(i)
		applied := &v1alpha1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(f.T, f.member.Delete(ctx, applied))
		require.NoError(f.T, f.member.Delete(ctx, f.manifest(configMap(name, "{}"))))
	}
	return took
}

// bareFinalizers are as many finalizers of the floor: there is no agent that would remove those of muster.
func bareFinalizers(finalizers []string) []string {
	return slices.Repeat([]string{"example.com/bare"}, len(finalizers))
}

// bareWrites makes the writes of one Work.
func (f *fixture) bareWrites(ctx context.Context, namespace, name string, finalize bool) error {
	const finalizer, status = `{"metadata":{"finalizers":["example.com/bare"]}}`, `{"status":{"ready":"1/1"}}`
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if finalize {
		if err := f.Client.Patch(ctx, work, client.RawPatch(types.MergePatchType, []byte(finalizer))); err != nil {
			return err
		}
	}
	applied := &v1alpha1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
	applied.Spec.FieldOwner = "bare"
	if err := f.member.Create(ctx, applied); err != nil {
		return err
	}
	object := f.manifest(configMap(name, "{k: v}"))
	configuration := client.ApplyConfigurationFromUnstructured(object)
	if err := f.member.Apply(ctx, configuration, client.FieldOwner("bare")); err != nil {
		return err
	}
	applied.Status.Resources = []v1alpha1.AppliedResource{{UID: object.GetUID()}}
	if err := f.member.Update(ctx, applied); err != nil {
		return err
	}
	return f.Client.Status().Patch(ctx, work, client.RawPatch(types.MergePatchType, []byte(status)))
}
