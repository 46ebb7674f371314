package unassigned

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// readyRule derives the condition Ready of a Work, as its agent does.
var readyRule = readycondition.Rule{
	Required: []string{v1alpha1.ConditionApplied, v1alpha1.ConditionAvailable},
	Adverse:  []string{v1alpha1.ConditionProgressing}, Failure: v1alpha1.ConditionDegraded,
}

// statusOf returns the status of a Work whose namespace belongs to no member. It is pure. The status does not change
// while the Work does not change, so it is written once. It returns false for a Work that an agent has observed,
// unless the Work is being deleted: its status belongs to that agent.
//
// status.observedGeneration does not change: only an agent sets it, and an agent recognizes by this field that the
// Work was applied before.
func statusOf(work *v1alpha1.Work, now time.Time) (v1alpha1.WorkStatus, bool) {
	if work.Status.ObservedGeneration > 0 && work.DeletionTimestamp == nil {
		return v1alpha1.WorkStatus{}, false
	}
	status := *work.Status.DeepCopy()
	status.Ready = fmt.Sprintf("0/%d", len(work.Spec.Manifests))
	status.Message = messageOf(work)
	status.Manifests, status.Truncated = nil, ""
	for _, condition := range []metav1.Condition{
		{Type: v1alpha1.ConditionApplied, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoMember,
			Message: status.Message},
		{Type: v1alpha1.ConditionAvailable, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotApplied,
			Message: status.Message},
		{Type: v1alpha1.ConditionProgressing, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNoMember},
		{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoMember,
			Message: status.Message},
	} {
		condition.ObservedGeneration = work.Generation
		condition.LastTransitionTime = metav1.NewTime(now)
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionComplete)
	readyRule.Set(&status.Conditions, work.Generation, now, nil)
	return status, true
}

func messageOf(work *v1alpha1.Work) string {
	if work.DeletionTimestamp != nil && controllerutil.ContainsFinalizer(work, v1alpha1.Finalizer) {
		return fmt.Sprintf("Namespace %s belongs to no member cluster, so no agent deletes the objects of the Work. "+
			"If no cluster has objects of the Work, remove the finalizer %s from the Work.", work.Namespace, v1alpha1.Finalizer)
	}
	return fmt.Sprintf("Namespace %s belongs to no member cluster, so no agent applies the Work. Delete the Work and "+
		"create it in the "+
		"namespace of a member: see status.namespace of the MemberClusters.", work.Namespace)
}

// statusWhenAssigned returns the status of a Work whose namespace now belongs to a member, until the agent writes
// one. It returns false if the status does not have the reason NoMember.
func statusWhenAssigned(work *v1alpha1.Work, member string, now time.Time) (v1alpha1.WorkStatus, bool) {
	applied := meta.FindStatusCondition(work.Status.Conditions, v1alpha1.ConditionApplied)
	if applied == nil || applied.Reason != v1alpha1.ReasonNoMember {
		return v1alpha1.WorkStatus{}, false
	}
	status := *work.Status.DeepCopy()
	status.Message = fmt.Sprintf("The agent of member %s has not reported on the Work yet.", member)
	status.Conditions = nil
	for _, kind := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionAvailable} {
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending, Message: status.Message,
			ObservedGeneration: work.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
	readyRule.Set(&status.Conditions, work.Generation, now, nil)
	return status, true
}
