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

// Every snapshot shows the fleet as it was when it was taken, whatever came later, and its columns say what
// their functions say, in whatever order the snapshots are asked.
func TestSnapshotsAndColumns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type taken struct {
			snapshot *Snapshot
			fleet    map[string]*Cluster
		}
		var cache Cache
		var all []taken
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
					t.Fatal("nothing has changed, and there is another snapshot")
				}
				all = append(all, taken{s, maps.Clone(fleet)})
			},
			"look": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				at := rapid.SampledFrom(all).Draw(t, "snapshot")
				checkSnapshot(t, at.snapshot, at.fleet)
			},
		})
	})
}

func checkSnapshot(t *rapid.T, s *Snapshot, fleet map[string]*Cluster) {
	sorted := slices.SortedFunc(maps.Values(fleet), func(a, b *Cluster) int { return cmp.Compare(a.Name, b.Name) })
	if s.Len() != len(fleet) || s.All().Len() != len(fleet) {
		t.Fatalf("%d clusters, %d in the set, want %d", s.Len(), s.All().Len(), len(fleet))
	}
	zone := func(c *Cluster) (string, bool) { z, has := c.Labels["zone"]; return z, has }
	letter := Column(s, "letter", func(c *Cluster) string { z, _ := zone(c); return c.Name + z })
	healthy := s.Where("healthy", func(c *Cluster) bool { return c.Healthy })
	groups := s.Label("zone")
	if len(letter) != s.Slots() {
		t.Fatalf("a column of %d for %d slots", len(letter), s.Slots())
	}
	zones := map[string]int{}
	for rank, c := range sorted {
		slot, there := s.Slot(c.Name)
		switch {
		case !there || s.Cluster(slot) != c || s.Rank(slot) != rank:
			t.Fatalf("%s is in slot %d with rank %d, want %d", c.Name, slot, s.Rank(slot), rank)
		case letter[slot] != c.Name+c.Labels["zone"]:
			t.Fatalf("the column says %q of %s", letter[slot], c.Name)
		case healthy.Has(slot) != c.Healthy:
			t.Fatalf("%s is healthy: %v", c.Name, healthy.Has(slot))
		}
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
		t.Fatal("somebody is healthy who is not there")
	}
	if _, there := s.Slot("nobody"); there {
		t.Fatal("nobody is there")
	}
}

// A column is worked out for the clusters that changed and for no others, however long ago it was asked for last.
func TestColumnsAreIncremental(t *testing.T) {
	var cache Cache
	for i := range 100 {
		cache.Update(&Cluster{Name: fmt.Sprintf("c%03d", i)})
	}
	var asked []string
	length := func(s *Snapshot) []int {
		return Column(s, "length", func(c *Cluster) int {
			asked = append(asked, c.Name)
			return len(c.Labels)
		})
	}
	first := cache.Snapshot()
	before := length(first)
	require.Len(t, asked, 100)

	asked = nil
	cache.Update(&Cluster{Name: "c007", Healthy: true})
	require.Same(t, &before[0], &length(cache.Snapshot())[0], "a change that changes no value copies nothing")
	require.Equal(t, []string{"c007"}, asked)

	asked = nil
	for i := range 3 { // without a snapshot in between
		cache.Update(&Cluster{Name: fmt.Sprintf("c%03d", 10+i), Labels: map[string]string{"a": "b"}})
		cache.Snapshot()
	}
	latest := cache.Snapshot()
	length(latest)
	require.Equal(t, []string{"c010", "c011", "c012"}, asked)

	asked = nil
	length(first) // an old snapshot is as far away as the new one
	require.ElementsMatch(t, []string{"c007", "c010", "c011", "c012"}, asked)
	asked = nil
	length(latest)
	require.Empty(t, asked, "that somebody looks back costs the others nothing")
}

// More changes than are remembered are as good as none that are: the column is made anew.
func TestColumnsOutliveTheLog(t *testing.T) {
	var cache Cache
	cache.Update(&Cluster{Name: "a"})
	cache.Update(&Cluster{Name: "b"})
	old := cache.Snapshot()
	healthy := func(s *Snapshot) int {
		return s.Where("healthy", func(c *Cluster) bool { return c.Healthy }).Len()
	}
	require.Zero(t, healthy(old))
	cache.Update(&Cluster{Name: "b", Healthy: true}) // which will be long forgotten
	for i := range 3 * minLog {
		cache.Update(&Cluster{Name: "a", Healthy: i%2 == 0})
		cache.Snapshot()
	}
	cache.Update(&Cluster{Name: "a", Healthy: true})
	require.Equal(t, 2, healthy(cache.Snapshot()))
	require.Zero(t, healthy(old))
	require.LessOrEqual(t, len(cache.columns.log), 2*minLog)
}

// Unused columns are dropped, and unused names.
func TestMemoryIsBounded(t *testing.T) {
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

// Many at once, with the race detector.
func TestCacheIsConcurrent(t *testing.T) {
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
