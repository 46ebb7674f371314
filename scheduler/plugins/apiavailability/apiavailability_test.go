package apiavailability_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/apiavailability"
)

var (
	deployment = metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	pod        = metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
	widget     = metav1.GroupVersionKind{Group: "example.com", Version: "v1beta1", Kind: "Widget"}
	widgetNext = metav1.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
)

type batch interface {
	scheduler.PreFilterPlugin
	scheduler.BatchFilterPlugin
	scheduler.HintPlugin
}

func newPlugin(t require.TestingT) batch {
	plugin, err := apiavailability.New(nil, scheduler.Handle{})
	require.NoError(t, err)
	return plugin.(batch)
}

func requires(t require.TestingT, apis ...metav1.GroupVersionKind) *scheduler.Request {
	policy, err := scheduler.NewPolicy(&v1alpha1.PlacementPolicy{RequiredAPIs: apis})
	require.NoError(t, err)
	return &scheduler.Request{Policy: policy}
}

func serving(apis ...metav1.GroupVersionKind) *scheduler.Cluster {
	c := &scheduler.Cluster{Name: "a", APIs: map[schema.GroupVersionKind]bool{}}
	for _, api := range apis {
		c.APIs[schema.GroupVersionKind(api)] = true
	}
	return c
}

func TestFilter(t *testing.T) {
	tests := []struct {
		reason   string
		required []metav1.GroupVersionKind
		cluster  *scheduler.Cluster
		want     string
	}{
		{"serves all APIs", []metav1.GroupVersionKind{deployment, pod}, serving(pod, deployment, widget), ""},
		{"one API is not served", []metav1.GroupVersionKind{pod, deployment}, serving(pod),
			"does not serve apps/v1 Deployment"},
		{"core API is not served", []metav1.GroupVersionKind{pod}, serving(deployment), "does not serve v1 Pod"},
		{"reason names the first of several APIs", []metav1.GroupVersionKind{widget, pod}, serving(),
			"does not serve example.com/v1beta1 Widget"},
		{"another version is served", []metav1.GroupVersionKind{widget}, serving(widgetNext),
			"does not serve example.com/v1beta1 Widget"},
		{"API with value false", []metav1.GroupVersionKind{pod}, &scheduler.Cluster{
			APIs: map[schema.GroupVersionKind]bool{schema.GroupVersionKind(pod): false}}, "does not serve v1 Pod"},
		{"APIs are unknown", []metav1.GroupVersionKind{pod}, &scheduler.Cluster{}, ""},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			cache := &scheduler.Cache{}
			cache.Update(test.cluster)
			request := requires(t, test.required...)
			status := newPlugin(t).Filter(context.Background(), scheduler.NewCycleState(cache.Snapshot(), request), request,
				test.cluster)
			require.Equal(t, test.want, status.Reason())
			require.Equal(t, test.want == "", status.Code() == scheduler.Success)

			request.Bound = []string{test.cluster.Name}
			status = newPlugin(t).Filter(context.Background(), scheduler.NewCycleState(cache.Snapshot(), request), request,
				test.cluster)
			require.Nil(t, status, "a cluster that was chosen before stays")
		})
	}
}

func TestPreFilter_SkipsWithoutRequiredAPIs(t *testing.T) {
	require.Equal(t, scheduler.Skip, newPlugin(t).PreFilter(context.Background(), nil, requires(t)).Code())
	require.Nil(t, newPlugin(t).PreFilter(context.Background(), nil, requires(t, pod)))

	_, err := apiavailability.New(scheduler.Args(`{"kinds": []}`), scheduler.Handle{})
	require.ErrorContains(t, err, "kinds", "arguments are rejected")
}

func TestHint(t *testing.T) {
	tests := []struct {
		reason   string
		old, new *scheduler.Cluster
		want     bool
	}{
		{"new cluster serves the APIs", nil, serving(pod, deployment), true},
		{"new cluster does not serve the APIs", nil, serving(pod), false},
		{"cluster serves an additional required API", serving(pod), serving(pod, deployment), true},
		{"cluster served the APIs before", serving(pod, deployment), serving(pod, deployment, widget), false},
		{"cluster no longer serves the APIs", serving(pod, deployment), serving(), false},
		{"APIs become unknown", serving(), &scheduler.Cluster{}, true},
		{"cluster is removed", serving(pod, deployment), nil, false},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			require.Equal(t, test.want,
				newPlugin(t).Hint(requires(t, pod, deployment), scheduler.Event{Old: test.old, New: test.new}))
		})
	}
}

func TestFilterAllAgreesWithFilter(t *testing.T) {
	plugin, ctx := newPlugin(t), context.Background()
	apis := rapid.SliceOfNDistinct(rapid.SampledFrom([]metav1.GroupVersionKind{deployment, pod, widget, widgetNext}), 0, 4,
		rapid.ID)
	rapid.Check(t, func(t *rapid.T) {
		cache := &scheduler.Cache{}
		requests := []*scheduler.Request{requires(t, apis.Draw(t, "required")...), requires(t, apis.Draw(t, "required")...)}
		var snapshots []*scheduler.Snapshot
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				cluster := serving(apis.Draw(t, "served")...)
				cluster.Name = fmt.Sprint("c", rapid.IntRange(0, 70).Draw(t, "cluster"))
				switch rapid.IntRange(0, 4).Draw(t, "what") {
				case 0:
					cache.Remove(cluster.Name)
					continue
				case 1:
					cluster.APIs = nil
				}
				cache.Update(cluster)
			}
			snapshots = append(snapshots, cache.Snapshot())
			snapshot := rapid.SampledFrom(snapshots).Draw(t, "snapshot")
			for _, request := range requests {
				state, left := scheduler.NewCycleState(snapshot, request), snapshot.All().Clone()
				require.Nil(t, plugin.FilterAll(ctx, state, request, left))
				for slot := range snapshot.All().All() {
					status := plugin.Filter(ctx, state, request, snapshot.Cluster(slot))
					require.Equal(t, status == nil, left.Has(slot), "%v", snapshot.Cluster(slot).APIs)
				}
			}
		}
	})
}

func BenchmarkFilterAll(b *testing.B) {
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			cache := &scheduler.Cache{}
			for i := range n {
				cluster := serving([][]metav1.GroupVersionKind{{pod, deployment}, {pod}}[i%2]...)
				cluster.Name = fmt.Sprint("c", i)
				cache.Update(cluster)
			}
			plugin, snapshot, request := newPlugin(b), cache.Snapshot(), requires(b, pod, deployment)
			state, left := scheduler.NewCycleState(snapshot, request), snapshot.All().Clone()
			b.ReportAllocs()
			for b.Loop() {
				left.Insert(snapshot.All())
				if status := plugin.FilterAll(context.Background(), state, request, left); status != nil || left.Len() != n/2 {
					b.Fatal(status.Reason(), left.Len())
				}
			}
		})
	}
}
