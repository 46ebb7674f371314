package hub

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// TestKeyLocks_OneOwnerPerKey checks that a key has one owner at a time, and that no key waits for another one.
func TestKeyLocks_OneOwnerPerKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const keys, owners = 20, 5
		var locks keyLocks
		start := time.Now()
		for key := range keys {
			owned := new(atomic.Int32)
			for range owners {
				go func() {
					unlock, err := locks.lock(t.Context(), fmt.Sprint(key))
					if err != nil || owned.Add(1) > 1 {
						t.Errorf("key %d has %d owners, %v", key, owned.Load(), err)
						return
					}
					<-time.After(time.Second)
					owned.Add(-1)
					unlock()
				}()
			}
		}
		<-time.After(owners*time.Second - time.Millisecond)
		synctest.Wait()
		require.Len(t, locks.locked, keys)
		<-time.After(time.Millisecond)
		synctest.Wait()
		require.Empty(t, locks.locked)
		require.Equal(t, owners*time.Second, time.Since(start))
	})
}

func TestKeyLocks_WaitEndsWithContext(t *testing.T) {
	var locks keyLocks
	unlock, err := locks.lock(t.Context(), "a")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = locks.lock(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
	unlock()
	unlock, err = locks.lock(t.Context(), "a")
	require.NoError(t, err)
	unlock()
}
