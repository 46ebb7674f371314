package clusterid

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// stuck is a hub that accepts requests and never responds.
type stuck struct{ client.Reader }

func (stuck) List(ctx context.Context, _ client.ObjectList, _ ...client.ListOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestReserver_SlowReservationBlocksNoOther checks that a slow reservation delays no other cluster, and that a second
// member of the same cluster gets an error.
func TestReserver_SlowReservationBlocksNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewReserver(stuck{}, nil)
		reserve := func(name, id string) error {
			cluster := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
			return r.Reserve(t.Context(), cluster, id)
		}
		start := time.Now()
		var reserving sync.WaitGroup
		for _, id := range []string{"a", "b", "c"} {
			reserving.Go(func() {
				if err := reserve("of-"+id, id); err == nil {
					t.Errorf("cluster %s: want an error", id)
				}
			})
		}
		synctest.Wait()
		require.ErrorContains(t, reserve("other", "a"), "member other needs cluster ID a, which is being reserved for "+
			"member of-a")
		reserving.Wait()
		require.Equal(t, requestTimeout, time.Since(start), "the reservations run concurrently")
		require.ErrorIs(t, reserve("other", "a"), context.DeadlineExceeded,
			"the ID is free after the timeout of the first reservation")
	})
}
