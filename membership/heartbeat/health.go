package heartbeat

import (
	"fmt"
	"time"
)

// State is the state of a member's heartbeats.
type State uint8

const (
	// Awaited means that the state is not known yet: keep the recorded health. A member is Awaited from when it is first
	// tracked, for example after a start of the hub, to its first heartbeat or the end of the grace period.
	Awaited State = iota
	// Healthy means that heartbeats arrive.
	Healthy
	// Lost means that the hub has observed no heartbeat for the grace period: the member's health is Unknown.
	Lost
	// Unsteady means that heartbeats arrive again, but the member was lost so often recently that its heartbeats must be
	// steady first: its health is still Unknown.
	Unsteady

	states = int(Unsteady) + 1
)

// Unknown reports whether the member's health is Unknown: it is Lost or Unsteady.
func (s State) Unknown() bool { return s == Lost || s == Unsteady }

// String returns the name of the constant.
func (s State) String() string {
	return [...]string{"Awaited", "Healthy", "Lost", "Unsteady"}[s]
}

// Health is the state of one member.
type Health struct {
	State State
	// Since is when the State began, by the hub's clock.
	Since time.Time
	// Suspended is true if the member's health is Unknown, or its agent reports that the cluster is not ready, while there
	// is an [Outage] or shortly after one: neither taint nor evict.
	Suspended bool
	// SuspendedUntil is the end of the grace period that the member got when the last outage ended. Zero: none, or it is
	// over.
	SuspendedUntil time.Time

	// LastHeard is when the hub last observed a heartbeat; zero: never since it tracks the member. It changes with each
	// heartbeat, which alone does not report the member as changed.
	LastHeard time.Time
	// Grace is how long the member may be silent.
	Grace time.Duration
	// Hold is for how long, from Since on, the heartbeats of an Unsteady member must be steady: the first heartbeat after
	// that makes it Healthy, and a late one restarts the time.
	Hold time.Duration
	// Skew is how far the agent's clock was ahead of the hub's at LastHeard, minus the latency of the heartbeat. Some
	// seconds below zero are therefore normal. It is for information: no decision depends on it.
	Skew time.Duration
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Outage is a state in which so many members are affected that the hub or its network is the probable cause.
type Outage struct {
	// Since is when the outage began, by the hub's clock.
	Since time.Time
	// Affected is how many of the Tracked members are currently late or not ready. Late is how many have missed a
	// heartbeat.
	Affected, Late, Tracked int
	// Push is true if the outage is that of the members to which the hub connects (joinMode Push) alone. The numbers are
	// those of these members then.
	Push bool
}

// String returns a message about the outage.
func (o Outage) String() string {
	return fmt.Sprintf("%d of %d members are late with their heartbeats or not ready; "+
		"since %s taints and failover are withheld, because the hub itself may be the cause.",
		o.Affected, o.Tracked, stamp(o.Since))
}

// Stats are the counters of a [Monitor].
type Stats struct {
	// Awaited, Healthy, Lost and Unsteady are the numbers of tracked members in each state.
	Awaited, Healthy, Lost, Unsteady int
	// Late is the number of members that have missed a heartbeat, and Affected that of members that are late or not ready.
	Late, Affected int
	// Beats is the number of observed heartbeats of tracked members.
	Beats uint64
}
