package progress

import (
	"encoding/json"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// maxBytes is the maximum size of a status as JSON: it is written often, and shares the limit of etcd with the spec.
const maxBytes = 256 << 10

// trim reduces a status that is too large. It omits the least important parts: feedback, then the clusters with the
// least urgent states. The state of the rollout is kept.
func trim(status v1alpha1.WorkSetStatus) v1alpha1.WorkSetStatus {
	const slack = 64 // for numbers that change because of the omission
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
		status.Feedback = nil // as the API returns it
	}
	if len(status.Clusters) == 0 {
		status.Clusters = nil
	}
	return status
}

func size(part any) int {
	data, err := json.Marshal(part)
	if err != nil {
		return 0 // all fields can be encoded as JSON
	}
	return len(data)
}
