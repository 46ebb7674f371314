package health_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// An add-on that a member rejects, and its Addon.
func Example() {
	work := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	work.Status.ObservedGeneration, work.Status.Message = 2, "apps/Deployment monitoring/agent: spec.replicas: "+
		"must not be negative"
	work.Status.Conditions = []metav1.Condition{{Type: "Applied", Status: "False", Reason: "Rejected"},
		{Type: "Degraded", Status: "True", Reason: "Rejected"}}

	report := health.Assess(health.Observed{
		Generation: 1, Now: time.Unix(0, 0), Reachable: true, Desired: "v2", Revision: "v2", Current: true,
		Works: []health.Work{health.Of(work)},
		Check: v1alpha1.HealthCheck{Type: v1alpha1.HealthWorks},
	})
	fmt.Println(report.Health)
	fmt.Println(report.Message)
	for _, condition := range report.Conditions {
		fmt.Println(condition.Type, condition.Status, condition.Reason)
	}

	east := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Generation: 1}, Status: v1alpha1.MemberAddonStatus{
		ObservedGeneration: 1, DesiredRevision: "v2", AppliedRevision: "v2", Message: report.Message,
		Conditions: report.Conditions,
	}}
	status := health.Status(health.AddonObserved{Now: time.Unix(0, 0),
		Members: []health.Member{health.MemberOf("east", east)}, Awaited: 1})
	fmt.Println(status.Message)
	// Output:
	// Failed
	// apps/Deployment monitoring/agent: spec.replicas: must not be negative.
	// Configured True Configured
	// RegistrationReady True NotRequired
	// ManifestsApplied False ApplyFailed
	// Available False NotReady
	// Progressing False ApplyFailed
	// Degraded True ApplyFailed
	// Ready False ApplyFailed
	// Stalled True ApplyFailed
	// Add-on is degraded on 1 of 1 member. east: apps/Deployment monitoring/agent: spec.replicas: must not be negative. Add-on is up to date on 0 of 2 members: 0 available, 1 pending.
}
