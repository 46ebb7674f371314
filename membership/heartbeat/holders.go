package heartbeat

import (
	"slices"
	"time"
)

// holders finds members whose Lease several agents renew, because their cluster was cloned together with the Secret of
// its agent. Such agents have the same credential, and nothing but the identity of their processes distinguishes them.
//
// A process has an identity of its own, so the identity of an agent that was restarted does not come back. Identities
// that come back again and again are those of processes that run at the same time. One comes back at most once after a
// pause of its process. It is pure, and must not be used concurrently.
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
	// clonedAfter is how often holders must come back. A process that was paused for a while causes two: it sends one
	// heartbeat before it finds that another agent took over, and the other agent takes over again.
	clonedAfter = 3
	// maxHolders is how many holders are distinguished.
	maxHolders = 4
	// holdersFor is for how many grace periods a change of the holder counts.
	holdersFor = 2
)

// observe records a heartbeat, and reports whether the identities that of returns have changed.
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
