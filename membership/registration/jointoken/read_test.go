package jointoken

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestRead_NotReady checks the results that depend on the status alone, for which Read sends no request.
func TestRead_NotReady(t *testing.T) {
	ready := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "why"}}
	}
	invalid := func(field string) func(*testing.T, error) {
		return func(t *testing.T, err error) {
			var invalid *membership.InvalidError
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, field, invalid.Field)
		}
	}
	is := func(target error) func(*testing.T, error) {
		return func(t *testing.T, err error) { require.ErrorIs(t, err, target) }
	}
	for _, test := range []struct {
		reason     string
		conditions []metav1.Condition
		deleted    *metav1.Time
		want       func(*testing.T, error)
	}{
		{"no condition", nil, nil, is(membership.ErrPending)},
		{"deletion in progress", ready(metav1.ConditionTrue, v1alpha1.ReasonReady), new(metav1.Now()),
			is(membership.ErrPending)},
		{"failed, and retried", ready(metav1.ConditionFalse, v1alpha1.ReasonFailed), nil,
			is(membership.ErrPending)},
		{"ready, without a Secret", ready(metav1.ConditionTrue, v1alpha1.ReasonReady), nil, is(membership.ErrPending)},
		{"expired", ready(metav1.ConditionFalse, v1alpha1.ReasonExpired), nil, is(ErrEnded)},
		{"used up", ready(metav1.ConditionFalse, v1alpha1.ReasonUsedUp), nil, is(ErrEnded)},
		{"reserved label", ready(metav1.ConditionFalse, v1alpha1.ReasonInvalidLabel), nil, invalid("spec.labels")},
		{"bootstrap tokens not enabled", ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnabled), nil, invalid("spec.type")},
		{"unusable adopted token", ready(metav1.ConditionFalse, v1alpha1.ReasonBootstrapTokenUnusable), nil,
			invalid("spec.type")},
	} {
		t.Run(test.reason, func(t *testing.T) {
			token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Name: "token", DeletionTimestamp: test.deleted}}
			token.Status.Conditions = test.conditions
			_, err := Read(t.Context(), nil, token)
			test.want(t, err)
		})
	}
}
