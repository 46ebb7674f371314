package apply

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestWave(t *testing.T) {
	t.Parallel()
	require.Equal(t, WaveObjects, Wave(schema.GroupKind{Group: "example.com", Kind: "Deployment"}),
		"the wave depends on the group of the kind")
	require.Equal(t, WaveWorkloads, Wave(schema.GroupKind{Group: "apps", Kind: "Deployment"}))
	require.Less(t, Wave(schema.GroupKind{Kind: "ServiceAccount"}), Wave(schema.GroupKind{Kind: "Secret"}),
		"the token controller deletes the token Secret of an account that does not exist yet")
	plan := tasks{{wave: 1 << 30, index: 0}, {wave: -1 << 31, index: 1}, {wave: 1 << 30, index: 2}, {wave: 0, index: 3}}
	var order [][]int
	for _, wave := range plan.waves() {
		var of []int
		for _, t := range wave {
			of = append(of, t.index)
		}
		order = append(order, of)
	}
	require.Equal(t, [][]int{{1}, {3}, {0, 2}}, order, "lowest first, each in the order of the set, without overflow")
	require.Empty(t, tasks(nil).waves())
}

func TestInventoryProperties(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	rapid.Check(t, func(t *rapid.T) {
		var recorded []v1alpha1.AppliedResource
		for _, name := range rapid.SliceOfDistinct(names, rapid.ID).Draw(t, "recorded") {
			recorded = append(recorded, v1alpha1.AppliedResource{ResourceIdentifier: v1alpha1.ResourceIdentifier{Version: "v1",
				Kind: "X", Name: name}, UID: types.UID(name)})
		}
		var objects []Object
		var changes []Change
		for _, name := range rapid.SliceOfDistinct(names, rapid.ID).Draw(t, "wanted") {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("v1")
			u.SetKind("X")
			u.SetName(name)
			objects = append(objects, Object{Manifest: u})
			action := rapid.SampledFrom([]Action{Created, Configured, Unchanged, Skipped, Conflict, Failed}).Draw(t, "action")
			changes = append(changes, Change{Object: identifier(u), Action: action, Live: LiveObject{UID: "new"}})
		}
		ahead := Ahead(recorded, objects)
		if !slices.Equal(ahead, Ahead(ahead, objects)) {
			t.Fatal("Ahead must be idempotent")
		}
		after := inventory(ahead).after(changes)
		if len(after) != len(ahead) || len(Stale(after, objects)) != len(ahead)-len(objects) {
			t.Fatalf("an apply must not remove entries: %v %v", ahead, after)
		}
		for i := range changes {
			changes[i].Action = rapid.SampledFrom([]Action{Deleted, Released, Deleting, Failed}).Draw(t, "end")
		}
		kept := slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Done() })
		if left := inventory(ahead).after(changes); len(left) != len(ahead)-len(objects)+len(kept) {
			t.Fatalf("only deleted and released objects are removed: %v", left)
		}
	})
}

func TestEngine_Memory(t *testing.T) {
	t.Parallel()
	e := &Engine{memory: map[types.UID]memories{}}
	owner := Owner{}
	owner.Reference.UID = "owner"
	a := &task{id: v1alpha1.ResourceIdentifier{Kind: "X", Name: "a"}, hash: "h",
		observed: &observation{uid: "1", version: "5"}}
	b := &task{id: v1alpha1.ResourceIdentifier{Kind: "X", Name: "b"}}
	e.remember(owner, a, memory{hash: "h", written: &observation{uid: "1", version: "5", fields: []byte("f")}})
	e.remember(owner, b, memory{})
	e.retain(owner, nil, tasks{*a})
	require.Len(t, e.memory["owner"], 1, "objects outside of the set are removed from the memory")

	m := e.recall(owner, a)
	require.Equal(t, []byte("f"), m.accepted(a))
	a.observed = &observation{uid: "2"}
	require.Nil(t, m.accepted(a), "an object with another UID")
	a.observed, a.hash = &observation{uid: "1"}, "other"
	require.Nil(t, m.accepted(a), "a changed manifest")
	require.Equal(t, "5", m.latest(&observation{uid: "0", version: "4"}).version,
		"an older object precedes the last write of the engine")
	require.Equal(t, "6", m.latest(&observation{uid: "1", version: "6"}).version)
	require.Equal(t, "odd", m.latest(&observation{version: "odd"}).version, "a version that is not comparable is accepted")
	e.Forget("owner")
	require.Empty(t, e.memory)
}
