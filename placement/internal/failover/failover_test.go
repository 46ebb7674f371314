package failover

import (
	stdcmp "cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var now = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

func healthy(name string) Cluster  { return Cluster{Name: name, Healthy: true, Ready: true} }
func notReady(name string) Cluster { return Cluster{Name: name, Healthy: true} }
func lost(name string) Cluster     { return Cluster{Name: name} }

// stepsOf formats a step as text.
func stepsOf(s Step) []string {
	var lines []string
	for _, d := range s.Publish {
		line := d.Cluster
		if d.Reason != v1alpha1.ReasonScheduled {
			line += " " + d.Reason
		}
		if d.Replaces != "" {
			line += " for " + d.Replaces
		}
		lines = append(lines, line)
	}
	for _, name := range s.Evict {
		lines = append(lines, "evict "+name)
	}
	if !s.Again.IsZero() {
		lines = append(lines, fmt.Sprintf("again in %v", s.Again.Sub(now)))
	}
	return lines
}

func TestPlan(t *testing.T) {
	first := v1alpha1.FailoverPolicy{Replace: v1alpha1.EvictFirst}
	one := v1alpha1.FailoverPolicy{MaxEvictions: new(int32(1)), PeriodSeconds: new(int32(30))}
	two := v1alpha1.FailoverPolicy{MaxEvictions: new(int32(2)), Replace: v1alpha1.EvictFirst}
	ago := func(seconds ...int) []v1alpha1.EvictionCount {
		var times []v1alpha1.EvictionCount
		for _, s := range seconds {
			times = append(times, v1alpha1.EvictionCount{Time: metav1.NewTime(now.Add(-time.Duration(s) * time.Second)),
				Count: 1})
		}
		return times
	}
	for _, test := range []struct {
		reason string
		o      Observed
		want   []string
	}{
		{"nothing changes if the chosen clusters are published", Observed{Published: []Cluster{healthy("a"), healthy("b")},
			Chosen: []string{"b", "a"}, Wanted: 2}, []string{"b", "a"}},
		{"a cluster does not replace itself",
			Observed{Published: []Cluster{{Name: "a", Healthy: true, Ready: true, Replaces: "a"}}, Chosen: []string{"a"},
				Wanted: 1}, []string{"a"}},
		{"the first decision is published in the chosen order",
			Observed{Chosen: []string{"b", "a"}, Wanted: 2}, []string{"b", "a"}},
		{
			"a healthy cluster stays until its replacement is published",
			Observed{Published: []Cluster{healthy("a")}, Chosen: []string{"b"}, Wanted: 1},
			[]string{"b for a", "a WaitsForReplacement"},
		},
		{
			"a healthy cluster stays until its replacement is ready",
			Observed{Published: []Cluster{healthy("a"), {Name: "b", Healthy: true, Replaces: "a"}}, Chosen: []string{"b"},
				Wanted: 1},
			[]string{"b for a", "a WaitsForReplacement"},
		},
		{
			"a healthy cluster is evicted when its replacement is ready",
			Observed{Published: []Cluster{healthy("a"), {Name: "b", Healthy: true, Ready: true, Replaces: "a"}},
				Chosen: []string{"b"}, Wanted: 1},
			[]string{"b for a", "evict a"},
		},
		{
			"an unhealthy cluster is no replacement",
			Observed{Published: []Cluster{healthy("a"), {Name: "b", Ready: true}}, Chosen: []string{"b"}, Wanted: 1},
			[]string{"b", "a WaitsForReplacement"},
		},
		{"without a candidate a healthy cluster stays", Observed{Published: []Cluster{healthy("a")}, Wanted: 1},
			[]string{"a WaitsForReplacement"}},
		{"without a candidate a lost cluster stays", Observed{Published: []Cluster{lost("a")}, Wanted: 1},
			[]string{"a WaitsForReplacement"}},
		{
			"a lost cluster stays until its replacement is ready",
			Observed{Published: []Cluster{lost("a"), {Name: "b", Healthy: true, Replaces: "a"}}, Chosen: []string{"b"},
				Wanted: 1},
			[]string{"b for a", "a WaitsForReplacement"},
		},
		{
			"a lost cluster is evicted when its replacement is ready, although c is not",
			Observed{Published: []Cluster{lost("a"), {Name: "b", Healthy: true, Ready: true, Replaces: "a"}, notReady("c")},
				Chosen: []string{"b", "c"}, Wanted: 2},
			[]string{"b for a", "c", "evict a"},
		},
		{
			"a lost cluster is evicted when enough other clusters are ready",
			Observed{Published: []Cluster{lost("a"), healthy("b")}, Chosen: []string{"b"}, Wanted: 1},
			[]string{"b", "evict a"},
		},
		{"a lost cluster that leaves the fleet is evicted at once", Observed{Published: []Cluster{{Name: "a", Leaves: true}},
			Wanted: 1}, []string{"evict a"}},
		{"a healthy cluster that leaves the fleet is evicted at once",
			Observed{Published: []Cluster{{Name: "a", Healthy: true, Ready: true, Leaves: true}},
				Wanted: 1}, []string{"evict a"}},
		{"a lost cluster with an eviction request is evicted",
			Observed{Published: []Cluster{{Name: "a", Evicted: true}}, Wanted: 1},
			[]string{"evict a"}},
		{"EvictFirst: a lost cluster is evicted", Observed{Published: []Cluster{lost("a")}, Wanted: 1, Policy: first},
			[]string{"evict a"}},
		{
			"a cluster that leaves the fleet waits for its replacement",
			Observed{Published: []Cluster{{Name: "a", Leaves: true}}, Chosen: []string{"b"}, Wanted: 1},
			[]string{"b for a", "a WaitsForReplacement"},
		},
		{
			"clusters that leave the fleet are not limited by the eviction rate",
			Observed{Published: []Cluster{{Name: "a", Leaves: true}, {Name: "b", Leaves: true}, lost("c"), lost("d")},
				Wanted: -1},
			[]string{"d WaitsForTurn", "evict a", "evict b", "evict c", "again in 1m0s"},
		},
		{
			"the default rate is one eviction per minute",
			Observed{Published: []Cluster{lost("a"), lost("b")}, Wanted: -1},
			[]string{"b WaitsForTurn", "evict a", "again in 1m0s"},
		},
		{
			"as many clusters stay as replacements are not ready",
			Observed{Published: []Cluster{healthy("a"), healthy("b"), healthy("c"), notReady("d")},
				Chosen: []string{"a", "d"}, Wanted: 2},
			[]string{"a", "d", "c WaitsForReplacement", "evict b"},
		},
		{"if all clusters are desired, an eviction needs no replacement",
			Observed{Published: []Cluster{healthy("a"), healthy("b")}, Chosen: []string{"b"},
				Wanted: -1}, []string{"b", "evict a"}},
		{"a cluster that is gone is not evicted", Observed{Published: []Cluster{healthy("a")}, Chosen: []string{"b"},
			Wanted: 1, Gone: set([]string{"a"})}, []string{"b for a"}},
		{
			"EvictFirst: the replacement is published at once",
			Observed{Published: []Cluster{healthy("a"), healthy("b")}, Chosen: []string{"b", "c"}, Wanted: 2, Policy: first},
			[]string{"b", "c for a", "evict a"},
		},
		{
			"EvictFirst: no more clusters are published than desired",
			Observed{Published: []Cluster{healthy("a"), healthy("b"), healthy("c")}, Chosen: []string{"d", "e", "f"}, Wanted: 3,
				Policy: two},
			[]string{"d for a", "e for b", "c WaitsForTurn", "evict a", "evict b", "again in 1m0s"},
		},
		{
			"a lost cluster is evicted before a healthy one",
			Observed{Published: []Cluster{healthy("a"), lost("b")}, Chosen: []string{"c"}, Wanted: -1, Policy: one},
			[]string{"c", "a WaitsForTurn", "evict b", "again in 30s"},
		},
		{
			"an eviction older than the period is ignored",
			Observed{Published: []Cluster{lost("a"), lost("b")}, Wanted: 2, Policy: two, Evictions: ago(60, 20)},
			[]string{"b WaitsForTurn", "evict a", "again in 40s"},
		},
		{
			"the eviction rate is exhausted",
			Observed{Published: []Cluster{lost("a")}, Wanted: 1, Policy: two, Evictions: ago(10, 59, 20)},
			[]string{"a WaitsForTurn", "again in 40s"},
		},
		{
			"evictions of one entry expire together",
			Observed{
				Published: []Cluster{lost("a")}, Wanted: 1, Policy: two,
				Evictions: []v1alpha1.EvictionCount{{Time: metav1.NewTime(now.Add(-50 * time.Second)), Count: 3},
					{Time: metav1.NewTime(now.Add(-20 * time.Second)), Count: 1}},
			},
			[]string{"a WaitsForTurn", "again in 10s"},
		},
		{
			"the replacement of a replacement names the first cluster",
			Observed{Published: []Cluster{{Name: "b", Replaces: "a"}}, Chosen: []string{"c"}, Wanted: 1},
			[]string{"c for a", "b WaitsForReplacement for a"},
		},
		{
			"a replaced cluster that is chosen again replaces no cluster",
			Observed{Published: []Cluster{{Name: "b", Healthy: true, Ready: true, Replaces: "a"}}, Chosen: []string{"a"},
				Wanted: 1, Policy: first},
			[]string{"a", "evict b"},
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.o.Now = now
			if diff := cmp.Diff(test.want, stepsOf(Plan(test.o)), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBound(t *testing.T) {
	published := []Cluster{{Name: "b", Replaces: "a"}, {Name: "c"}, {Name: "e", Replaces: "d"}}
	able := func(name string) bool { return name == "a" }
	for _, test := range []struct {
		reason   string
		recovery v1alpha1.RecoveryPolicy
		want     []string
	}{
		{"Stay keeps the current cluster", v1alpha1.Stay, []string{"b", "c", "e"}},
		{"Stay is the default", "", []string{"b", "c", "e"}},
		{"Return moves to the replaced cluster if possible", v1alpha1.Return, []string{"a", "c", "e"}},
	} {
		if diff := cmp.Diff(test.want, Bound(published, test.recovery, able)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// TestPlan_RandomFleets checks for random changes of the fleet that there are never more evictions than allowed in
// any period. With BeforeEvict there are never fewer healthy clusters than before or than desired; with EvictFirst
// there are never more clusters than desired. When no more changes occur, the placement reaches the chosen clusters.
func TestPlan_RandomFleets(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f"}
	rapid.Check(t, func(t *rapid.T) {
		policy := v1alpha1.FailoverPolicy{
			Replace: rapid.SampledFrom([]v1alpha1.ReplacePolicy{"", v1alpha1.BeforeEvict, v1alpha1.EvictFirst}).Draw(t,
				"replace"),
			PeriodSeconds: rapid.SampledFrom([]*int32{nil, new(int32(10))}).Draw(t, "period"),
			MaxEvictions:  rapid.SampledFrom([]*int32{nil, new(int32(1)), new(int32(2))}).Draw(t, "max"),
		}
		o := Observed{Policy: policy, Now: now, Wanted: rapid.IntRange(-1, 4).Draw(t, "wanted")}
		choose := func(from []string) {
			n := len(from)
			if o.Wanted >= 0 {
				n = min(n, o.Wanted)
			}
			o.Chosen = from[:n]
		}
		isHealthy := map[string]bool{}
		var evictions []time.Time // all of them, independently of the recorded ones
		step := func(ready func(string) bool) Step {
			for i := range o.Published {
				c := &o.Published[i]
				c.Healthy, c.Ready = isHealthy[c.Name], ready(c.Name)
			}
			s := Plan(o)
			check(t, o, s, isHealthy)
			for range s.Evict {
				evictions = append(evictions, o.Now)
			}
			checkRate(t, o, s, evictions)
			o.Evictions = Remember(o.Evictions, len(s.Evict), o.Policy, o.Now)
			o.Published = nil
			for _, d := range s.Publish {
				o.Published = append(o.Published, Cluster{Name: d.Cluster, Replaces: d.Replaces})
			}
			return s
		}
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			for _, name := range names {
				isHealthy[name] = rapid.Bool().Draw(t, name+" is healthy")
			}
			choose(rapid.Permutation(names).Draw(t, "order")[:rapid.IntRange(0, len(names)).Draw(t, "candidates")])
			gone := rapid.SampledFrom(names).Draw(t, "gone")
			o.Gone = map[string]bool{gone: !slices.Contains(o.Chosen, gone)}
			isReady := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "ready")
			step(func(name string) bool { return slices.Contains(isReady, name) })
			o.Now = o.Now.Add(time.Duration(rapid.IntRange(0, 40000).Draw(t, "milliseconds")) * time.Millisecond)
		}
		// From now on all clusters are healthy, and there are enough.
		for _, name := range names {
			isHealthy[name] = true
		}
		o.Gone = nil
		choose(names)
		var last Step
		for range 2*len(names) + 2 {
			last = step(func(string) bool { return true })
			if !last.Again.IsZero() {
				if !last.Again.After(o.Now) {
					t.Fatalf("want a time after %v, got %v", o.Now, last.Again)
				}
				o.Now = last.Again
			}
		}
		var got []string
		for _, d := range last.Publish {
			got = append(got, d.Cluster)
		}
		if diff := cmp.Diff(o.Chosen, got, cmpopts.EquateEmpty()); diff != "" || len(last.Evict) > 0 || !last.Again.IsZero() {
			t.Fatalf("the last step is not the chosen clusters: %+v (-want +got):\n%s", last, diff)
		}
	})
}

func check(t *rapid.T, o Observed, s Step, isHealthy map[string]bool) {
	seen, after := map[string]bool{}, 0
	for _, d := range s.Publish {
		if seen[d.Cluster] || slices.Contains(s.Evict, d.Cluster) {
			t.Fatalf("%s is published twice, or published and evicted: %+v", d.Cluster, s)
		}
		seen[d.Cluster] = true
		if isHealthy[d.Cluster] {
			after++
		}
	}
	before := 0
	for _, c := range o.Published {
		if !o.Gone[c.Name] && c.Healthy {
			before++
		}
		if kept := seen[c.Name] || slices.Contains(s.Evict, c.Name); kept == o.Gone[c.Name] {
			t.Fatalf("%s, gone: %v: want a published or evicted cluster, or a gone one: %+v", c.Name, o.Gone[c.Name], s)
		}
	}
	if o.Policy.Replace != v1alpha1.EvictFirst && o.Wanted >= 0 && after < min(before, o.Wanted) {
		t.Fatalf("%d healthy clusters after %d, want at least the smaller of that and %d: %+v", after, before, o.Wanted, s)
	}
	if o.Policy.Replace != v1alpha1.EvictFirst && o.Wanted >= 0 {
		ready, replaced := 0, map[string]bool{}
		for _, c := range o.Published {
			if slices.Contains(o.Chosen, c.Name) && c.Healthy && c.Ready {
				ready++
				replaced[c.Name], replaced[c.Replaces] = true, true
			}
		}
		for _, c := range o.Published {
			if slices.Contains(s.Evict, c.Name) && !c.Healthy && ready < o.Wanted && !replaced[stdcmp.Or(c.Replaces, c.Name)] {
				t.Fatalf("%s is evicted without a ready replacement: %+v", c.Name, s)
			}
		}
	}
	if o.Policy.Replace == v1alpha1.EvictFirst && o.Wanted >= 0 && len(s.Publish) > max(o.Wanted, len(o.Published)) {
		t.Fatalf("more clusters are published than desired: %+v", s)
	}
}

func checkRate(t *rapid.T, o Observed, s Step, evictions []time.Time) {
	count := 0
	for _, at := range evictions {
		if o.Now.Sub(at) < period(o.Policy) {
			count++
		}
	}
	limit := 1
	if o.Policy.MaxEvictions != nil {
		limit = int(*o.Policy.MaxEvictions)
	}
	if len(s.Evict) > 0 && count > limit {
		t.Fatalf("%d evictions in a period of %v: %+v", count, period(o.Policy), s)
	}
}
