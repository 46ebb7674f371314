package hub

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestUntilCollected checks how long the hub keeps a request, depending on its answer and on the time of the answer.
func TestUntilCollected(t *testing.T) {
	created := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	const ttl = time.Hour
	issued := v1alpha1.ReasonIssued
	tests := []struct {
		name       string
		answer     v1alpha1.JoinAnswer
		reason     string
		answered   time.Duration // after the creation
		registered bool          // the agent was joined before
		want       time.Duration // after the creation
	}{
		{"no answer", "", "", 0, false, ttl},
		{"issued early", v1alpha1.AnswerIssued, issued, time.Minute, false, ttl},
		{"issued at the end", v1alpha1.AnswerIssued, issued, ttl - time.Second, false, ttl - time.Second + readTTL},
		{"issued early to a registered agent", v1alpha1.AnswerIssued, issued, time.Minute, true, time.Minute + readTTL},
		{"issued at the end to a registered agent",
			v1alpha1.AnswerIssued, issued, ttl - time.Second, true, ttl - time.Second + readTTL},
		{"denied", v1alpha1.AnswerDenied, v1alpha1.ReasonDenied, time.Minute, false, readTTL},
		{"the token ended", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenEnded, time.Minute, false, time.Minute + readTTL},
		{"agent of another hub", v1alpha1.AnswerHeld, v1alpha1.ReasonDifferentHub, time.Minute, false, strangerTTL},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			request := &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
			request.Status.Answer = test.answer
			if test.registered {
				request.Spec.MemberUID = "uid"
			}
			if test.reason != "" {
				status := metav1.ConditionFalse
				if test.answer == v1alpha1.AnswerIssued {
					status = metav1.ConditionTrue
				}
				meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
					Type: v1alpha1.ConditionIssued, Status: status, Reason: test.reason,
					LastTransitionTime: metav1.NewTime(created.Add(test.answered)),
				})
			}
			d := &joinRequestController{options: Options{RequestTTL: ttl, Clock: clocktesting.NewFakeClock(created)}}
			require.Equal(t, test.want, d.untilCollected(request))
		})
	}
}
