package agent

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// maxMessage is the maximum length of the message of a condition, in bytes.
const maxMessage = 512

// bounded cuts a message to maxMessage, at the boundary of a character.
func bounded(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	end := maxMessage - len("…")
	for end > 0 && !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + "…"
}

// trim removes parts of a status, the least important first, until the status is short enough, and names them in the
// field truncated. Information about failures is kept longest.
func trim(status v1alpha1.WorkStatus) v1alpha1.WorkStatus {
	reductions := []struct {
		what string
		do   func(*v1alpha1.ManifestStatus)
	}{
		{"", func(*v1alpha1.ManifestStatus) {}},
		{"differences beyond the third of an object", func(m *v1alpha1.ManifestStatus) {
			m.Diffs = m.Diffs[:min(3, len(m.Diffs))]
		}},
		{"feedback", func(m *v1alpha1.ManifestStatus) { m.Feedback = nil }},
		{"differences", func(m *v1alpha1.ManifestStatus) { m.Diffs = nil }},
		{"messages of manifests", func(m *v1alpha1.ManifestStatus) {
			for i := range m.Conditions {
				m.Conditions[i].Message = ""
			}
		}},
		{"conditions of manifests that are applied and ready", func(m *v1alpha1.ManifestStatus) {
			if allTrue(m) {
				m.Conditions = nil
			}
		}},
	}
	missing, before := "", status.Truncated
	if before != "" {
		before += " "
	}
	for _, reduction := range reductions {
		for i := range status.Manifests {
			reduction.do(&status.Manifests[i])
		}
		if reduction.what != "" {
			if missing != "" {
				missing += ", "
			}
			missing += reduction.what
			status.Truncated = before + "Omitted because the status would be too long: " + missing + "."
		}
		if size(status) <= v1alpha1.MaxStatusBytes {
			return status
		}
	}
	// Identifiers alone can exceed the limit.
	all := len(status.Manifests)
	for size(status) > v1alpha1.MaxStatusBytes {
		status.Manifests = status.Manifests[:len(status.Manifests)*9/10]
		status.Truncated = fmt.Sprintf("%sOmitted because the status would be too long: %s, and the last %d of %d "+
			"manifests.", before, missing, all-len(status.Manifests), all)
	}
	return status
}

func allTrue(m *v1alpha1.ManifestStatus) bool {
	for _, condition := range m.Conditions {
		if condition.Status != metav1.ConditionTrue {
			return false
		}
	}
	return true
}

func size(status v1alpha1.WorkStatus) int {
	data, err := json.Marshal(status)
	if err != nil {
		return 0 // a status can always be encoded as JSON
	}
	return len(data)
}
