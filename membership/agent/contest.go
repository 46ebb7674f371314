package agent

import (
	"time"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// contest limits how often the agent corrects a status that another client changes repeatedly: if a cluster was cloned
// with its agent, the agent of the clone reports another cluster in the same Membership.
type contest struct {
	last     *report // as last written; nil: none
	lost     int     // how often the status was found changed
	lostAt   time.Time
	pausedTo time.Time
}

// maxContestPause is the maximum pause between two corrections. If the status was not changed for twice this time, the
// next correction is immediate.
const maxContestPause = 10 * time.Minute

// pauses reports whether the status must not be written yet.
func (c *contest) pauses(status v1alpha1.MembershipStatus, now time.Time) bool {
	if now.Before(c.pausedTo) {
		return true
	}
	if c.last == nil {
		return false
	}
	if _, changed := c.last.applied(status, now); !changed {
		return false
	}
	if now.Sub(c.lostAt) > 2*maxContestPause {
		c.lost = 0
	}
	c.lost, c.lostAt, c.last = c.lost+1, now, nil
	if c.lost == 1 { // such as by a restore of the hub
		return false
	}
	c.pausedTo = now.Add(min(time.Second<<min(c.lost, 20), maxContestPause))
	return true
}

// wrote records a report that was written.
func (c *contest) wrote(r report) { c.last = &r }
