package heartbeat

import (
	"fmt"
	"time"
)

// State is the state of a member's heartbeats.
type State uint8

const (
	// Awaited means that the state is not known yet: keep the recorded health. A member is Awaited from the time when it
	// is first tracked, for example after the hub starts, until its first heartbeat or the end of the grace period.
	Awaited State = iota
	// Healthy means that heartbeats arrive.
	Healthy
	// Lost means that the hub has observed no heartbeat for the grace period: the member's health is Unknown.
	Lost
	// Unsteady means that heartbeats arrive again, but the member was lost so often recently that its health is Unknown
	// until its heartbeats have been steady for Hold.
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
	// Since is the time at which the State began, by the hub's clock.
	Since time.Time
	// Suspended is true if the member's health is Unknown, or its agent reports that the cluster is not ready, while there
	// is an [Outage] or shortly after one: neither taint nor evict.
	Suspended bool
	// SuspendedUntil is the end of the grace period that the member got when the last outage ended. Zero: there is no
	// such grace period.
	SuspendedUntil time.Time

	// LastHeard is the time at which the hub last observed a heartbeat; zero: never since the member is tracked. It
	// changes with each heartbeat. A change of LastHeard alone is not reported as a change of the member.
	LastHeard time.Time
	// Grace is the grace period of the member without heartbeats.
	Grace time.Duration
	// Hold is how long, from Since on, the heartbeats of an Unsteady member must be steady: the first heartbeat after
	// that makes it Healthy, and a late one restarts the time.
	Hold time.Duration
	// Skew is the difference of the agent's clock and the hub's clock at LastHeard, minus the latency of the heartbeat. A
	// value of some seconds below zero is therefore normal. It is for information: no decision depends on it.
	Skew time.Duration
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Outage is a state in which so many members are affected that the hub or its network is the probable cause.
type Outage struct {
	// Since is the time at which the outage began, by the hub's clock.
	Since time.Time
	// Affected is the number of the Tracked members that are currently late or not ready. Late is the number that have
	// missed a heartbeat.
	Affected, Late, Tracked int
	// Push is true if only the members to which the hub connects (joinMode Push) have an outage. The numbers then apply
	// to these members.
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
