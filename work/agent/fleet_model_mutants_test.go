package agent

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// fleetMutant turns off one of the rules, as it was before.
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
	cachedWithdrawal      fleetMutant = "Works are deleted by a cache"
	definitionIsRequest   fleetMutant = "a WorkSet that goes with its definition deletes its Works"
	placerNotFenced       fleetMutant = "a paused leader of Placements writes what it decided before"
	workSetsNotFenced     fleetMutant = "a paused leader of WorkSets deletes what it decided before"
	handDeletedPrunes     fleetMutant = "a generated Work that is deleted by hand is pruned"
	missingWorkPrunes     fleetMutant = "a missing Work is pruned"
)

// fleetMutants says by how many steps of users and faults each mutant is caught.
var fleetMutants = []struct {
	mutant        fleetMutant
	users, faults uint8 // with more than two, the walk begins when everything is placed
}{
	{unhealthyLeft, 0, 1},
	{absentLeft, 0, 1},
	{oldRemovalCounts, 2, 1},
	{decidedAnew, 1, 1},
	{missingPlacementEmpty, 1, 0},
	{undecidedIsEmpty, 0, 1},
	{failedIsDecided, 1, 2},
	{unclaimedWorksDeleted, 0, 1},
	{earlierWorksDeleted, 1, 1},
	{cachedWithdrawal, 2, 1},
	{definitionIsRequest, 0, 1},
	{placerNotFenced, 2, 1},
	{workSetsNotFenced, 2, 1},
	{handDeletedPrunes, 0, 1},
	{missingWorkPrunes, 0, 1},
}

// TestModelOfFleet_CatchesMutants checks that each rule is needed.
func TestModelOfFleet_CatchesMutants(t *testing.T) {
	t.Parallel()
	for _, test := range fleetMutants {
		if raceEnabled && test.users+test.faults > 1 {
			continue // takes long under the race detector
		}
		began, m := time.Now(), newFleetModel(t, test.mutant)
		bound := fleetBound{test.users, test.faults, test.users+test.faults > 2}
		reached, problem := m.walk(bound, 500_000)
		assert.Contains(t, problem, "without a request", "%s: %d states", test.mutant, reached)
		first, _, _ := strings.Cut(problem, "\n{") // without the state
		t.Logf("%s: after %d states in %s: %s", test.mutant, reached, time.Since(began).Round(time.Millisecond), first)
	}
}
