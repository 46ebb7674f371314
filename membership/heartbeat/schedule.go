package heartbeat

import "time"

// schedule says when the next heartbeat is due. It is a pure value; Run is its one user.
//
// Regular heartbeats are on a grid, one a period exactly. The grid's phase is random: agents that start
// together send their first heartbeat together, and from then on are spread evenly over the period.
// Retries leave the grid as it is, so they stay spread after an outage that all of them have seen.
type schedule struct {
	period   time.Duration
	random   func() float64
	next     time.Time // on the grid; zero before the first success
	last     time.Time // success
	failures int
}

// succeeded returns the first time on the grid that is still to come: those that a slow request has
// missed are left out.
func (s *schedule) succeeded(now time.Time) time.Time {
	s.last, s.failures = now, 0
	if s.next.IsZero() {
		s.next = now.Add(s.phase())
	}
	if missed := now.Sub(s.next); missed >= 0 {
		s.next = s.next.Add((missed/s.period + 1) * s.period)
	}
	return s.next
}

// failed returns when to try again: soon, then ever later, but never later than in a period.
func (s *schedule) failed(now time.Time) time.Time {
	first := min(max(s.period/8, 100*time.Millisecond), time.Second)
	wait := min(first<<min(s.failures, 20), s.period)
	s.failures++
	return now.Add(wait/2 + time.Duration(s.random()*float64(wait/2)))
}

// change begins another grid, on which the next heartbeat is no later than a period from now, nor from the
// last one if that can still be had.
func (s *schedule) change(period time.Duration, now time.Time) time.Time {
	s.period = period
	s.next = now.Add(s.phase())
	if due := s.last.Add(period); due.After(now) && due.Before(s.next) {
		s.next = due
	}
	return s.next
}

// phase is in (0, period].
func (s *schedule) phase() time.Duration {
	return s.period - time.Duration(s.random()*float64(s.period))
}

// requestTimeout leaves time for another try within the period, and does not wait for ages in a long one.
func requestTimeout(period time.Duration) time.Duration {
	return min(max(period/2, time.Second), 15*time.Second)
}
