package hub

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestNotedWatch_StopWithPendingEvent checks that the goroutine of a watch ends if its reader stops while an event is
// pending: a bubble fails if a goroutine is left.
func TestNotedWatch_StopWithPendingEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var noted []string
		events := watch.NewFake()
		w := &notedWatch{events: events, results: make(chan watch.Event), stopped: make(chan struct{})}
		go w.forward(func(version string) { noted = append(noted, version) })
		events.Add(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1"}})
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		events.Modify(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "2"}})
		synctest.Wait() // until the second event is pending
		w.Stop()
		w.Stop()
		_, more := <-w.ResultChan()
		require.False(t, more)
		require.Equal(t, []string{"1", "2"}, noted)
	})
}
