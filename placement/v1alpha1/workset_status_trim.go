package v1alpha1

import "encoding/json"

// Trim leaves out the last entries of Clusters, which OmittedClusters then counts, and of Feedback, until the status
// is no longer than [MaxWorkSetStatusBytes]; of the longer list first. One that is short enough already, as almost
// every one is, stays as it is. The rest, which is bounded as long as messages are sentences, is never cut. Call it
// before writing a status.
func (s *WorkSetStatus) Trim() {
	for encoded(s) > MaxWorkSetStatusBytes && len(s.Clusters)+len(s.Feedback) > 0 {
		if encoded(s.Clusters) > encoded(s.Feedback) || len(s.Feedback) == 0 {
			keep := len(s.Clusters) * 9 / 10
			s.OmittedClusters += int32(len(s.Clusters) - keep)
			s.Clusters = s.Clusters[:keep]
		} else {
			s.Feedback = s.Feedback[:len(s.Feedback)*9/10]
		}
	}
}

// encoded is how long a part of a status is as JSON.
func encoded(part any) int {
	text, err := json.Marshal(part)
	if err != nil {
		return 0 // it has nothing that JSON has not
	}
	return len(text)
}
