package health

import (
	"cmp"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/internal/words"
	"github.com/muster-sdk/muster/internal/bounded"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Work is what matters of a Work's status, small enough to keep for all of a fleet.
type Work struct {
	// Generation of the Work, and the one that its status is about.
	Generation, Observed int64
	// The conditions of the Work: True, False, or Unknown where one is missing or about a generation before Observed.
	Applied, Available, Degraded metav1.ConditionStatus
	// Reason of what is most wrong: of Degraded, then Applied, then Available. Empty: nothing is.
	Reason string
	// Message is the Work's one sentence, of at most 512 bytes.
	Message string
	// Deleting says that its deletion has begun.
	Deleting bool
	// Workloads of it.
	Workloads Workloads
}

// Workloads is how the Deployments, StatefulSets and DaemonSets of a Work are.
type Workloads struct {
	// Total is how many it has, and Ready how many of these are ready. What its status was too long to tell of counts as one.
	Total, Ready int32
	// Failed: one says that it has failed.
	Failed bool
	// Message says why the first that has failed, or else the first that is not ready, is not; of at most 512 bytes. Empty: all are ready.
	Message string
}

// Of takes from a Work what matters. It keeps nothing of it but strings.
func Of(w *workv1alpha1.Work) Work {
	made := Work{
		Generation: w.Generation, Observed: w.Status.ObservedGeneration, Message: bounded.Text(w.Status.Message, words.MaxPart),
		Deleting: w.DeletionTimestamp != nil,
	}
	var wrong [3]string
	made.Degraded, wrong[0] = said(&w.Status, workv1alpha1.ConditionDegraded)
	made.Applied, wrong[1] = said(&w.Status, workv1alpha1.ConditionApplied)
	made.Available, wrong[2] = said(&w.Status, workv1alpha1.ConditionAvailable)
	if made.Degraded != metav1.ConditionTrue {
		wrong[0] = ""
	}
	if made.Applied == metav1.ConditionTrue {
		wrong[1] = ""
	}
	if made.Available == metav1.ConditionTrue {
		wrong[2] = ""
	}
	made.Reason = cmp.Or(wrong[:]...)
	made.Workloads = workloads(w, made.available())
	return made
}

// said is what a condition says that is about the generation that the status is about.
func said(status *workv1alpha1.WorkStatus, kind string) (is metav1.ConditionStatus, reason string) {
	condition := current(status.Conditions, kind, status.ObservedGeneration)
	if condition == nil {
		return metav1.ConditionUnknown, ""
	}
	switch condition.Status { // the constants, so that what was decoded need not be kept
	case metav1.ConditionTrue:
		return metav1.ConditionTrue, condition.Reason
	case metav1.ConditionFalse:
		return metav1.ConditionFalse, condition.Reason
	}
	return metav1.ConditionUnknown, condition.Reason
}

// current is the condition of a type, if it is about that generation. Nil: it is not.
func current(conditions []metav1.Condition, kind string, generation int64) *metav1.Condition {
	condition := meta.FindStatusCondition(conditions, kind)
	if condition == nil || condition.ObservedGeneration != 0 && condition.ObservedGeneration < generation {
		return nil
	}
	return condition
}

// workloads sums up those of a Work. The agent cuts a status that is too long: of manifests that are well it leaves out the conditions,
// and of many with long names the last ones.
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
		why := "the member does not say how it is"
		failed := false
		if condition != nil {
			why, failed = cmp.Or(condition.Message, condition.Reason), condition.Reason == workv1alpha1.ReasonNotReady
		}
		if sum.Message == "" || failed && !sum.Failed {
			sum.Message = bounded.Text(fmt.Sprintf("%s: %s", m.ResourceIdentifier, why), words.MaxPart)
		}
		sum.Failed = sum.Failed || failed
	}
	if w.Status.Truncated != "" && len(w.Status.Manifests) < len(w.Spec.Manifests) && !available {
		sum.Total++
		sum.Message = cmp.Or(sum.Message, bounded.Text(w.Status.Truncated, words.MaxPart))
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

// settled reports whether the member has looked at the Work as it is now.
func (w *Work) settled() bool { return w.Observed == w.Generation && !w.Deleting }

func (w *Work) applied() bool   { return w.Applied == metav1.ConditionTrue }
func (w *Work) available() bool { return w.Available == metav1.ConditionTrue }
func (w *Work) running() bool   { return w.Workloads.Ready == w.Workloads.Total }

// words are what it says of itself. One without any can come from an agent of somebody else's.
func (w *Work) words() string {
	switch {
	case w.Message != "":
		return words.Sentence(w.Message)
	case w.Reason != "":
		return w.Reason + "."
	}
	return "The member does not say why."
}
