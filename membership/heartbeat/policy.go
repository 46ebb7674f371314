package heartbeat

import (
	"fmt"
	"math"
	"time"

	"github.com/muster-sdk/muster/membership"
)

const (
	// DefaultPeriod is the time between two heartbeats where none is given.
	DefaultPeriod = time.Minute
	// MinPeriod is the shortest period; one that is shorter is taken for it.
	MinPeriod = time.Second
	// MaxPeriod is the longest period; one that is longer is taken for it.
	MaxPeriod = 10 * time.Minute

	// defaultOutageShare is the share at which the node lifecycle controller of Kubernetes, too, takes a
	// zone for disrupted rather than its nodes for dead (--unhealthy-zone-threshold).
	defaultOutageShare   = 0.55
	defaultOutageMinimum = 3
	// outageHysteresis is how far the share must fall below the one that began an outage to end it.
	outageHysteresis = 0.15

	// maxHold bounds the time for which a flapping member has to hold steady, and flapWindow is how close
	// together two losses must be for the second to be a flap, both in graces. The window has to be longer
	// than the longest hold, or else a member that is lost right after it could never be caught flapping.
	maxHold    = 8
	flapWindow = 16
	maxFlaps   = math.MaxUint8 // that are counted
)

// Policy is how a [Monitor] judges. The zero Policy is the documented default of each field.
//
// Its functions are called under the Monitor's lock, if it has one, so they must return at once, and the
// same for the same arguments.
type Policy struct {
	// Grace is how long a member with this period may stay silent before it counts as lost. It must be
	// longer than the period. Nil means [DefaultGrace].
	Grace func(period time.Duration) time.Duration

	// Hold is how long a lost member has to send heartbeats, none of them late, before it counts as
	// healthy again: flaps says how many of its losses came soon after the one before, which is none for
	// the first. Nil means [DefaultHold].
	Hold func(flaps int, grace time.Duration) time.Duration

	// OutageShare is the share of members that have to be late or not ready at one time for the hub to suspect
	// itself, greater than 0. The suspicion ends when the share is 0.15 below that, or fewer than OutageMinimum
	// members are affected. Zero means 0.55; more than 1 means never.
	OutageShare float64

	// OutageMinimum is how many members have to be affected besides, so that two dead members in a fleet of three are
	// not taken for an outage. In a fleet with fewer members all of them have to be affected: a hub with a single
	// member always suspects itself, because an outage of its own network looks the same. Zero means 3.
	OutageMinimum int
}

// DefaultGrace is 3 periods and the slack that a heartbeat has on its way: a quarter of a period, at least
// 2 s. Two heartbeats in a row may be lost, and the third late. A period of 60 s has a grace of 195 s.
func DefaultGrace(period time.Duration) time.Duration {
	return 3*period + slack(period)
}

// DefaultHold is nothing for a member that does not flap; one grace for the first flap, and twice as
// much for each more, up to 8 graces. A loss is a flap if the loss before it was no more than 16 graces ago.
func DefaultHold(flaps int, grace time.Duration) time.Duration {
	if flaps <= 0 {
		return 0
	}
	return grace * time.Duration(min(1<<min(flaps-1, 10), maxHold))
}

// slack is by how much a heartbeat may come after its period and still be on time.
func slack(period time.Duration) time.Duration {
	return max(period/4, 2*time.Second)
}

func bounded(period time.Duration) time.Duration {
	if period <= 0 {
		return DefaultPeriod
	}
	return min(max(period, MinPeriod), MaxPeriod)
}

// Validate returns a [*membership.InvalidError] about the first field that no Monitor can judge by. It calls Grace and
// Hold for all periods of whole seconds. What it finds a Monitor does not look for.
func (p Policy) Validate() error {
	invalid := func(field, problem string, args ...any) error {
		return &membership.InvalidError{Field: field, Problem: fmt.Sprintf(problem, args...)}
	}
	switch {
	case math.IsNaN(p.OutageShare) || p.OutageShare < 0:
		return invalid("OutageShare", "must be greater than 0, or 0 for the default: %v", p.OutageShare)
	case p.OutageMinimum < 0:
		return invalid("OutageMinimum", "must be greater than 0, or 0 for the default: %d", p.OutageMinimum)
	}
	p = p.withDefaults()
	for period := MinPeriod; period <= MaxPeriod; period += time.Second {
		grace := p.Grace(period)
		if grace <= period {
			return invalid("Grace", "must be longer than the period, or every member is lost between two heartbeats: %s for a period of %s", grace, period)
		}
		for flaps := range maxFlaps + 1 {
			if hold := p.Hold(flaps, grace); hold < 0 {
				return invalid("Hold", "must not be negative: %s for %d flaps and a grace of %s", hold, flaps, grace)
			}
		}
	}
	return nil
}

// outageEnds is the share of late members at which an outage is over. Without the bound one that began at
// less than the hysteresis would never be, not even when all are heard.
func (p Policy) outageEnds() float64 { return max(0, p.OutageShare-outageHysteresis) }

func (p Policy) withDefaults() Policy {
	if p.Grace == nil {
		p.Grace = DefaultGrace
	}
	if p.Hold == nil {
		p.Hold = DefaultHold
	}
	if p.OutageShare <= 0 {
		p.OutageShare = defaultOutageShare
	}
	if p.OutageMinimum <= 0 {
		p.OutageMinimum = defaultOutageMinimum
	}
	return p
}
