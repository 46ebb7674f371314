package schedulertest

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Now is the time of all requests of this package.
var Now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// Option changes a new cluster.
type Option func(*scheduler.Cluster)

// Cluster returns a cluster that is joined and healthy, with the options applied.
func Cluster(name string, options ...Option) *scheduler.Cluster {
	c := &scheduler.Cluster{Name: name, Joined: true, Healthy: true}
	for _, option := range options {
		option(c)
	}
	return c
}

// Label sets a label of the cluster.
func Label(key, value string) Option {
	return func(c *scheduler.Cluster) { put(&c.Labels, key, value) }
}

// Property sets a property of the cluster.
func Property(name, value string) Option {
	return func(c *scheduler.Cluster) { put(&c.Properties, name, value) }
}

// Score sets an external score of the cluster.
func Score(name string, value float64) Option {
	return func(c *scheduler.Cluster) { put(&c.Scores, name, value) }
}

// Taint adds a taint to the cluster that was added the given duration before [Now].
func Taint(key, value string, effect corev1.TaintEffect, since time.Duration) Option {
	return func(c *scheduler.Cluster) {
		c.Taints = append(c.Taints, corev1.Taint{Key: key, Value: value, Effect: effect,
			TimeAdded: new(metav1.NewTime(Now.Add(-since)))})
	}
}

// Resource sets the capacity, allocatable and available quantities of a resource. It panics if one is not a valid
// quantity.
func Resource(name corev1.ResourceName, allocatable, available string) Option {
	return func(c *scheduler.Cluster) {
		put(&c.Capacity, name, resource.MustParse(allocatable))
		put(&c.Allocatable, name, resource.MustParse(allocatable))
		put(&c.Available, name, resource.MustParse(available))
	}
}

// API adds a kind that the cluster serves.
func API(group, version, kind string) Option {
	return func(c *scheduler.Cluster) {
		put(&c.APIs, schema.GroupVersionKind{Group: group, Version: version, Kind: kind}, true)
	}
}

func put[M ~map[K]V, K comparable, V any](into *M, key K, value V) {
	if *into == nil {
		*into = M{}
	}
	(*into)[key] = value
}

// Snapshot returns a snapshot of the clusters.
func Snapshot(clusters ...*scheduler.Cluster) *scheduler.Snapshot {
	var cache scheduler.Cache
	for _, c := range clusters {
		cache.Update(c)
	}
	return cache.Snapshot()
}

// Request returns a request with a policy, at the time [Now]. It fails the test if the policy is invalid.
func Request(t testing.TB, spec v1alpha1.PlacementPolicy, bound ...string) *scheduler.Request {
	t.Helper()
	policy, err := scheduler.NewPolicy(&spec)
	if err != nil {
		t.Fatal(err)
	}
	return &scheduler.Request{Name: t.Name(), Policy: policy, Bound: bound, Now: Now}
}

// Scheduler returns a scheduler whose only profile contains only this plugin.
func Scheduler(t testing.TB, name string, factory scheduler.Factory, args string) *scheduler.Scheduler {
	t.Helper()
	s, err := scheduler.New(scheduler.Options{
		Registry: scheduler.Registry{name: factory},
		Profiles: []scheduler.Profile{{Plugins: []scheduler.PluginConfig{{Name: name, Args: scheduler.Args(args)}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Chosen returns the names of the chosen clusters in the order of the result.
func Chosen(result scheduler.Result) []string {
	names := make([]string, len(result.Chosen))
	for i, choice := range result.Chosen {
		names[i] = choice.Cluster.Name
	}
	return names
}
