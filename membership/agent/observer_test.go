package agent

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/clock"
)

// TestObserver_RunsOnlyWhenNeeded checks that a member is observed only while a report is needed, and immediately
// when that begins: a JoinRequest may be pending for days, and observations from its start would be outdated when it
// is accepted.
func TestObserver_RunsOnlyWhenNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wakes := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
		o := &observer{clock: clock.RealClock{}, news: make(chan struct{}, 1), wakes: wakes}
		var observations atomic.Int64
		observed := func() int64 {
			synctest.Wait()
			return observations.Load()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go o.every(ctx, loop{time.Minute, wakes[0], func() {}, func(context.Context) { observations.Add(1) }})
		require.EqualValues(t, 1, observed())
		<-time.After(10 * time.Second)
		o.want(true)
		require.EqualValues(t, 1, observed(), "the last observation is recent")
		<-time.After(50 * time.Second)
		require.EqualValues(t, 2, observed())
		o.want(false)
		<-time.After(24 * time.Hour)
		require.EqualValues(t, 2, observed(), "no report is needed")
		o.want(true)
		require.EqualValues(t, 3, observed(), "the last observation is outdated")
	})
}
