package readycondition_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/readycondition"
)

var rule = readycondition.Rule{Required: []string{"Applied", "Available"}, Adverse: []string{"Progressing"},
	Failure: "Degraded"}

func TestSet_ReadyAndStalled(t *testing.T) {
	applied := condition("Applied", "True")
	available := condition("Available", "True")
	for _, test := range []struct {
		name    string
		given   []metav1.Condition
		ready   metav1.ConditionStatus
		reason  string
		stalled bool
	}{
		{"no condition yet", nil, "Unknown", "Pending", false},
		{"a required condition is missing", []metav1.Condition{applied}, "Unknown", "Pending", false},
		{"all required conditions are True", []metav1.Condition{applied, available}, "True", "Ready", false},
		{"the first required condition that is not True determines Ready",
			[]metav1.Condition{condition("Applied", "False"), condition("Available", "Unknown")},
			"False", "AppliedFalse", false},
		{"a required condition is Unknown", []metav1.Condition{applied, condition("Available", "Unknown")},
			"Unknown", "AvailableUnknown", false},
		{"progressing", []metav1.Condition{applied, available, condition("Progressing", "True")}, "False", "ProgressingTrue",
			false},
		{"not progressing", []metav1.Condition{applied, available, condition("Progressing", "False")}, "True", "Ready",
			false},
		{"degraded", []metav1.Condition{applied, available, condition("Degraded", "True")}, "False", "DegradedTrue", true},
		{"not degraded", []metav1.Condition{applied, available, condition("Degraded", "False")}, "True", "Ready", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			conditions := test.given
			rule.Set(&conditions, 7, time.Unix(100, 0), nil)
			ready := meta.FindStatusCondition(conditions, "Ready")
			require.NotNil(t, ready)
			require.Equal(t, test.ready, ready.Status)
			require.Equal(t, test.reason, ready.Reason)
			require.EqualValues(t, 7, ready.ObservedGeneration)
			require.Equal(t, test.stalled, meta.IsStatusConditionTrue(conditions, "Stalled"))
		})
	}
}

// TestSet_FailureOfCaller checks the argument for kinds without a condition for their failure.
func TestSet_FailureOfCaller(t *testing.T) {
	conditions := []metav1.Condition{condition("Scheduled", "False")}
	r := readycondition.Rule{Required: []string{"Scheduled"}}
	r.Set(&conditions, 1, time.Unix(100, 0), &conditions[0])
	require.True(t, meta.IsStatusConditionTrue(conditions, "Stalled"))
	r.Set(&conditions, 1, time.Unix(200, 0), nil)
	require.Nil(t, meta.FindStatusCondition(conditions, "Stalled"), "kstatus expects Stalled only while it is True")
}

// TestSet_Stable checks that the conditions do not change if only the time changes, and that Ready and Stalled are not
// both True.
func TestSet_Stable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var conditions []metav1.Condition
		for _, name := range []string{"Applied", "Available", "Progressing", "Degraded"} {
			if rapid.Bool().Draw(t, name+" exists") {
				conditions = append(conditions,
					condition(name, rapid.SampledFrom([]string{"True", "False", "Unknown"}).Draw(t, name)))
			}
		}
		rule.Set(&conditions, 1, time.Unix(100, 0), nil)
		before := append([]metav1.Condition(nil), conditions...)
		rule.Set(&conditions, 1, time.Unix(200, 0), nil)
		require.Equal(t, before, conditions)
		require.False(t, meta.IsStatusConditionTrue(conditions, "Ready") && meta.IsStatusConditionTrue(conditions, "Stalled"))
	})
}

func condition(name, status string) metav1.Condition {
	return metav1.Condition{Type: name, Status: metav1.ConditionStatus(status), Reason: name + status, Message: name +
		" is " + status + "."}
}
