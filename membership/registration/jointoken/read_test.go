package jointoken

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestReadOfATokenThatIsNotReady checks the results that depend on the status alone, for which Read sends no request.
func TestReadOfATokenThatIsNotReady(t *testing.T) {
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
		{"nobody has looked at it", nil, nil, is(membership.ErrPending)},
		{"it goes", ready(metav1.ConditionTrue, v1alpha1.ReasonReady), new(metav1.Now()), is(membership.ErrPending)},
		{"something failed, and is tried again", ready(metav1.ConditionFalse, v1alpha1.ReasonFailed), nil,
			is(membership.ErrPending)},
		{"it is ready, and has no Secret", ready(metav1.ConditionTrue, v1alpha1.ReasonReady), nil, is(membership.ErrPending)},
		{"its time is over", ready(metav1.ConditionFalse, v1alpha1.ReasonExpired), nil, is(ErrEnded)},
		{"its uses are", ready(metav1.ConditionFalse, v1alpha1.ReasonUsedUp), nil, is(ErrEnded)},
		{"a label cannot be", ready(metav1.ConditionFalse, v1alpha1.ReasonInvalidLabel), nil, invalid("spec.labels")},
		{"the hub has no such tokens", ready(metav1.ConditionFalse, v1alpha1.ReasonNotEnabled), nil, invalid("spec.type")},
		{"the administrator's own is of no use", ready(metav1.ConditionFalse, v1alpha1.ReasonBootstrapTokenUnusable), nil,
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
