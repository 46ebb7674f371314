package addon

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// TestAnnounce_UpdateIsNoWarning checks that the changes of conditions during an update or a removal, which a user
// requested, are Events of type Normal, and that failures are Warnings.
func TestAnnounce_UpdateIsNoWarning(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	one := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "m"}
	}
	updating := one(v1alpha1.ConditionProgressing, yes, v1alpha1.ReasonUpdating)
	for _, test := range []struct {
		name          string
		before, after []metav1.Condition
		want          []string
	}{
		{
			"an update of an Addon",
			[]metav1.Condition{one(v1alpha1.ConditionInstalled, yes, v1alpha1.ReasonUpdated)},
			[]metav1.Condition{one(v1alpha1.ConditionInstalled, no, v1alpha1.ReasonUpdating)},
			[]string{"Normal Updating Installed: m"},
		},
		{
			"an update restarts workloads of an Addon",
			[]metav1.Condition{one(v1alpha1.ConditionAvailable, yes, v1alpha1.ReasonAvailable)},
			[]metav1.Condition{
				one(v1alpha1.ConditionInstalled, no, v1alpha1.ReasonUpdating),
				one(v1alpha1.ConditionAvailable, no, v1alpha1.ReasonNotReady),
			},
			[]string{"Normal NotReady Available: m"},
		},
		{
			"an update on a member",
			[]metav1.Condition{
				one(v1alpha1.ConditionManifestsApplied, yes, v1alpha1.ReasonApplied),
				one(v1alpha1.ConditionAvailable, yes, v1alpha1.ReasonAvailable),
			},
			[]metav1.Condition{
				one(v1alpha1.ConditionManifestsApplied, no, v1alpha1.ReasonApplying),
				one(v1alpha1.ConditionAvailable, no, v1alpha1.ReasonNotReady), updating,
			},
			[]string{"Normal Applying ManifestsApplied: m", "Normal NotReady Available: m"},
		},
		{
			"a removal",
			[]metav1.Condition{one(v1alpha1.ConditionAvailable, yes, v1alpha1.ReasonAvailable)},
			[]metav1.Condition{one(v1alpha1.ConditionAvailable, no, v1alpha1.ReasonRemoving)},
			[]string{"Normal Removing Available: m"},
		},
		{
			"an add-on fails without an update",
			[]metav1.Condition{one(v1alpha1.ConditionAvailable, yes, v1alpha1.ReasonAvailable)},
			[]metav1.Condition{
				one(v1alpha1.ConditionAvailable, no, v1alpha1.ReasonNotReady),
				one(v1alpha1.ConditionProgressing, no, v1alpha1.ReasonUpdated),
			},
			[]string{"Warning NotReady Available: m"},
		},
		{
			"an update fails",
			[]metav1.Condition{one(v1alpha1.ConditionManifestsApplied, yes, v1alpha1.ReasonApplied)},
			[]metav1.Condition{
				one(v1alpha1.ConditionManifestsApplied, no, v1alpha1.ReasonApplyFailed), updating,
				one(v1alpha1.ConditionDegraded, yes, v1alpha1.ReasonApplyFailed),
			},
			[]string{"Warning ApplyFailed ManifestsApplied: m", "Warning ApplyFailed Degraded: m"},
		},
		{
			"a failure ends",
			[]metav1.Condition{one(v1alpha1.ConditionDegraded, yes, v1alpha1.ReasonApplyFailed)},
			[]metav1.Condition{one(v1alpha1.ConditionDegraded, no, v1alpha1.ReasonUpdated)},
			[]string{"Normal Updated Degraded: m"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(10)
			(&shared{clients: clients{recorder: recorder}}).recordTransitions(&v1alpha1.Addon{}, test.before, test.after)
			close(recorder.Events)
			var got []string
			for event := range recorder.Events {
				got = append(got, event)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}
