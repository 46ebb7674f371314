package placement

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

// TestEvictionCache checks that the cache contains the newest version of an eviction in any order of events, and that
// only relevant changes enqueue a placement.
func TestEvictionCache(t *testing.T) {
	o := newEvictionCache()
	stopped := 0
	version := func(uid types.UID, version, placement string) *v1alpha1.PlacementEviction {
		return &v1alpha1.PlacementEviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "e", UID: uid, ResourceVersion: version,
				CreationTimestamp: metav1.Unix(1000, 0)},
			Spec: v1alpha1.PlacementEvictionSpec{Placement: placement, Cluster: "a"},
		}
	}
	versions := func(k key) []string {
		var found []string
		for _, e := range o.ofPlacement(k) {
			found = append(found, e.Name+"@"+e.ResourceVersion)
		}
		return found
	}
	require.Equal(t, []key{"ns/web"}, o.observe(version("1", "1", "web")), "a new eviction")
	o.beginWrite(version("1", "1", "web"))(version("1", "3", "web"))
	require.Empty(t, o.observe(version("1", "2", "web")), "the watch lags behind")
	require.Empty(t, o.observe(version("1", "3", "web")), "the write of this process")
	require.Equal(t, []string{"e@3"}, versions("ns/web"))
	begin := func() func() { return func() { stopped++ } }
	o.wait(version("1", "3", "web"), time.Unix(5, 0), begin)
	o.wait(version("1", "3", "web"), time.Unix(5, 0), begin)
	require.Zero(t, stopped, "the timer keeps running")

	deleting := version("1", "4", "web")
	deleting.DeletionTimestamp = new(metav1.Unix(2000, 0))
	require.Equal(t, []key{"ns/web"}, o.observe(deleting), "the eviction is being deleted")
	require.Empty(t, versions("ns/web"))
	end := o.beginWrite(version("1", "4", "web"))
	require.Equal(t, []key{"ns/shop", "ns/web"}, o.observe(version("2", "5", "shop")),
		"an eviction that is created again for another placement")
	require.Equal(t, 1, stopped)
	require.Empty(t, o.observeDeletion(version("1", "4", "web")), "the deletion of the former eviction")
	end(version("1", "4", "web"))
	require.Equal(t, []string{"e@5"}, versions("ns/shop"))

	first := version("3", "6", "shop")
	first.Name, first.CreationTimestamp = "z", metav1.Unix(999, 0)
	second := version("4", "7", "shop")
	second.Name = "d"
	o.observe(second)
	o.observe(first)
	require.Equal(t, []string{"z@6", "d@7", "e@5"}, versions("ns/shop"), "sorted by age, then by name")
	for _, e := range []*v1alpha1.PlacementEviction{first, second, version("2", "5", "shop")} {
		require.Equal(t, []key{"ns/shop"}, o.observeDeletion(e))
	}
	require.Zero(t, o.objects.Len())
	require.Empty(t, o.owned)
	require.Empty(t, o.timers)
}

// TestFilteredFleets checks that a filtered fleet equals the fleet without the excluded clusters after any changes,
// also for an older snapshot.
func TestFilteredFleets(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	rapid.Check(t, func(t *rapid.T) {
		var fleet scheduler.Cache
		var w filteredFleets
		excluded := rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "excluded")
		var snapshots []*scheduler.Snapshot
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				name := rapid.SampledFrom(names).Draw(t, "name")
				if rapid.Bool().Draw(t, "removed") {
					fleet.Remove(name)
				} else {
					fleet.Update(&scheduler.Cluster{Name: name})
				}
			}
			snapshots = append(snapshots, fleet.Snapshot())
			whole := rapid.SampledFrom(snapshots).Draw(t, "snapshot")
			var want, got []*scheduler.Cluster
			for slot := range whole.All().All() {
				if !slices.Contains(excluded, whole.Cluster(slot).Name) {
					want = append(want, whole.Cluster(slot))
				}
			}
			filtered := w.use("p", strings.Join(excluded, ","), named(excluded)).of(whole)
			for slot := range filtered.All().All() {
				got = append(got, filtered.Cluster(slot))
			}
			byName := cmpopts.SortSlices(func(a, b *scheduler.Cluster) bool { return a.Name < b.Name })
			if diff := cmp.Diff(want, got, byName, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b *scheduler.Cluster) bool {
				return a == b
			})); diff != "" {
				t.Fatalf("without %v (-want +got):\n%s", excluded, diff)
			}
			if again := w.use("q", strings.Join(excluded, ","), named(excluded)).of(whole); again != filtered {
				t.Fatal("equal exclusions must share a fleet")
			}
		}
		w.use("p", strings.Join(names, ","), named(names))
		w.keep("p", "")
		if want := min(1, len(excluded)); len(w.fleets) != want {
			t.Fatalf("%d fleets are kept, want %d", len(w.fleets), want)
		}
		w.keep("q", "")
		if len(w.fleets) > 0 {
			t.Fatal("unused fleets are kept")
		}
	})
}
