package agent

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestFollower_ListsWhileTheAgentWaits checks that an agent that waits for an epoch observes that a restore has
// removed its report, although its watch delivers no event. At other times the watch is the only request.
func TestFollower_ListsWhileTheAgentWaits(t *testing.T) {
	var lists, watches atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			watches.Add(1)
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
			case <-ctx.Done():
			}
			return
		}
		lists.Add(1)
		_, _ = fmt.Fprint(w, `{"apiVersion":"membership.muster.dev/v1alpha1","kind":"MembershipList",`+
			`"metadata":{"resourceVersion":"20"},"items":[{"metadata":{"name":"self"},"spec":{"memberUID":"uid"}}]}`)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(cancel)
	member := registered{Server: server.URL, Namespace: "member-east", UID: "uid"}
	hub, err := connect(member, nil, func(*rest.Config) {}, heartbeat.BeaterOptions{})
	require.NoError(t, err)
	clock := clocktesting.NewFakeClock(time.Now())
	a := &agent{Options: Options{Clock: clock}, connection: hub, random: func() float64 { return 0.5 }}
	list := &v1alpha1.MembershipList{}
	list.ResourceVersion = "10"
	f := a.follow(ctx, list)
	defer f.close()
	for range 3 {
		mustertest.Eventually(t, time.Minute, "the follower watches", func() error {
			if watches.Load() != 1 || !clock.HasWaiters() {
				return fmt.Errorf("%d watches, waits: %t", watches.Load(), clock.HasWaiters())
			}
			return nil
		})
		clock.Step(rereadPeriod)
	}
	require.Zero(t, lists.Load())
	require.Nil(t, f.take())

	f.rereads.Store(true)
	mustertest.Eventually(t, time.Minute, "the follower lists periodically", func() error {
		clock.Step(rereadPeriod / 10)
		if n := lists.Load(); n < 3 {
			return fmt.Errorf("%d lists, %d watches", n, watches.Load())
		}
		return nil
	})
	s := f.take()
	require.NotNil(t, s)
	require.Equal(t, lifecycle.HubSeen, s.state)
	require.Equal(t, "20", s.revision)
}
