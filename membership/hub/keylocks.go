package hub

import (
	"context"
	"fmt"
	"sync"
)

// keyLocks is a set of locks, one for each key. The zero value is ready for use. Unlike a mutex, lock ends with its
// context, because the owner of a lock sends requests to the API server.
type keyLocks struct {
	mu     sync.Mutex
	locked map[string]chan struct{} // closed when the key is unlocked
}

// lock waits until no other caller has locked the key, and returns the function that unlocks it.
func (l *keyLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	for {
		unlocked := l.tryLock(key)
		if unlocked == nil {
			return func() { l.unlock(key) }, nil
		}
		select {
		case <-unlocked:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a concurrent reconcile of %s: %w", key, context.Cause(ctx))
		}
	}
}

// tryLock locks the key and returns nil, or returns a channel that is closed when the key is unlocked.
func (l *keyLocks) tryLock(key string) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if unlocked, exists := l.locked[key]; exists {
		return unlocked
	}
	if l.locked == nil {
		l.locked = map[string]chan struct{}{}
	}
	l.locked[key] = make(chan struct{})
	return nil
}

func (l *keyLocks) unlock(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.locked[key])
	delete(l.locked, key)
}
