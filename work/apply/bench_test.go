package apply_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// BenchmarkApplyFresh measures what the first apply of a hundred small ConfigMaps costs with the options that the agent
// uses: the metadata of existing objects is known by a watch. The floor is measured in the same run, in alternating
// order, on other names, in a namespace that has no objects from earlier rounds. It is one server-side apply for each
// object, by the same client configuration and with the same number of concurrent requests. The floor checks and
// records nothing. The engine lists the namespace once in addition, to find existing objects. The inventory is recorded
// in memory, because its two writes do not depend on the number of objects; BenchmarkWork in work/agent includes them.
func BenchmarkApplyFresh(b *testing.B) {
	const objects = 100
	f := newFixture(b)
	config := rest.CopyConfig(plane.ForTest(b).Config())
	bare := newClient(b, config)
	f.engine = apply.New(newClient(b, config), apply.Options{Metadata: f.watch()})
	f.applyFresh("first", objects)
	f.bareApply(bare, "bare", objects)
	var took, floor time.Duration
	round := 0
	for b.Loop() {
		round++
		f.empty()
		if round%2 == 0 {
			floor += f.bareApply(bare, fmt.Sprintf("bare%d", round), objects)
		}
		took += f.applyFresh(fmt.Sprintf("a%d", round), objects)
		if round%2 == 1 {
			floor += f.bareApply(bare, fmt.Sprintf("bare%d", round), objects)
		}
	}
	b.ReportMetric(took.Seconds()*1000/float64(round*objects), "ms/object")
	b.ReportMetric(floor.Seconds()*1000/float64(round*objects), "floor-ms/object")
	b.ReportMetric(took.Seconds()/floor.Seconds(), "x-floor")
}

func (f *fixture) small(name string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: " + f.Namespace + "}, " +
		"data: {k: v}}"
}

// applyFresh applies objects that do not exist, and returns the time that took.
func (f *fixture) applyFresh(prefix string, count int) time.Duration {
	f.T.Helper()
	set := apply.Set{Owner: f.owner, Record: func(context.Context, []v1alpha1.AppliedResource) error { return nil }}
	for i := range count {
		object := manifest(f.T, f.small(fmt.Sprintf("%s-%d", prefix, i)))
		set.Objects = append(set.Objects, apply.Object{Manifest: object})
	}
	began := time.Now()
	applied, err := f.engine.Apply(context.Background(), set, nil)
	took := time.Since(began)
	require.NoError(f.T, err)
	for _, change := range applied.Changes {
		require.Equal(f.T, apply.Created, change.Action, "%s: %s", change.Object.Name, change.Message)
	}
	return took
}

// empty deletes the ConfigMaps of the namespace.
func (f *fixture) empty() {
	f.T.Helper()
	all := manifest(f.T, "{apiVersion: v1, kind: ConfigMap}")
	require.NoError(f.T, f.Client.DeleteAllOf(context.Background(), all, client.InNamespace(f.Namespace)))
}

// bareApply only sends the writes.
func (f *fixture) bareApply(c client.Client, prefix string, count int) time.Duration {
	f.T.Helper()
	var desired []runtime.ApplyConfiguration
	for i := range count {
		object := manifest(f.T, f.small(fmt.Sprintf("%s-%d", prefix, i)))
		object.SetLabels(map[string]string{v1alpha1.AppliedLabel: "true"})
		desired = append(desired, client.ApplyConfigurationFromUnstructured(object))
	}
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(apply.DefaultConcurrency)
	for _, object := range desired {
		group.Go(func() error {
			return c.Apply(context.Background(), object, client.FieldOwner("bare"), client.ForceOwnership)
		})
	}
	require.NoError(f.T, group.Wait())
	return time.Since(began)
}
