package hub_test

import (
	"testing"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/hub"
)

// TestMembersOfOneHub runs tests that need a hub with default options.
func TestMembersOfOneHub(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*testing.T, *testHub)
	}{
		{"Acceptance", testAcceptance},
		{"LeaveAndJoinAgain", testLeaveAndJoinAgain},
		{"DuplicateClaim", testDuplicateClaim},
		{"Takeover", testTakeover},
		{"JoinRequestsAreBlocked", testJoinRequestsAreBlocked},
		{"PreparedMemberIsMatchedByID", testPreparedMemberIsMatchedByID},
		{"WithdrawnAcceptanceRevokesPermissions", testWithdrawnAcceptanceRevokesPermissions},
		{"AgentClockIsAnHourOff", testAgentClockIsAnHourOff},
		{"Renewal", testRenewal},
		{"ClaimKeys", testClaimKeys},
		{"StolenCredentialIsNotRenewed", testStolenCredentialIsNotRenewed},
		{"Identity", testIdentity},
		{"Orphans", testOrphans},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { test.do(t, startHub(t, newMemory(t), hub.Options{})) })
		})
	}
}
