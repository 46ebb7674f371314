package hub_test

import (
	"testing"

	"github.com/muster-sdk/muster/membership/hub"
)

// TestMembersOfOneHub runs the tests of members concurrently in one hub.
func TestMembersOfOneHub(t *testing.T) {
	h := startHub(t, plane.ForTest(t), hub.Options{})
	for _, test := range []struct {
		name string
		do   func(*testing.T, *testHub)
	}{
		{"Acceptance", testAcceptance},
		{"LeaveAndJoinAgain", testLeaveAndJoinAgain},
		{"DuplicateClaim", testDuplicateClaim},
		{"Takeover", testTakeover},
		{"JoinRequestsAreHeld", testJoinRequestsArePending},
		{"PreparedMemberIsMatchedByID", testPreparedMemberIsMatchedByID},
		{"Permissions", testPermissions},
		{"WithdrawnAcceptanceCutsPermissions", testWithdrawnAcceptanceCutsPermissions},
		{"AgentClockIsAnHourOff", testAgentClockIsAnHourOff},
		{"AgentKilledAfterEachRequest", testAgentKilledAfterEachRequest},
		{"Renewal", testRenewal},
		{"ClaimKeys", testClaimKeys},
		{"StolenCredentialIsNotRenewed", testStolenCredentialIsNotRenewed},
		{"Identity", testIdentity},
		{"Events", testEvents},
		{"Orphans", testOrphans},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.do(t, h.with(t))
		})
	}
}
