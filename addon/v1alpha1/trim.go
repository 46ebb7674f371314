package v1alpha1

import (
	"encoding/json"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// maxStages is how many stages a strategy can have, the one for the clusters in none included. What a rollout remembers of these it must
// not lose, for their gates; of decision groups, of which there can be more, it costs at most a wait.
const maxStages = 33

// Trim leaves out the last stages of rollouts by decision groups, of the longest first, until the status is no longer than [MaxAddonStatusBytes]. One that is
// short enough already, as almost every one is, stays as it is. The rest, which is bounded as long as messages are sentences, is never
// cut. Whoever writes a status calls it before.
func (s *AddonStatus) Trim() {
	for excess := encoded(s) - MaxAddonStatusBytes; excess > 0; {
		most := s.longestRollout()
		if most == nil || len(most.Stages) <= maxStages {
			return
		}
		keep := max(maxStages, len(most.Stages)*3/4)
		excess -= encoded(most.Stages[keep:])
		most.Stages = most.Stages[:keep]
	}
}

func (s *AddonStatus) longestRollout() *placementv1alpha1.RolloutStatus {
	var most *placementv1alpha1.RolloutStatus
	for i := range s.Placements {
		if rollout := &s.Placements[i].Rollout; most == nil || len(rollout.Stages) > len(most.Stages) {
			most = rollout
		}
	}
	return most
}

// encoded is how long a part of a status is as JSON.
func encoded(part any) int {
	text, err := json.Marshal(part)
	if err != nil {
		return 0 // it has nothing that JSON has not
	}
	return len(text)
}
