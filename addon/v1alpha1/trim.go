package v1alpha1

import (
	"encoding/json"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// maxStages is the maximum number of stages of a strategy, including the stage for clusters in no other stage. The
// state of these must be kept for their gates. Decision groups can be more; if the state of one is lost, the rollout
// only waits longer.
const maxStages = 33

// Trim removes the last stages of rollouts by decision groups, starting with the longest rollout, until the status is
// at most [MaxAddonStatusBytes] long. A status that is short enough, as almost all are, does not change. Other parts
// are bounded as long as messages are bounded and are never cut. Call Trim before each write of a status.
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

// encoded returns the length of a part of a status in bytes, encoded as JSON.
func encoded(part any) int {
	text, err := json.Marshal(part)
	if err != nil {
		return 0 // the type contains only values that JSON can encode
	}
	return len(text)
}
