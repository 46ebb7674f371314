package agent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestContest_Pauses checks how often an agent corrects a status that another client changes.
func TestContest_Pauses(t *testing.T) {
	ours := report{claim: "claim", joined: joinedCondition, member: &memberReport{facts: facts{version: "ours"}}}
	theirs := ours
	theirs.member = &memberReport{facts: facts{version: "theirs"}}
	var status v1alpha1.MembershipStatus
	var c contest
	start := time.Unix(1_000_000_000, 0)
	now := start
	write := func(r report) {
		status, _ = r.applied(status, now)
	}
	corrects := func() bool {
		if c.pauses(status, now) {
			return false
		}
		write(ours)
		c.wrote(ours)
		return true
	}
	require.True(t, corrects(), "the first report")
	for range 100 {
		require.True(t, corrects(), "the status is as it was written: a change of the cluster is reported immediately")
	}
	write(theirs)
	require.True(t, corrects(), "a single change may be a restore of the hub")

	corrections := 0
	for ; now.Sub(start) < time.Hour; now = now.Add(time.Second) {
		write(theirs)
		if corrects() {
			corrections++
		}
	}
	require.InDelta(t, 13, corrections, 2, "pauses of 4 s to 10 minutes in an hour")

	now = now.Add(3 * maxContestPause)
	require.True(t, corrects(), "the pause has ended")
	now = now.Add(3 * maxContestPause)
	write(theirs)
	require.True(t, corrects(), "the other client has not changed the status for long")
}
