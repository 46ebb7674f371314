package hub

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestEventType_OnlyDeniedIsAWarning checks that the answer to a member that left on request is not a Warning.
func TestEventType_OnlyDeniedIsAWarning(t *testing.T) {
	require.Equal(t, corev1.EventTypeWarning, eventType(v1alpha1.AnswerDenied))
	for _, answer := range []v1alpha1.JoinAnswer{
		v1alpha1.AnswerHeld, v1alpha1.AnswerDeregistered, v1alpha1.AnswerIssued,
	} {
		require.Equal(t, corev1.EventTypeNormal, eventType(answer), answer)
	}
}
