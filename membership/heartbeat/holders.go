package heartbeat

import (
	"slices"
	"time"
)

// holders detects members whose Lease several agents renew, because their cluster was cloned together with the Secret
// of its agent. Such agents have the same credential, and only the identities of their processes distinguish them.
//
// Each process has a unique identity, so the identity of an agent that was restarted does not occur again. Identities
// that occur alternately belong to processes that run at the same time. An identity occurs again at most once after a
// pause of its process. holders performs no I/O, and must not be used concurrently.
//
// A member has an entry only for a short time after a change of its holder, or while several agents renew its Lease.
type holders map[string]*holding

// holding is the state of one member.
type holding struct {
	recent  []string // the last holders, the last one at the end
	returns int      // how often a holder came back
	changed time.Time
}

const (
	// clonedAfter is the number of times that holders must occur again. A process that was paused causes two: it sends
	// one heartbeat before it observes that another agent has acquired the Lease, and the other agent acquires it again.
	clonedAfter = 3
	// maxHolders is the number of holders that are distinguished.
	maxHolders = 4
	// holdersFor is how long a change of the holder counts, in grace periods.
	holdersFor = 2
)

// observe records a heartbeat, and reports whether the result of the method of has changed.
func (h holders) observe(member string, seen sighting, now time.Time) bool {
	e := h[member]
	switch {
	case seen.holder == "":
		return false
	case e == nil:
		if seen.acquired {
			h[member] = &holding{recent: []string{seen.holder}, changed: now}
		}
		return false
	}
	over := now.Sub(e.changed) > holdersFor*max(seen.grace, time.Second)
	if seen.holder == e.recent[len(e.recent)-1] {
		if !over {
			return false
		}
		delete(h, member)
		return e.cloned()
	}
	was := e.cloned()
	if over {
		e.returns, e.recent = 0, e.recent[len(e.recent)-1:]
	}
	if at := slices.Index(e.recent, seen.holder); at >= 0 {
		e.returns++
		e.recent = slices.Delete(e.recent, at, at+1)
	}
	e.recent = append(e.recent, seen.holder)
	if len(e.recent) > maxHolders {
		e.recent = e.recent[1:]
	}
	e.changed = now
	return e.cloned() != was
}

func (e *holding) cloned() bool { return e.returns >= clonedAfter }

// of returns the identities of the agents that renew the Lease of a member, sorted, if there are several.
func (h holders) of(member string) []string {
	e := h[member]
	if e == nil || !e.cloned() {
		return nil
	}
	return sorted(slices.Clone(e.recent))
}
