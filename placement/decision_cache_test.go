package placement

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var clusterScoped, namespaced = regexp.MustCompile("-clusterdecision-[0-9]+$"), regexp.MustCompile("-decision-[0-9]+$")

func TestSliceName(t *testing.T) {
	for _, of := range []string{"web", "web-decision-3", "web-clusterdecision-3", strings.Repeat("a", 63),
		strings.Repeat("a", 64), strings.Repeat("a.", 126) + "a"} {
		for _, index := range []int{0, 7, 99999} {
			names := map[string]bool{}
			for _, namespace := range []string{"apps", ""} {
				placement := types.NamespacedName{Namespace: namespace, Name: of}
				name := sliceName(placement, index)
				require.Empty(t, validation.IsDNS1123Subdomain(name))
				got, ok := indexOf(placement, name)
				require.True(t, ok)
				require.Equal(t, index, got)
				_, ok = indexOf(types.NamespacedName{Namespace: namespace, Name: "other"}, name)
				require.False(t, ok)
				names[name] = true
				// A Placement and a ClusterPlacement never have a PlacementDecision of the same name.
				require.Equal(t, namespace == "", clusterScoped.MatchString(name), name)
				require.Equal(t, namespace != "", namespaced.MatchString(name), name)
			}
			require.Len(t, names, 2)
		}
	}
	for _, name := range []string{"web", "web-decision-", "web-decision-x", "web-decision-01", "web-decision--1",
		"web-decision-+1", "web-decision-1-decision-1", ""} {
		_, ok := indexOf(types.NamespacedName{Namespace: "apps", Name: "web"}, name)
		require.False(t, ok, name)
	}
}

func decided(names ...string) []v1alpha1.ClusterDecision {
	var d []v1alpha1.ClusterDecision
	for _, name := range names {
		d = append(d, v1alpha1.ClusterDecision{ClusterName: name})
	}
	return d
}

func TestChanges(t *testing.T) {
	placement := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "1"}}
	object := func(index int, names ...string) *v1alpha1.PlacementDecision {
		o := &v1alpha1.PlacementDecision{}
		shape(o, placement, decision.Slice{Index: index, Decisions: decided(names...)})
		return o
	}
	orphan, relabeled := object(7, "z"), object(0, "a")
	orphan.Name = "copy"
	relabeled.Labels = map[string]string{"mine": "stays"}
	for _, test := range []struct {
		reason string
		before []*v1alpha1.PlacementDecision
		laid   []decision.Slice
		want   []string
	}{
		{"an up-to-date decision is not written", []*v1alpha1.PlacementDecision{object(0, "a")},
			[]decision.Slice{{Index: 0, Decisions: decided("a")}}, nil},
		{
			"additions precede removals, and deletions are last",
			[]*v1alpha1.PlacementDecision{object(0, "a", "b"), object(1, "c"), object(2, "x", "y", "z")},
			[]decision.Slice{{Index: 0, Decisions: decided("a")}, {Index: 1, Decisions: decided("c", "d")},
				{Index: 3, Decisions: decided("e", "f")}},
			[]string{"web-decision-3+2", "web-decision-1+1", "web-decision-0-1", "web-decision-2 gone"},
		},
		{"a missing label is restored", []*v1alpha1.PlacementDecision{relabeled},
			[]decision.Slice{{Index: 0, Decisions: decided("a")}}, []string{"web-decision-0+0"}},
		{"a decision with another name is a copy of another client", []*v1alpha1.PlacementDecision{orphan}, nil,
			[]string{"copy gone"}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			var got []string
			for _, c := range changes(placement, test.before, test.laid) {
				if c.want == nil {
					got = append(got, c.old.Name+" gone")
					continue
				}
				require.True(t, metav1.IsControlledBy(c.want, placement))
				got = append(got, fmt.Sprintf("%s%+d", c.want.Name, c.growth()))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	require.Equal(t, "stays", changes(placement, []*v1alpha1.PlacementDecision{relabeled},
		[]decision.Slice{{Decisions: decided("a")}})[0].want.Labels["mine"])
}

// TestDecisionCache checks that the cache contains the newest version, whether the watch or the response to a write is
// first, and that a write of this process enqueues nothing.
func TestDecisionCache(t *testing.T) {
	placement := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "p"}}
	k := "ns/web"
	version := func(uid types.UID, version string, clusters ...string) *v1alpha1.PlacementDecision {
		o := &v1alpha1.PlacementDecision{}
		shape(o, placement, decision.Slice{Decisions: decided(clusters...)})
		o.UID, o.ResourceVersion = uid, version
		return o
	}
	freed := version("u", "3", "a")
	freed.OwnerReferences = nil
	delete(freed.Labels, v1alpha1.PlacementLabel)
	type step = func(l *decisionCache) []key
	var end func(*v1alpha1.PlacementDecision)
	var endDeletion func(deleted bool)
	observed := func(o *v1alpha1.PlacementDecision) step { return func(l *decisionCache) []key { return l.observe(o) } }
	observedDeletion := func(o *v1alpha1.PlacementDecision) step {
		return func(l *decisionCache) []key { return l.observeDeletion(o) }
	}
	beginWrite := func(o *v1alpha1.PlacementDecision) step {
		return func(l *decisionCache) []key { end = l.beginWrite(o); return nil }
	}
	endWrite := func(o *v1alpha1.PlacementDecision) step {
		return func(*decisionCache) []key { end(o); return nil }
	}
	beginDeletion := func(l *decisionCache) []key { endDeletion = l.beginDeletion(version("u", "1", "a")); return nil }
	deleted := func(succeeded bool) step { return func(*decisionCache) []key { endDeletion(succeeded); return nil } }
	for _, test := range []struct {
		reason   string
		steps    []step
		notified int      // number of steps that enqueue the placement
		want     []string // clusters; nil: there is no object
	}{
		{"an existing object", []step{observed(version("u", "1", "a"))}, 1, []string{"a"}},
		{"the watch lags behind a write", []step{observed(version("u", "1", "a")), beginWrite(version("u", "1", "b")),
			endWrite(version("u", "2", "b")), observed(version("u", "1", "a"))}, 1, []string{"b"}},
		{"the watch precedes the response", []step{beginWrite(version("", "", "a")), observed(version("u", "1", "a")),
			endWrite(version("u", "1", "a"))}, 0, []string{"a"}},
		{"the response precedes the watch", []step{beginWrite(version("", "", "a")), endWrite(version("u", "1", "a")),
			observed(version("u", "1", "a"))}, 0, []string{"a"}},
		{"versions are compared as numbers",
			[]step{observed(version("u", "9", "a")), observed(version("u", "10", "b"))}, 2, []string{"b"}},
		{"another client wrote before",
			[]step{beginWrite(version("u", "1", "b")), observed(version("u", "2", "x")), endWrite(nil)}, 1,
			[]string{"x"}},
		{"another client wrote afterwards", []step{beginWrite(version("u", "1", "b")), observed(version("u", "3", "x")),
			endWrite(version("u", "2", "b"))}, 1, []string{"x"}},
		{"deleted by another client",
			[]step{observed(version("u", "1", "a")), observedDeletion(version("u", "2", "a"))}, 2, nil},
		{"deleted by this process",
			[]step{observed(version("u", "1", "a")), beginDeletion, deleted(true), observed(version("u", "1", "a")),
				observedDeletion(version("u", "2", "a"))}, 1, nil},
		{"deleted by this process, and the watch precedes the response",
			[]step{observed(version("u", "1", "a")), beginDeletion,
				observedDeletion(version("u", "2", "a")), deleted(true)}, 1, nil},
		{"the deletion failed", []step{observed(version("u", "1", "a")), beginDeletion, deleted(false)}, 1, []string{"a"}},
		{"deleted by another client before the response to the creation", []step{beginWrite(version("", "", "a")),
			observed(version("u", "1", "a")), observedDeletion(version("u", "2", "a")),
			endWrite(version("u", "1", "a"))}, 1, nil},
		{"created again after a deletion by this process",
			[]step{observed(version("u", "1", "a")), beginDeletion, deleted(true),
				beginWrite(version("", "", "b")), endWrite(version("v", "3", "b")),
				observedDeletion(version("u", "2", "a"))}, 1, []string{"b"}},
		{"the deletion of the former object keeps the new one",
			[]step{observed(version("v", "3", "b")), observedDeletion(version("u", "2", "a"))}, 1,
			[]string{"b"}},
		{"another client removed the owner", []step{observed(version("u", "1", "a")), observed(freed)}, 2, nil},
		{"a failed write leaves no object", []step{beginWrite(version("", "", "a")), endWrite(nil)}, 0, nil},
	} {
		t.Run(test.reason, func(t *testing.T) {
			l, notified := newDecisionCache(), 0
			for _, do := range test.steps {
				notified += len(do(l))
			}
			var got []string
			for _, o := range l.slices(k, "p") {
				for _, d := range o.Decisions {
					got = append(got, d.ClusterName)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			require.Equal(t, test.notified, notified, "notifications")
			if got == nil {
				require.Empty(t, l.owned)
				require.Empty(t, l.expected)
			}
			require.Empty(t, l.slices(k, "older"), "another placement of the name must have no slices")
		})
	}
}

// TestDecisionCache_RestoredWithoutOwner checks that a PlacementDecision which a backup tool restored without its
// ownerReferences is adopted with its content, so that the placement keeps its clusters. An object whose name is not
// that of a slice is not adopted.
func TestDecisionCache_RestoredWithoutOwner(t *testing.T) {
	placement := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "p"}}
	restored := &v1alpha1.PlacementDecision{}
	shape(restored, placement, decision.Slice{Decisions: decided("a")})
	restored.UID, restored.ResourceVersion, restored.OwnerReferences = "u", "1", nil
	other := restored.DeepCopy()
	other.UID, other.Name = "v", "other-decision-0"

	l := newDecisionCache()
	require.Equal(t, []key{"ns/web"}, l.observe(restored))
	require.Empty(t, l.observe(other))
	before := l.slices("ns/web", "p")
	require.Equal(t, []*v1alpha1.PlacementDecision{restored}, before)
	todo := changes(placement, before, []decision.Slice{{Decisions: decided("a")}})
	require.Len(t, todo, 1)
	require.True(t, metav1.IsControlledBy(todo[0].want, placement))
	require.Equal(t, types.UID("u"), todo[0].want.UID)
}
