package heartbeat

import "time"

// schedule computes the time of the next heartbeat. It performs no I/O. Only Run uses it.
//
// Regular heartbeats are on a grid of exactly one period. The phase of the grid is random: agents that start together
// send their first heartbeat together, and are then spread evenly over the period. Retries do not move the grid, so
// agents stay spread after an outage of the hub.
type schedule struct {
	period   time.Duration
	random   func() float64
	next     time.Time // on the grid; zero before the first success
	last     time.Time // success
	failures int
}

// succeeded returns the next time on the grid. Times that passed during a slow request are skipped.
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

// failed returns the time of the next attempt. The pauses increase up to one period.
func (s *schedule) failed(now time.Time) time.Time {
	first := min(max(s.period/8, 100*time.Millisecond), time.Second)
	wait := min(first<<min(s.failures, 20), s.period)
	s.failures++
	return now.Add(wait/2 + time.Duration(s.random()*float64(wait/2)))
}

// change starts another grid. The next heartbeat is at most one period from now, and at most one period after the last
// one if that is still possible.
func (s *schedule) change(period time.Duration, now time.Time) time.Time {
	s.period = period
	s.next = now.Add(s.phase())
	if due := s.last.Add(period); due.After(now) && due.Before(s.next) {
		s.next = due
	}
	return s.next
}

// phase returns a random duration in (0, period].
func (s *schedule) phase() time.Duration {
	return s.period - time.Duration(s.random()*float64(s.period))
}

// requestTimeout returns a timeout that permits another attempt within the period, with a limit for long periods.
func requestTimeout(period time.Duration) time.Duration {
	return min(max(period/2, time.Second), 15*time.Second)
}
