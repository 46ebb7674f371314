package heartbeat

import (
	"fmt"
	"math"
	"time"

	"github.com/muster-sdk/muster/membership"
)

const (
	// DefaultPeriod is the default time between two heartbeats.
	DefaultPeriod = time.Minute
	// MinPeriod is the shortest period; shorter values mean MinPeriod.
	MinPeriod = time.Second
	// MaxPeriod is the longest period; longer values mean MaxPeriod.
	MaxPeriod = 10 * time.Minute

	// defaultOutageShare is also the share at which the node lifecycle controller of Kubernetes considers a zone
	// disrupted, instead of its nodes as lost (--unhealthy-zone-threshold).
	defaultOutageShare   = 0.55
	defaultOutageMinimum = 3
	// outageHysteresis is how far the share must fall below OutageShare to end an outage.
	outageHysteresis = 0.15

	// maxHold limits the time for which the heartbeats of a flapping member must be steady. flapWindow is the maximum time
	// between two losses for the second to be a flap. Both are in grace periods. The window must be longer than the
	// longest hold. Otherwise a member that is lost right after the hold would never be flapping.
	maxHold    = 8
	flapWindow = 16
	maxFlaps   = math.MaxUint8 // limit of the counter
)

// Policy contains the rules of a [Monitor]. The zero value of each field is its documented default.
//
// A [Watcher] calls the functions under its lock, so they must return immediately, and must be deterministic.
type Policy struct {
	// Grace returns how long a member with this period may send no heartbeat before it is lost. It must be longer than
	// the period. Nil means [DefaultGrace].
	Grace func(period time.Duration) time.Duration

	// Hold returns how long a lost member must send heartbeats without a late one before it is healthy again. Flaps is
	// the number of losses shortly after the previous one, which is zero for the first. Nil means [DefaultHold].
	Hold func(flaps int, grace time.Duration) time.Duration

	// OutageShare is the share of members that must be late or not ready at the same time to start an outage, greater than
	// 0. The outage ends if the share is 0.15 below that, or if fewer than OutageMinimum members are affected. Zero means
	// 0.55; more than 1 disables the outage guard.
	OutageShare float64

	// OutageMinimum is the minimum number of affected members of an outage, so that two lost members in a fleet of three
	// are no outage. In a smaller fleet all members must be affected: in a fleet with a single member, its missing
	// heartbeats are always an outage, because a failure of the hub's network has the same effect. Zero means 3.
	OutageMinimum int
}

// DefaultGrace returns 3 periods plus the permitted delay of a heartbeat, which is a quarter of a period and at least
// 2 s. Therefore two heartbeats in a row may be lost, and the third may be late. A period of 60 s has a grace period
// of 195 s.
func DefaultGrace(period time.Duration) time.Duration {
	return 3*period + slack(period)
}

// DefaultHold returns zero for a member that does not flap, one grace period for the first flap, and twice as much for
// each further flap, up to 8 grace periods. A loss is a flap if the previous loss was at most 16 grace periods ago.
func DefaultHold(flaps int, grace time.Duration) time.Duration {
	if flaps <= 0 {
		return 0
	}
	return grace * time.Duration(min(1<<min(flaps-1, 10), maxHold))
}

// slack returns the permitted delay of a heartbeat after its period.
func slack(period time.Duration) time.Duration {
	return max(period/4, 2*time.Second)
}

func bounded(period time.Duration) time.Duration {
	if period <= 0 {
		return DefaultPeriod
	}
	return min(max(period, MinPeriod), MaxPeriod)
}

// Validate returns a [*membership.InvalidError] for the first invalid field. It calls Grace and Hold for all periods of
// whole seconds. A Monitor does not validate its policy.
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
			return invalid("Grace", "must be longer than the period, or every member is lost between two heartbeats: %s for a "+
				"period of %s", grace, period)
		}
		for flaps := range maxFlaps + 1 {
			if hold := p.Hold(flaps, grace); hold < 0 {
				return invalid("Hold", "must not be negative: %s for %d flaps and a grace of %s", hold, flaps, grace)
			}
		}
	}
	return nil
}

// outageEnds returns the share of affected members at which an outage ends. The lower bound is required if OutageShare
// is less than the hysteresis: otherwise the outage would never end.
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
