package jointoken_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// A token of one hour, from its first minute to its end.
func ExamplePlan() {
	created := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Name: "east", CreationTimestamp: metav1.NewTime(created)},
		Spec:       v1alpha1.JoinTokenSpec{TTLSeconds: ptr.To[int64](3600), CredentialTTLSeconds: 1800},
	}
	var credential jointoken.Credential
	for now := created; !now.IsZero(); {
		step := jointoken.Plan(token, credential, now)
		fmt.Println(now.Format(time.TimeOnly), step.Reason, step.Action)
		if step.Action == jointoken.Issue {
			credential = jointoken.Credential{Usable: true, IssuedAt: now, Lifetime: step.Lifetime}
		}
		now = step.Again
	}
	// Output:
	// 12:00:00 Ready Issue
	// 12:00:00 Ready Keep
	// 12:15:00 Ready Issue
	// 12:15:00 Ready Keep
	// 12:30:00 Ready Issue
	// 12:30:00 Ready Keep
	// 12:45:00 Ready Issue
	// 12:45:00 Ready Keep
	// 13:00:00 Expired Withdraw
	// 13:10:00 Expired Remove
}
