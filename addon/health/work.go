package health

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/messages"
	"github.com/muster-sdk/muster/internal/bounded"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Work is the part of a Work's status that Assess needs. It is small enough to be cached for a whole fleet.
type Work struct {
	// Generation is the generation of the Work, and Observed the one that its status describes.
	Generation, Observed int64
	// The conditions of the Work. A condition is Unknown if it is missing or older than Observed.
	Applied, Available, Degraded metav1.ConditionStatus
	// Reason is the reason of the most severe condition: Degraded, then Applied, then Available. Empty: none.
	Reason string
	// Message is the message of the status of the Work, at most 512 bytes.
	Message string
	// Deleting is true if the Work has a deletionTimestamp.
	Deleting bool
	// Workloads is the state of the workloads of the Work.
	Workloads Workloads
}

// Workloads is the state of the Deployments, StatefulSets and DaemonSets of a Work.
type Workloads struct {
	// Total is the number of workloads, and Ready the number of ready ones. Workloads that a truncated status omits count
	// as one.
	Total, Ready int32
	// Failed is true if a workload reports a failure.
	Failed bool
	// Message describes the first failed workload, or else the first one that is not ready, in at most 512 bytes. Empty:
	// all are ready.
	Message string
}

// Of extracts from a Work what Assess needs. The result shares only strings with the Work.
func Of(w *workv1alpha1.Work) Work {
	made := Work{
		Generation: w.Generation, Observed: w.Status.ObservedGeneration,
		Message:  bounded.Text(w.Status.Message, messages.MaxPart),
		Deleting: w.DeletionTimestamp != nil,
	}
	var failureText [3]string
	made.Degraded, failureText[0] = currentCondition(&w.Status, workv1alpha1.ConditionDegraded)
	made.Applied, failureText[1] = currentCondition(&w.Status, workv1alpha1.ConditionApplied)
	made.Available, failureText[2] = currentCondition(&w.Status, workv1alpha1.ConditionAvailable)
	if made.Degraded != metav1.ConditionTrue {
		failureText[0] = ""
	}
	if made.Applied == metav1.ConditionTrue {
		failureText[1] = ""
	}
	if made.Available == metav1.ConditionTrue {
		failureText[2] = ""
	}
	made.Reason = cmp.Or(failureText[:]...)
	made.Workloads = workloads(w, made.available())
	return made
}

// currentCondition returns a condition if it describes the generation of the status.
func currentCondition(status *workv1alpha1.WorkStatus, kind string) (is metav1.ConditionStatus, reason string) {
	condition := current(status.Conditions, kind, status.ObservedGeneration)
	if condition == nil {
		return metav1.ConditionUnknown, ""
	}
	switch condition.Status { // constants, so that the decoded object can be garbage-collected
	case metav1.ConditionTrue:
		return metav1.ConditionTrue, condition.Reason
	case metav1.ConditionFalse:
		return metav1.ConditionFalse, condition.Reason
	}
	return metav1.ConditionUnknown, condition.Reason
}

// current returns the condition of a type if it describes the generation, or nil.
func current(conditions []metav1.Condition, kind string, generation int64) *metav1.Condition {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.ObservedGeneration != 0 && condition.ObservedGeneration < generation {
		return nil
	}
	return condition
}

// workloads summarizes the workloads of a Work. The agent truncates a status that is too long: it omits the conditions
// of healthy manifests and, of many manifests with long names, the last ones.
func workloads(w *workv1alpha1.Work, available bool) Workloads {
	var sum Workloads
	for i := range w.Status.Manifests {
		m := &w.Status.Manifests[i]
		if !isWorkload(m) {
			continue
		}
		sum.Total++
		condition := current(m.Conditions, workv1alpha1.ConditionAvailable, w.Status.ObservedGeneration)
		cut := w.Status.Truncated != "" && len(m.Conditions) == 0
		if available || cut || condition != nil && condition.Status == metav1.ConditionTrue {
			sum.Ready++
			continue
		}
		why := "the member reports no status"
		failed := false
		if condition != nil {
			why, failed = cmp.Or(condition.Message, condition.Reason), condition.Reason == workv1alpha1.ReasonNotReady
		}
		if sum.Message == "" || failed && !sum.Failed {
			sum.Message = bounded.Text(fmt.Sprintf("%s: %s", m.ResourceIdentifier, why), messages.MaxPart)
		}
		sum.Failed = sum.Failed || failed
	}
	if w.Status.Truncated != "" && len(w.Status.Manifests) < len(w.Spec.Manifests) && !available {
		sum.Total++
		sum.Message = cmp.Or(sum.Message, bounded.Text(w.Status.Truncated, messages.MaxPart))
	}
	return sum
}

func isWorkload(m *workv1alpha1.ManifestStatus) bool {
	switch m.Kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return m.Group == "apps"
	}
	return false
}

// reported reports whether the member has reported on the current generation of the Work.
func (w *Work) reported() bool { return w.Observed == w.Generation && !w.Deleting }

func (w *Work) applied() bool   { return w.Applied == metav1.ConditionTrue }
func (w *Work) available() bool { return w.Available == metav1.ConditionTrue }
func (w *Work) running() bool   { return w.Workloads.Ready == w.Workloads.Total }

// text returns the message of the Work. Agents of other vendors may report none.
func (w *Work) text() string {
	switch {
	case w.Message != "":
		return messages.Message(w.Message)
	case w.Reason != "":
		return w.Reason + "."
	}
	return "The member reports no reason."
}
