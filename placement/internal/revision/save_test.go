package revision

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestSave_OtherLimitOfParts checks that a release with another limit of parts completes an incomplete revision of an
// earlier release, and does not change a complete one.
func TestSave_OtherLimitOfParts(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	workSet := &v1alpha1.WorkSet{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}
	content := contentOf(t, `{}`)
	specs, err := encode(content, 1)
	require.NoError(t, err)
	require.Len(t, specs, 2)
	info := &Info{Name: Name(workSetNamed("apps", "web"), content.Hash()), Hash: content.Hash(), Number: 3, Objects: 2}
	for _, test := range []struct {
		reason string
		parts  []int
		want   []string
	}{
		{"an incomplete revision of two parts is saved as one part", []int{1}, []string{info.Name}},
		{"a complete revision of two parts is not changed", []int{0, 1}, []string{info.Name + "-1", info.Name + "-2"}},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).Build()
		for _, i := range test.parts {
			require.NoError(t, c.Create(t.Context(), shape(workSet, info, specs[i])), test.reason)
		}
		s := NewStore(c, c)
		saved, err := s.Save(t.Context(), workSet, content, 1)
		require.NoError(t, err, test.reason)
		require.Equal(t, []any{int64(3), true, 2}, []any{saved.Number, saved.Complete, saved.Objects}, test.reason)
		var list v1alpha1.WorkSetRevisionList
		require.NoError(t, c.List(t.Context(), &list))
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		slices.Sort(names)
		require.Equal(t, test.want, names, test.reason)
		loaded, err := s.Load(t.Context(), workSet, saved.Name)
		require.NoError(t, err, test.reason)
		require.Equal(t, content.Hash(), loaded.Hash(), test.reason)
	}
}

func TestCache(t *testing.T) {
	c := newCache(10)
	key := func(name string) cacheKey { return cacheKey{"1", name} }
	a, b, other := &Content{}, &Content{}, &Content{}
	c.add(key("a"), a, 4)
	c.add(key("b"), b, 4)
	require.Same(t, a, c.get(key("a")), "a is used after b")
	c.add(key("other"), other, 4)
	require.Nil(t, c.get(key("b")))
	require.Same(t, a, c.get(key("a")))
	require.Nil(t, c.get(cacheKey{"2", "a"}), "the key belongs to another WorkSet")
	c.add(key("a"), b, 6)
	require.Same(t, b, c.get(key("a")))
	require.Same(t, other, c.get(key("other")))
	c.remove(key("a"))
	c.remove(key("a"))
	require.Equal(t, 4, c.size)
	c.add(key("a"), a, 11)
	require.Nil(t, c.get(key("a")), "the content is larger than the cache")
	require.Zero(t, c.size)
}
