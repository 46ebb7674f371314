package queue

import (
	"slices"
	"time"
)

// naive is a simple implementation of the queue, as a reference for Queue. It scans all keys in each call, and each key
// in flight has its own list of events.
type naive struct {
	now     time.Duration
	options Options[string, change]
	limit   int // the maximum number of events
	keys    map[string]*naiveKey
}

type naiveKey struct {
	state          state
	priority       int32
	failures       int
	since, retry   time.Duration
	limit          time.Duration // the end of the state unschedulable
	rejectedBy     []string
	missed         []change
	added, removed bool
}

func newNaive(options Options[string, change], limit int) *naive {
	return &naive{options: options.withDefaults(), limit: limit, keys: map[string]*naiveKey{}}
}

func (n *naive) advance(d time.Duration) {
	n.now += d
	for _, k := range n.keys {
		if k.state == backoff && k.retry <= n.now || k.state == unschedulable && k.limit <= n.now && k.retry <= n.now {
			k.state = active
		}
	}
}

func (n *naive) add(key string, priority int32) {
	k := n.keys[key]
	if k == nil {
		k = &naiveKey{since: n.now}
		n.keys[key] = k
	}
	k.priority = priority
	if k.state == inFlight {
		k.added, k.removed = true, false
		return
	}
	k.state, k.failures = active, 0
}

func (n *naive) remove(key string) {
	switch k := n.keys[key]; {
	case k == nil:
	case k.state == inFlight:
		k.added, k.removed = false, true
	default:
		delete(n.keys, key)
	}
}

// pop returns the next key, or false if none is active.
func (n *naive) pop() (Item[string], bool) {
	best, found := "", false
	for key, k := range n.keys {
		if k.state != active {
			continue
		}
		b := n.keys[best]
		if !found || k.priority > b.priority ||
			k.priority == b.priority && (k.since < b.since || k.since == b.since && key < best) {
			best, found = key, true
		}
	}
	if !found {
		return Item[string]{}, false
	}
	k := n.keys[best]
	k.state, k.missed = inFlight, nil
	return Item[string]{Key: best, Priority: k.priority, Failures: k.failures}, true
}

func (n *naive) done(key string, resultKind resultKind, plugins []string) {
	k := n.keys[key]
	if k == nil || k.state != inFlight {
		return
	}
	added, removed := k.added, k.removed
	k.added, k.removed = false, false
	k.since = n.now
	switch {
	case added:
		k.state, k.failures = active, 0
		return
	case removed || resultKind == scheduled:
		delete(n.keys, key)
		return
	}
	k.failures++
	wait := n.options.InitialBackoff
	for range k.failures - 1 {
		wait = min(2*wait, n.options.MaxBackoff)
	}
	k.retry = n.now + wait
	k.limit = n.now + n.options.MaxUnschedulable
	k.rejectedBy = plugins
	k.state = unschedulable
	if resultKind == failed || len(k.missed) > n.limit ||
		slices.ContainsFunc(k.missed, func(c change) bool { return n.helps(key, c) }) {
		k.state = backoff
	}
}

func (n *naive) event(c change) {
	for key, k := range n.keys {
		switch {
		case k.state == inFlight:
			k.missed = append(k.missed, c)
		case k.state == unschedulable && n.helps(key, c):
			k.state = backoff
		}
	}
	n.advance(0)
}

func (n *naive) helps(key string, c change) (helps bool) {
	defer func() {
		if recover() != nil {
			helps = true
		}
	}()
	rejectedBy := n.keys[key].rejectedBy
	return len(rejectedBy) == 0 || slices.ContainsFunc(rejectedBy, func(plugin string) bool {
		helpsKey := hint(plugin, c)
		return helpsKey != nil && helpsKey(key)
	})
}

func (n *naive) stats() (s Stats) {
	for _, k := range n.keys {
		switch k.state {
		case active:
			s.Active++
		case backoff:
			s.Backoff++
		case unschedulable:
			s.Unschedulable++
		case inFlight:
			s.InFlight++
		}
	}
	return s
}
