package revision

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func names(infos []Info) []string {
	out := []string{}
	for _, info := range infos {
		out = append(out, info.Name)
	}
	return out
}

func TestPrune(t *testing.T) {
	all := []Info{
		{Name: "four", Number: 4, Complete: true}, {Name: "one", Number: 1, Complete: true}, {Name: "three", Number: 3},
		{Name: "two", Number: 2, Complete: true}, {Name: "zero"},
	}
	for _, test := range []struct {
		reason string
		inUse  []string
		limit  int
		want   []string
	}{
		{"incomplete revisions are deleted, the oldest first", nil, 3, []string{"zero", "three"}},
		{"incomplete revisions are not part of the limit", nil, 2, []string{"zero", "one", "three"}},
		{"limit zero deletes all revisions", nil, 0, []string{"zero", "one", "two", "three", "four"}},
		{"revisions in use are kept, and are not part of the limit", []string{"one", "four"}, 1, []string{"zero", "three"}},
		{"a revision in use is kept with limit zero", []string{"one"}, 0, []string{"zero", "two", "three", "four"}},
		{"an incomplete revision in use is kept", []string{"three"}, 3, []string{"zero"}},
		{"a negative limit is zero", nil, -1, []string{"zero", "one", "two", "three", "four"}},
	} {
		require.Equal(t, test.want, names(Prune(all, func(name string) bool {
			return slices.Contains(test.inUse, name)
		}, test.limit)), test.reason)
	}
	require.Equal(t, []string{"four", "one", "three", "two", "zero"}, names(all), "Prune must not change its argument")
}

func TestPruneProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Info
		used := map[string]bool{}
		for i := range rapid.IntRange(0, 12).Draw(t, "revisions") {
			info := Info{Name: fmt.Sprint(i), Number: rapid.Int64Range(0, 8).Draw(t, "number"),
				Complete: rapid.Bool().Draw(t, "complete"), CreatedAt: time.Unix(int64(rapid.IntRange(0, 2).Draw(t, "created")), 0)}
			all, used[info.Name] = append(all, info), rapid.Bool().Draw(t, "used")
		}
		limit := rapid.IntRange(0, 8).Draw(t, "limit")
		gone := map[string]*Info{}
		pruned := Prune(all, func(name string) bool { return used[name] }, limit)
		for i := range pruned {
			gone[pruned[i].Name] = &pruned[i]
		}
		require.Len(t, gone, len(pruned), "a revision is deleted twice")
		kept, complete := 0, 0
		for _, info := range all {
			if used[info.Name] {
				require.NotContains(t, gone, info.Name, "a revision in use is deleted")
				continue
			}
			if !info.Complete {
				require.Contains(t, gone, info.Name, "an incomplete revision is kept")
				continue
			}
			complete++
			if gone[info.Name] != nil {
				continue
			}
			kept++
			for _, other := range gone {
				require.False(t, other.Complete && other.Number > info.Number, "a newer revision is deleted")
			}
		}
		require.Equal(t, min(limit, complete), kept)
		again := Prune(rapid.Permutation(all).Draw(t, "order"), func(name string) bool { return used[name] }, limit)
		require.Equal(t, names(pruned), names(again))
	})
}

func TestSummarize(t *testing.T) {
	workSet := &v1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	a := contentOf(t, `{}`)
	metasOf := func(number int64, change ...func(*metav1.ObjectMeta)) (metas []*metav1.ObjectMeta) {
		info := &Info{Name: Name(workSetNamed("apps", "web"), a.Hash()), Hash: a.Hash(), Number: number, Objects: 2}
		for i := range 3 {
			object := shape(workSet, info, v1alpha1.WorkSetRevisionSpec{Hash: a.Hash().String(), Part: place{i + 1, 3}.String(),
				Objects: 2})
			object.CreationTimestamp = metav1.Unix(int64(100-i), 0)
			metas = append(metas, &object.ObjectMeta)
		}
		for _, f := range change {
			f(metas[2])
		}
		return metas
	}
	foreign := *workSet
	foreign.UID = "2"
	for _, test := range []struct {
		reason       string
		metas        []*metav1.ObjectMeta
		wantParts    int
		wantNumber   int64
		wantComplete bool
	}{
		{"all parts exist", metasOf(7), 3, 7, true},
		{"the last part is missing", metasOf(7)[:2], 2, 7, false},
		{"the first part is missing", metasOf(7)[1:], 2, 7, false},
		{"a repeated part replaces no other part", append(metasOf(7)[:2], metasOf(7)[0]), 3, 7, false},
		{"a part has a later number",
			metasOf(7, func(m *metav1.ObjectMeta) { m.Annotations[numberAnnotation] = "9" }), 3, 9, true},
		{"a part has an invalid number", metasOf(7, func(m *metav1.ObjectMeta) {
			m.Annotations[numberAnnotation] = "x"
		}), 3, 7, true},
		{"a part is being deleted", metasOf(7, func(m *metav1.ObjectMeta) {
			m.DeletionTimestamp = new(metav1.Now())
		}), 2, 7, false},
		{"a part belongs to the previous WorkSet", metasOf(7, func(m *metav1.ObjectMeta) {
			m.OwnerReferences = shape(&foreign, &Info{}, v1alpha1.WorkSetRevisionSpec{}).OwnerReferences
		}), 2, 7, false},
		{"a part has no owner", metasOf(7, func(m *metav1.ObjectMeta) { m.OwnerReferences = nil }), 2, 7, false},
		{"the number of a part differs from its name", metasOf(7, func(m *metav1.ObjectMeta) {
			m.Annotations[partAnnotation] = "1/3"
		}), 2, 7, false},
		{"the number of a part has no total",
			metasOf(7, func(m *metav1.ObjectMeta) { m.Annotations[partAnnotation] = "3" }), 2, 7, false},
		{"the number of a part exceeds the total", metasOf(7, func(m *metav1.ObjectMeta) {
			m.Annotations[partAnnotation] = "3/2"
		}), 2, 7, false},
		{"a part has no annotations", metasOf(7, func(m *metav1.ObjectMeta) { m.Annotations = nil }), 2, 7, false},
		{"a part has an invalid hash", metasOf(7, func(m *metav1.ObjectMeta) {
			m.Annotations[hashAnnotation] = "ab"
		}), 2, 7, false},
		{"a part has another total", metasOf(7, func(m *metav1.ObjectMeta) {
			m.Annotations[partAnnotation] = "3/4"
		}), 3, 7, false},
	} {
		infos := summarize(workSet, test.metas)
		require.Len(t, infos, 1, test.reason)
		got := infos[0]
		require.Equal(t, test.wantComplete, got.Complete, test.reason)
		require.Equal(t, test.wantNumber, got.Number, test.reason)
		require.Len(t, got.parts, test.wantParts, test.reason)
		require.Equal(t, []any{Name(workSetNamed("apps", "web"), a.Hash()), a.Hash(), 2}, []any{got.Name, got.Hash,
			got.Objects}, test.reason)
	}
	require.Equal(t, int64(98), summarize(workSet, metasOf(1))[0].CreatedAt.Unix(),
		"the creation time of the earliest part")
	require.Empty(t, summarize(&foreign, metasOf(1)))
}
