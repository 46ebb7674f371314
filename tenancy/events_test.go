package tenancy

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// TestReporter_RequestedDeletionIsNoWarning checks that an object whose deletion waits is reported by an Event of type
// Normal, and an invalid one by a Warning.
func TestReporter_RequestedDeletionIsNoWarning(t *testing.T) {
	ready := []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady,
	}}
	for reason, want := range map[string]string{
		v1alpha1.ReasonInUse:              "Normal InUse m",
		v1alpha1.ReasonInvalidSelector:    "Warning InvalidSelector m",
		v1alpha1.ReasonClusterSetNotFound: "Warning ClusterSetNotFound m",
	} {
		recorder := events.NewFakeRecorder(1)
		reporter{recorder: recorder}.event(&v1alpha1.ClusterSet{}, ready, []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: "m",
		}})
		require.Equal(t, want, <-recorder.Events)
	}
}
