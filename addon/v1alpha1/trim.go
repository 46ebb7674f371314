package v1alpha1

import (
	"encoding/json"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// maxStages is the maximum number of stages of a strategy, including the stage for clusters in no other stage. Trim
// must keep the state of these stages for their gates. The number of decision groups can be greater. If the state of a
// decision group is lost, the only effect is that the rollout waits longer.
const maxStages = 33

// Trim removes the last stages of rollouts by decision groups, starting with the longest rollout, until the status is
// at most [MaxAddonStatusBytes] long. It does not change a status that is short enough, which is the normal case. It
// never shortens other parts of the status: their length is bounded if messages are bounded. The caller must call Trim
// before each write of a status.
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
