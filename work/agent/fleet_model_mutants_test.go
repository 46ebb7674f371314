package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fleetMutant disables one of the rules.
type fleetMutant string

const (
	unhealthyLeft         fleetMutant = "an unhealthy cluster is left without a failover policy"
	absentLeft            fleetMutant = "a missing MemberCluster is a cluster that left"
	oldRemovalCounts      fleetMutant = "the record of an earlier leave is one of a missing cluster"
	decidedAnew           fleetMutant = "a Placement that is created again is decided like a new one"
	missingPlacementEmpty fleetMutant = "a missing Placement selects no cluster"
	undecidedIsEmpty      fleetMutant = "a Placement that is not decided selects no cluster"
	failedIsDecided       fleetMutant = "a Placement whose decision failed selects no cluster"
	unclaimedWorksDeleted fleetMutant = "Works of a missing WorkSet are deleted"
	earlierWorksDeleted   fleetMutant = "Works of an earlier WorkSet are deleted"
	cachedWithdrawal      fleetMutant = "Works are deleted because of a lagging cache"
	definitionIsRequest   fleetMutant = "a WorkSet that is deleted with its definition deletes its Works"
	placerNotFenced       fleetMutant = "a paused leader of Placements writes an earlier decision"
	workSetsNotFenced     fleetMutant = "a paused leader of WorkSets executes an earlier decision"
	handDeletedPrunes     fleetMutant = "a generated Work that is deleted by hand is pruned"
	missingWorkPrunes     fleetMutant = "a missing Work is pruned"
	otherHubEnds          fleetMutant = "another hub ends the membership of an agent that its hub rejects"
	outageTaints          fleetMutant = "an outage of the hub's network taints the clusters"
)

// fleetMutants has the number of steps of users and faults that reveal each mutant.
var fleetMutants = []struct {
	mutant        fleetMutant
	users, faults uint8
	converged     bool // the walk begins when everything is placed
	failover      bool
}{
	{unhealthyLeft, 0, 1, false, false},
	{absentLeft, 0, 1, false, false},
	{oldRemovalCounts, 2, 1, true, false},
	{decidedAnew, 1, 1, false, false},
	{missingPlacementEmpty, 1, 0, false, false},
	{undecidedIsEmpty, 0, 1, false, false},
	{failedIsDecided, 1, 2, true, false},
	{unclaimedWorksDeleted, 0, 1, false, false},
	{earlierWorksDeleted, 1, 1, false, false},
	{cachedWithdrawal, 2, 1, true, false},
	{definitionIsRequest, 0, 1, false, false},
	{placerNotFenced, 2, 1, true, false},
	{workSetsNotFenced, 2, 1, true, false},
	{handDeletedPrunes, 0, 1, false, false},
	{missingWorkPrunes, 0, 1, false, false},
	{otherHubEnds, 0, 1, true, false},
	{outageTaints, 0, 1, true, true},
}

// TestModelOfFleet_CatchesMutants checks that each rule is needed.
func TestModelOfFleet_CatchesMutants(t *testing.T) {
	t.Parallel()
	for _, test := range fleetMutants {
		if raceEnabled && test.users+test.faults > 1 {
			continue // takes long under the race detector
		}
		began, m := time.Now(), newFleetModel(t, test.mutant)
		bound := fleetBound{test.users, test.faults, test.converged, test.failover}
		reached, problem := m.walk(bound, 500_000)
		assert.Contains(t, problem, "without a request", "%s: %d states", test.mutant, reached)
		first, _, _ := strings.Cut(problem, "\n{") // without the state
		t.Logf("%s: after %d states in %s: %s", test.mutant, reached, time.Since(began).Round(time.Millisecond), first)
	}
}
