package progress

import (
	"encoding/json"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// maxBytes is how long a status may be, as JSON: it is written often, and shares etcd's limit with the spec.
const maxBytes = 256 << 10

// trim leaves out of a status that is too long what can be missed most: feedback, then clusters that least want to be
// looked at. What the rollout remembers stays.
func trim(status v1alpha1.WorkSetStatus) v1alpha1.WorkSetStatus {
	const slack = 64 // for the numbers that change with that
	excess := size(status) - maxBytes
	if excess > 0 {
		excess += slack
	}
	for n := len(status.Feedback); excess > 0 && n > 0; n-- {
		excess -= size(status.Feedback[n-1])
		status.Feedback = status.Feedback[:n-1]
	}
	for n := len(status.Clusters); excess > 0 && n > 0; n-- {
		excess -= size(status.Clusters[n-1])
		status.Clusters = status.Clusters[:n-1]
		status.OmittedClusters++
	}
	if len(status.Feedback) == 0 {
		status.Feedback = nil // as it comes back from the API
	}
	if len(status.Clusters) == 0 {
		status.Clusters = nil
	}
	return status
}

func size(part any) int {
	data, err := json.Marshal(part)
	if err != nil {
		return 0 // it has nothing that JSON has not
	}
	return len(data)
}
