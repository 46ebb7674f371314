package scheduler

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestCache_SnapshotsAndColumns checks that later changes do not affect a snapshot, filtered or not, and that its
// columns contain the results of their functions, independently of the order in which snapshots use them.
func TestCache_SnapshotsAndColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type recorded struct {
			snapshot *Snapshot
			fleet    map[string]*Cluster
			filter   string // the filter that created the snapshot; empty: none
		}
		filters := map[string]func(*Cluster) bool{
			"healthy": func(c *Cluster) bool { return c.Healthy },
			"zone x":  func(c *Cluster) bool { return c.Labels["zone"] == "x" },
			"others":  func(c *Cluster) bool { return c.Name > "h" },
			"none":    func(c *Cluster) bool { return false },
		}
		var cache Cache
		var all []recorded
		fleet := map[string]*Cluster{}
		names := rapid.SampledFrom(strings.Split("abcdefghijklmnopqrstuvwxyz", ""))
		if rapid.Bool().Draw(t, "many") { // more than a word of a set
			for i := range 70 {
				c := &Cluster{Name: fmt.Sprintf("m%02d", i), Labels: map[string]string{"zone": fmt.Sprint(i % 3)}}
				fleet[c.Name] = c
				cache.Update(c)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"update": func(t *rapid.T) {
				c := &Cluster{Name: names.Draw(t, "name"), Healthy: rapid.Bool().Draw(t, "healthy")}
				if zone := rapid.SampledFrom([]string{"", "x", "y", "z"}).Draw(t, "zone"); zone != "" {
					c.Labels = map[string]string{"zone": zone}
				}
				event := cache.Update(c)
				if event.Old != fleet[c.Name] || event.New != c {
					t.Fatalf("event %+v", event)
				}
				fleet[c.Name] = c
			},
			"remove": func(t *rapid.T) {
				name := names.Draw(t, "name")
				if event := cache.Remove(name); event.Old != fleet[name] || event.New != nil {
					t.Fatalf("event %+v", event)
				}
				delete(fleet, name)
			},
			"snapshot": func(t *rapid.T) {
				s := cache.Snapshot()
				if cache.Snapshot() != s {
					t.Fatal("two snapshots without a change are different")
				}
				all = append(all, recorded{s, maps.Clone(fleet), ""})
			},
			"filter": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				source := rapid.SampledFrom(all).Draw(t, "snapshot")
				filter := rapid.SampledFrom(slices.Sorted(maps.Keys(filters))).Draw(t, "filter")
				earlier := []*Snapshot{nil}
				for _, other := range all {
					if other.filter == filter {
						earlier = append(earlier, other.snapshot)
					}
				}
				s := source.snapshot.Filter(filters[filter], rapid.SampledFrom(earlier).Draw(t, "earlier"))
				kept := maps.Clone(source.fleet)
				maps.DeleteFunc(kept, func(_ string, c *Cluster) bool { return !filters[filter](c) })
				all = append(all, recorded{s, kept, filter})
			},
			"check": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				drawn := rapid.SampledFrom(all).Draw(t, "snapshot")
				checkSnapshot(t, drawn.snapshot, drawn.fleet, drawn.filter == "")
			},
		})
	})
}

func checkSnapshot(t *rapid.T, s *Snapshot, fleet map[string]*Cluster, whole bool) {
	sorted := slices.SortedFunc(maps.Values(fleet), func(a, b *Cluster) int { return cmp.Compare(a.Name, b.Name) })
	if s.Len() != len(fleet) || s.All().Len() != len(fleet) {
		t.Fatalf("%d clusters, %d in the set, want %d", s.Len(), s.All().Len(), len(fleet))
	}
	zone := func(c *Cluster) (string, bool) { z, has := c.Labels["zone"]; return z, has }
	letter := Column(s, "letter", func(c *Cluster) string { z, _ := zone(c); return c.Name + z })
	healthy := s.Where("healthy", func(c *Cluster) bool { return c.Healthy })
	groups := s.Label("zone")
	if len(letter) != s.Slots() {
		t.Fatalf("the column has %d values for %d slots", len(letter), s.Slots())
	}
	zones := map[string]int{}
	last := -1
	for rank, c := range sorted {
		slot, found := s.Slot(c.Name)
		switch {
		case !found || s.Cluster(slot) != c:
			t.Fatalf("%s is in slot %d", c.Name, slot)
		case s.Rank(slot) <= last || whole && s.Rank(slot) != rank:
			t.Fatalf("%s has rank %d after %d, want %d", c.Name, s.Rank(slot), last, rank)
		case letter[slot] != c.Name+c.Labels["zone"]:
			t.Fatalf("the column has %q for %s", letter[slot], c.Name)
		case healthy.Has(slot) != c.Healthy:
			t.Fatalf("%s is healthy: %v", c.Name, healthy.Has(slot))
		}
		last = s.Rank(slot)
		z, has := zone(c)
		if group := groups.Of(slot); has != (group != None) || has && groups.Name(group) != z {
			t.Fatalf("%s is in group %d, want zone %q", c.Name, group, z)
		}
		if has {
			zones[z]++
			if !groups.Set(z).Has(slot) {
				t.Fatalf("%s is not in the set of %q", c.Name, z)
			}
		}
	}
	for _, z := range []string{"x", "y", "z", "0", "1", "2", "nowhere"} {
		if got := groups.Set(z).Len(); got != zones[z] {
			t.Fatalf("%d in zone %s, want %d", got, z, zones[z])
		}
	}
	if healthy.Len() != len(slices.DeleteFunc(sorted, func(c *Cluster) bool { return !c.Healthy })) {
		t.Fatal("the set of healthy clusters has a cluster that is not in the fleet")
	}
	for slot := range s.Slots() {
		if c := s.Cluster(slot); c != nil && fleet[c.Name] != c {
			t.Fatalf("%s is in slot %d, but not in the fleet", c.Name, slot)
		}
	}
	for _, name := range []string{"missing", "a", "m", "z"} {
		if _, found := s.Slot(name); found != (fleet[name] != nil) {
			t.Fatalf("cluster %s: found %t", name, found)
		}
	}
}

// TestFilter_IsIncremental checks that Filter calls the function only for clusters that have changed or were not in the
// earlier snapshot.
func TestFilter_IsIncremental(t *testing.T) {
	var cache Cache
	for i := range 200 {
		cache.Update(&Cluster{Name: fmt.Sprint(i)})
	}
	var evaluated []string
	healthy := func(c *Cluster) bool { evaluated = append(evaluated, c.Name); return c.Healthy }
	filter := func(s, earlier *Snapshot, want ...string) *Snapshot {
		t.Helper()
		evaluated = nil
		filtered := s.Filter(healthy, earlier)
		require.ElementsMatch(t, want, evaluated)
		return filtered
	}
	whole := cache.Snapshot()
	first := whole.Filter(healthy, nil)
	require.Len(t, evaluated, 200)
	filter(whole, first)
	cache.Update(&Cluster{Name: "7", Healthy: true})
	cache.Update(&Cluster{Name: "new", Healthy: true})
	cache.Remove("9")
	second := filter(cache.Snapshot(), first, "7", "new")
	require.Equal(t, 2, second.Len())
	filter(whole, second, "7", "9")

	// While no cluster comes or goes, each result has its own clusters.
	cache.Update(&Cluster{Name: "7"})
	cache.Update(&Cluster{Name: "8", Healthy: true})
	cache.Update(&Cluster{Name: "10", Healthy: true})
	cache.Update(&Cluster{Name: "11"})
	third := filter(cache.Snapshot(), second, "7", "8", "10", "11")
	for s, want := range map[*Snapshot][]string{second: {"7", "new"}, third: {"10", "8", "new"}} {
		require.Equal(t, len(want), s.Len())
		var got []string
		for slot := range s.All().All() {
			got = append(got, s.Cluster(slot).Name)
		}
		require.ElementsMatch(t, want, got)
	}

	// A changed cluster that another filter has removed is not evaluated.
	without8 := func(c *Cluster) bool { return c.Name != "8" }
	outer := cache.Snapshot().Filter(without8, nil)
	inner := outer.Filter(healthy, third)
	require.Equal(t, 2, inner.Len())
	cache.Update(&Cluster{Name: "8", Healthy: true, Absent: true})
	require.Equal(t, 2, filter(cache.Snapshot().Filter(without8, outer), inner).Len())

	// The earlier snapshot is the result of another filter.
	odd := func(without string) *Snapshot {
		return cache.Snapshot().Filter(func(c *Cluster) bool { return c.Name != without }, nil)
	}
	stacked := filter(odd("7"), third, "8")
	require.Equal(t, 3, stacked.Len())
	require.Equal(t, 2, filter(odd("8"), stacked, "7").Len())

	// A snapshot of another cache is not reused.
	var other Cache
	other.Update(&Cluster{Name: "x"})
	require.Zero(t, filter(other.Snapshot(), second, "x").Len())
}

// TestColumn_IsIncremental checks that a column is recomputed only for the clusters that have changed since its last
// use.
func TestColumn_IsIncremental(t *testing.T) {
	var cache Cache
	for i := range 100 {
		cache.Update(&Cluster{Name: fmt.Sprintf("c%03d", i)})
	}
	var evaluated []string
	length := func(s *Snapshot) []int {
		return Column(s, "length", func(c *Cluster) int {
			evaluated = append(evaluated, c.Name)
			return len(c.Labels)
		})
	}
	first := cache.Snapshot()
	before := length(first)
	require.Len(t, evaluated, 100)

	evaluated = nil
	cache.Update(&Cluster{Name: "c007", Healthy: true})
	require.Same(t, &before[0], &length(cache.Snapshot())[0], "a change without a new value copies no column")
	require.Equal(t, []string{"c007"}, evaluated)

	evaluated = nil
	for i := range 3 { // without a snapshot in between
		cache.Update(&Cluster{Name: fmt.Sprintf("c%03d", 10+i), Labels: map[string]string{"a": "b"}})
		cache.Snapshot()
	}
	latest := cache.Snapshot()
	length(latest)
	require.Equal(t, []string{"c010", "c011", "c012"}, evaluated)

	evaluated = nil
	length(first) // an old snapshot needs the same changes in reverse
	require.ElementsMatch(t, []string{"c007", "c010", "c011", "c012"}, evaluated)
	evaluated = nil
	length(latest)
	require.Empty(t, evaluated, "the use of an old snapshot does not affect the latest one")
}

// TestColumn_LogIsTooShort checks that a column is computed again if the log does not reach back to its last use.
func TestColumn_LogIsTooShort(t *testing.T) {
	var cache Cache
	cache.Update(&Cluster{Name: "a"})
	cache.Update(&Cluster{Name: "b"})
	old := cache.Snapshot()
	healthy := func(s *Snapshot) int {
		return s.Where("healthy", func(c *Cluster) bool { return c.Healthy }).Len()
	}
	require.Zero(t, healthy(old))
	cache.Update(&Cluster{Name: "b", Healthy: true}) // the log drops this change
	for i := range 3 * minLog {
		cache.Update(&Cluster{Name: "a", Healthy: i%2 == 0})
		cache.Snapshot()
	}
	cache.Update(&Cluster{Name: "a", Healthy: true})
	require.Equal(t, 2, healthy(cache.Snapshot()))
	require.Zero(t, healthy(old))
	require.LessOrEqual(t, len(cache.columns.log), 2*minLog)
}

// TestCache_MemoryIsBounded checks that unused columns and unused group names are deleted.
func TestCache_MemoryIsBounded(t *testing.T) {
	var cache Cache
	for i := range 2 * idle {
		cache.Update(&Cluster{Name: "a", Labels: map[string]string{"build": fmt.Sprint(i)}})
		s := cache.Snapshot()
		if i < 10 {
			s.Where(fmt.Sprint(i), func(*Cluster) bool { return true })
		}
		require.Equal(t, 1, s.Label("build").Set(fmt.Sprint(i)).Len())
		require.LessOrEqual(t, s.Label("build").Len(), 3*wordBits)
	}
	require.Len(t, cache.columns.entries, 1)
}

// TestCache_Concurrent uses a Cache concurrently, for the race detector.
func TestCache_Concurrent(t *testing.T) {
	var cache Cache
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 500 {
				name := fmt.Sprintf("c%d-%d", worker, i%50)
				if i%7 == 0 {
					cache.Remove(name)
				} else {
					cache.Update(&Cluster{Name: name, Labels: map[string]string{"zone": fmt.Sprint(i % 9)}})
				}
				s := cache.Snapshot()
				zone := s.Label("zone")
				for slot := range zone.Set("3").All() {
					if got := s.Cluster(slot).Labels["zone"]; got != "3" {
						t.Errorf("zone 3 has a cluster of zone %s", got)
					}
				}
			}
		})
	}
	group.Wait()
}
