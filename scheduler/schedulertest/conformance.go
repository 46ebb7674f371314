package schedulertest

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// Plugin is the plugin to test, with its test data.
type Plugin struct {
	Name    string
	Factory scheduler.Factory
	Args    string // in JSON; empty: none
	// Policies are policies to which the plugin applies. The empty policy is tested as well.
	Policies []v1alpha1.PlacementPolicy
	// Clusters should differ in all properties that the plugin uses. The tests replace each cluster by each other cluster.
	Clusters []*scheduler.Cluster
}

// Conformance tests that a plugin:
//
//   - does not change clusters, policies, or sets that it must not change;
//   - returns the same result for a cluster independently of the order of the fleet, and with and without its batch
//     forms;
//   - returns the result for the current state of a cluster after a change;
//   - returns reasons that are predicates, and scores from 0 to MaxScore that are not NaN;
//   - returns the same result for a cluster independently of other clusters, if Local returns true;
//   - returns true from Hint for each event after which it accepts a cluster that it rejected before;
//   - can be called concurrently (run the test with the race detector).
//
// Each requirement is a subtest. A subtest has no effect if the plugin does not implement the extension point.
func Conformance(t *testing.T, p Plugin) {
	made, err := p.Factory(scheduler.Args(p.Args), scheduler.Handle{Profile: scheduler.DefaultProfile})
	if err != nil {
		t.Fatalf("make the plugin: %v", err)
	}
	if made.Name() != p.Name || p.Name == "" {
		t.Fatalf("its name is %q, and it is registered as %q", made.Name(), p.Name)
	}
	s := &suite{Plugin: p, made: made}
	for _, c := range p.Clusters {
		s.before = append(s.before, copyOf(c))
	}
	for i := range p.Policies {
		s.policies = append(s.policies, &p.Policies[i])
	}
	s.policies = append(s.policies, &v1alpha1.PlacementPolicy{})
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"batch forms agree", s.batches},
		{"order does not matter", s.order},
		{"changes are noticed", s.changes},
		{"local is local", s.local},
		{"hints are complete", s.hints},
		{"nothing is changed", s.immutable},
		{"many at once", s.concurrent},
	} {
		t.Run(part.name, part.run)
	}
}

type suite struct {
	Plugin
	made     scheduler.Plugin
	policies []*v1alpha1.PlacementPolicy
	before   []*scheduler.Cluster // the clusters before the first call
}

// each calls do for each policy, without bound clusters and with every second cluster bound.
func (s *suite) each(t *testing.T, do func(t *testing.T, request *scheduler.Request)) {
	t.Helper()
	var half []string
	for i, c := range s.Clusters {
		if i%2 == 0 {
			half = append(half, c.Name)
		}
	}
	for i, policy := range s.policies {
		for _, bound := range [][]string{nil, half} {
			t.Run(fmt.Sprintf("policy %d bound to %d", i, len(bound)), func(t *testing.T) {
				do(t, Request(t, *policy, bound...))
			})
		}
	}
}

func (s *suite) batches(t *testing.T) {
	snapshot := Snapshot(s.Clusters...) // shared by all policies: their columns must not conflict
	s.each(t, func(t *testing.T, request *scheduler.Request) {
		one, all := s.evaluate(t, snapshot, request, false), s.evaluate(t, snapshot, request, true)
		if !same(one, all) {
			t.Errorf("one by one: %v\nall at once: %v", one, all)
		}
	})
}

func (s *suite) order(t *testing.T) {
	s.each(t, func(t *testing.T, request *scheduler.Request) {
		backward := slices.Clone(s.Clusters)
		slices.Reverse(backward)
		a, b := s.evaluate(t, Snapshot(s.Clusters...), request, true), s.evaluate(t, Snapshot(backward...), request, true)
		if !same(a, b) {
			t.Errorf("in one order: %v\nin the other: %v", a, b)
		}
	})
}

// as returns a copy of a cluster with another name.
func as(c *scheduler.Cluster, name string) *scheduler.Cluster {
	renamed := *c
	renamed.Name = name
	return &renamed
}

func (s *suite) changes(t *testing.T) {
	s.each(t, func(t *testing.T, request *scheduler.Request) {
		var cache scheduler.Cache
		fleet := slices.Clone(s.Clusters)
		for _, c := range fleet {
			cache.Update(c)
		}
		s.evaluate(t, cache.Snapshot(), request, true)
		for i := range fleet {
			for j := range s.Clusters {
				fleet[i] = as(s.Clusters[j], fleet[i].Name)
				cache.Update(fleet[i])
				got, want := s.evaluate(t, cache.Snapshot(), request, true), s.evaluate(t, Snapshot(fleet...), request, true)
				if !same(got, want) {
					t.Fatalf("after a change of %s: %v\nafresh: %v", fleet[i].Name, got, want)
				}
			}
		}
	})
}

func (s *suite) local(t *testing.T) {
	plugin, is := s.made.(scheduler.LocalPlugin)
	if !is {
		return
	}
	s.each(t, func(t *testing.T, request *scheduler.Request) {
		snapshot := Snapshot(s.Clusters...)
		if !plugin.Local(scheduler.NewCycleState(snapshot, request), request) {
			return
		}
		together := s.evaluate(t, snapshot, request, true)
		apart := pluginResults{map[string]string{}, map[string]float64{}}
		for _, c := range s.Clusters {
			alone := s.evaluate(t, Snapshot(c), request, true)
			maps.Copy(apart.Refused, alone.Refused)
			maps.Copy(apart.Scores, alone.Scores)
		}
		if !same(together, apart) {
			t.Errorf("of all together: %v\nof each alone: %v", together, apart)
		}
	})
}

func (s *suite) hints(t *testing.T) {
	hint, is := s.made.(scheduler.HintPlugin)
	if !is {
		return
	}
	s.each(t, func(t *testing.T, request *scheduler.Request) {
		if len(request.Bound) > 0 {
			return // a bound request does not wait
		}
		for _, cluster := range s.Clusters {
			after := s.evaluate(t, Snapshot(cluster), request, false)
			if after.Refused[cluster.Name] != "" {
				continue
			}
			if event := (scheduler.Event{New: cluster}); len(after.Refused) == 0 && s.refusesSome(t, request) &&
				!hint.Hint(request, event) {
				t.Errorf("no hint although cluster %s was added, which the plugin accepts", cluster.Name)
			}
			for _, old := range s.Clusters {
				old = as(old, cluster.Name)
				if s.evaluate(t, Snapshot(old), request, false).Refused[cluster.Name] == "" {
					continue
				}
				if !hint.Hint(request, scheduler.Event{Old: old, New: cluster}) {
					t.Errorf("no hint although the plugin now accepts cluster %s, which was %+v before", cluster.Name, old)
				}
			}
		}
	})
}

// refusesSome reports whether the plugin rejects any cluster for the request. Otherwise the request does not wait.
func (s *suite) refusesSome(t *testing.T, request *scheduler.Request) bool {
	return len(s.evaluate(t, Snapshot(s.Clusters...), request, false).Refused) > 0
}

func (s *suite) immutable(t *testing.T) {
	s.each(t, func(t *testing.T, request *scheduler.Request) {
		spec := request.Policy.Spec().DeepCopy()
		snapshot := Snapshot(s.Clusters...)
		all := slices.Collect(snapshot.All().All())
		s.evaluate(t, snapshot, request, true)
		if !slices.Equal(all, slices.Collect(snapshot.All().All())) {
			t.Error("the set of all clusters is another one")
		}
		if !equality.Semantic.DeepEqual(spec, request.Policy.Spec()) {
			t.Error("the policy is another one")
		}
	})
	for i, c := range s.Clusters {
		// Compare the scores as text, because NaN is not equal to itself.
		was, is := *s.before[i], *c
		if fmt.Sprint(was.Scores) != fmt.Sprint(is.Scores) {
			t.Errorf("cluster %s has other scores", c.Name)
		}
		was.Scores, is.Scores = nil, nil
		if !equality.Semantic.DeepEqual(was, is) {
			t.Errorf("cluster %s is another one: %+v, it was %+v", c.Name, is, was)
		}
	}
}

func copyOf(c *scheduler.Cluster) *scheduler.Cluster {
	out := *c
	out.Labels, out.Properties = maps.Clone(c.Labels), maps.Clone(c.Properties)
	out.APIs, out.Scores = maps.Clone(c.APIs), maps.Clone(c.Scores)
	out.Capacity, out.Allocatable, out.Available = c.Capacity.DeepCopy(), c.Allocatable.DeepCopy(), c.Available.DeepCopy()
	out.Taints = nil
	for i := range c.Taints {
		out.Taints = append(out.Taints, *c.Taints[i].DeepCopy())
	}
	return &out
}

func (s *suite) concurrent(t *testing.T) {
	snapshot := Snapshot(s.Clusters...)
	for _, policy := range s.policies {
		request := Request(t, *policy)
		want := s.evaluate(t, snapshot, request, true)
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for range 10 {
					if got := s.evaluate(t, snapshot, request, true); !same(got, want) {
						t.Errorf("the plugin returned %v, and %v with other clusters", want, got)
						return
					}
				}
			})
		}
		group.Wait()
	}
}
