package workset

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// stored is an API server with a number of Works of one WorkSet.
type stored struct {
	client.WithWatch
	works int
}

func (s stored) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	found := list.(*workv1alpha1.WorkList)
	found.ResourceVersion = "1"
	for i := range s.works {
		found.Items = append(found.Items, workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprint("member-", i), Name: "shop.web-0", UID: "1", ResourceVersion: "1",
			Annotations: map[string]string{v1alpha1.WorkSetAnnotation: web.String()},
		}})
	}
	return nil
}

// Watch rejects streaming lists (sendInitialEvents).
func (s stored) Watch(_ context.Context, _ client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	all := client.ListOptions{}
	all.ApplyOptions(options)
	if all.Raw != nil && all.Raw.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	return watch.NewFake(), nil
}

// TestWorkCache_SyncedWithAllWorks checks that the cache is synced only when it contains the records of all Works.
// Otherwise a cluster with a missing record would be assigned a revision again.
func TestWorkCache_SyncedWithAllWorks(t *testing.T) {
	const many = 20000
	w := newWorkCache(func(types.NamespacedName) {})
	informer, known, err := w.informer(stored{works: many})
	require.NoError(t, err)
	go informer.RunWithContext(t.Context())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.True(t, toolscache.WaitForCacheSync(ctx.Done(), known))
	missing := many - len(w.of(web))
	require.Zero(t, missing)
}

// TestWorks_Restored checks that an older version of a Work replaces its record only if the API server returned it
// after the record was read, because the store was restored. Otherwise the older version is a late event.
func TestWorks_Restored(t *testing.T) {
	w := newWorkCache(func(types.NamespacedName) {})
	version := func(rv string) *record {
		return w.read(&workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{
			Namespace: "member-a", Name: "shop.web-0", UID: "1", ResourceVersion: rv,
			Annotations: map[string]string{v1alpha1.WorkSetAnnotation: web.String()},
		}})
	}
	current := func() *record { return w.at(web, "member-a").records[0] }
	w.observe(version("20"))
	before := current()
	w.deleted(before)
	w.observe(version("10"))
	require.Equal(t, "20", current().ResourceVersion, "a late event with an older version")

	w.observe(version("30"))
	w.confirmed(version("10"), before)
	require.Equal(t, "30", current().ResourceVersion, "the record has changed since it was read")

	before = current()
	w.confirmed(version("10"), before)
	require.Equal(t, "10", current().ResourceVersion, "the API server has an older version now")
	require.Nil(t, current().DeletionTimestamp, "the deletion was undone")
	w.confirmed(version("40"), current())
	require.Equal(t, "40", current().ResourceVersion)
}
