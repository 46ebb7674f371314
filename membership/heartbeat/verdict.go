package heartbeat

import (
	"fmt"
	"time"
)

// State is what a [Monitor] knows of a member.
type State uint8

const (
	// Awaited means that it is too early to tell: keep what was recorded before. A member is Awaited from
	// when it is first tracked, which is when the hub starts, to its first heartbeat or the end of the grace.
	Awaited State = iota
	// Healthy means that heartbeats arrive.
	Healthy
	// Lost means that the hub has observed no heartbeat for the grace: the member's health is Unknown.
	Lost
	// Unsteady means that a member that was lost is heard again, but has been lost so often of late
	// that it has to hold steady first: its health is still Unknown.
	Unsteady

	states = int(Unsteady) + 1
)

// Unknown reports whether the member's health is Unknown: it is Lost or Unsteady.
func (s State) Unknown() bool { return s == Lost || s == Unsteady }

// String returns the name of the constant.
func (s State) String() string {
	return [...]string{"Awaited", "Healthy", "Lost", "Unsteady"}[s]
}

// Verdict is what a [Monitor] says of one member.
type Verdict struct {
	State State
	// Since is when the State began, by the hub's clock.
	Since time.Time
	// HeldBack means that the hub suspects itself (see [Outage]), or has done so a short time ago, rather than this
	// member, whose health is Unknown or whose agent reports that it is not ready: do not act on that; neither taint
	// nor evict.
	HeldBack bool
	// HeldUntil is the end of the grace that the member was given when the last outage ended. Zero: there is none, or
	// it is over.
	HeldUntil time.Time

	// LastHeard is when the hub last observed a heartbeat, zero if it has not since it tracks the member. It
	// moves with each heartbeat, which by itself does not make a verdict a changed one.
	LastHeard time.Time
	// Grace is how long the member may stay silent.
	Grace time.Duration
	// Hold is for how long, from Since on, an Unsteady member has to hold steady: the first heartbeat after
	// that makes it Healthy, and one that is late begins it anew.
	Hold time.Duration
	// Skew is by how much the agent's clock was ahead of the hub's at LastHeard; less the time that the
	// heartbeat took to arrive, so that no more than some seconds below zero mean nothing. It is there to be
	// shown: no verdict depends on it.
	Skew time.Duration
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Outage is the hub's suspicion that it is the hub, or its network, that fails, and not its members.
type Outage struct {
	// Since is when the hub began to suspect itself, by its own clock.
	Since time.Time
	// Affected is how many of the Tracked members are late or not ready, as of now. Late have missed a heartbeat.
	Affected, Late, Tracked int
}

// String says so in a sentence.
func (o Outage) String() string {
	return fmt.Sprintf("%d of %d members are late with their heartbeats or not ready; "+
		"since %s the hub suspects itself and withholds taints and failover.",
		o.Affected, o.Tracked, stamp(o.Since))
}

// Stats counts what a [Monitor] has in hand.
type Stats struct {
	// Awaited, Healthy, Lost and Unsteady are the numbers of tracked members in each state.
	Awaited, Healthy, Lost, Unsteady int
	// Late is how many of them have missed a heartbeat, and Affected how many are late or not ready.
	Late, Affected int
	// Beats is how many heartbeats of tracked members have been observed.
	Beats uint64
}
