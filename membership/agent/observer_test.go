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

// TestObserverIsWanted checks that a member is observed only while a report is needed, and immediately when that
// begins: a JoinRequest may be pending for days, and observations from its start would be outdated when it is
// accepted.
func TestObserverIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wakes := [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)}
		o := &observer{clock: clock.RealClock{}, news: make(chan struct{}, 1), wakes: wakes}
		var looks atomic.Int64
		looked := func() int64 {
			synctest.Wait()
			return looks.Load()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go o.every(ctx, loop{time.Minute, wakes[0], func() {}, func(context.Context) { looks.Add(1) }})
		require.EqualValues(t, 1, looked())
		<-time.After(10 * time.Second)
		o.want(true)
		require.EqualValues(t, 1, looked(), "it has only just looked")
		<-time.After(50 * time.Second)
		require.EqualValues(t, 2, looked())
		o.want(false)
		<-time.After(24 * time.Hour)
		require.EqualValues(t, 2, looked(), "no report is needed")
		o.want(true)
		require.EqualValues(t, 3, looked(), "what it knows is of yesterday")
	})
}
