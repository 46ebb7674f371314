package v1alpha1

import "encoding/json"

// Trim reduces the size of the status to at most [MaxWorkSetStatusBytes]. It removes the last entries of Clusters and
// Feedback, from the longer list first, and adds the number of removed clusters to OmittedClusters. A status within the
// limit, which is the normal case, does not change. The other fields are never reduced; their size is bounded while the
// messages are short. Call Trim before writing a status.
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

// encoded returns the size of a part of a status as JSON, in bytes.
func encoded(part any) int {
	text, err := json.Marshal(part)
	if err != nil {
		return 0 // not reached: every field of a status has a JSON encoding
	}
	return len(text)
}
