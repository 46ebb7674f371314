package progress

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// The maximum lengths of texts, in bytes. Members write these texts, and the API server rejects a status with a longer
// one.
const (
	maxMessage       = 512  // of a Work or a cluster
	maxMessageLength = 1024 // of the WorkSet
	maxValue         = 128  // of a feedback value
	maxRevision      = 253  // the name of a revision
	maxIdentifier    = 1024 // of the identifier of an object, and of the name of a value
)

// Work is the relevant part of a Work's status. It is small enough to keep a hundred thousand of them in memory.
type Work struct {
	// Generation is the generation of the Work, and Observed the one that its status is about.
	Generation, Observed int64
	// The conditions of the Work: True, False, or Unknown if the condition is missing or about a generation before
	// Observed.
	Applied, Available, Degraded, Progressing metav1.ConditionStatus
	// Reason is the reason of the most severe problem: of Degraded, then Applied, Available, Progressing. Empty: there is
	// no problem.
	Reason string
	// Message is the message in the Work's status, truncated to 512 bytes.
	Message string
	// Changed is the time of the last transition of a condition, by the member's clock, which may be wrong.
	Changed time.Time
	// Feedback is sorted by object and name, and has at most [v1alpha1.MaxFeedbackSummaries] entries. Nil: none.
	Feedback []Feedback
	// Deleting is true if the deletion of the Work has begun.
	Deleting bool
}

// Feedback is one value that a member reports of an object.
type Feedback struct {
	workv1alpha1.ResourceIdentifier
	// Name is the name of the value.
	Name string
	Type workv1alpha1.FeedbackType
	// Value is the value as text, truncated to 128 bytes.
	Value string
}

// Of extracts the relevant state of a Work. It retains nothing of the Work except strings.
func Of(w *workv1alpha1.Work) Work {
	made := Work{
		Generation: w.Generation, Observed: w.Status.ObservedGeneration, Message: bounded.Text(w.Status.Message, maxMessage),
		Feedback: feedbackOf(w.Status.Manifests), Deleting: w.DeletionTimestamp != nil,
	}
	var reasons [4]string
	for i, condition := range []struct {
		kind   string
		status *metav1.ConditionStatus
		wrong  metav1.ConditionStatus // the status that is a problem; empty: any other than True
	}{
		{workv1alpha1.ConditionDegraded, &made.Degraded, metav1.ConditionTrue},
		{workv1alpha1.ConditionApplied, &made.Applied, ""},
		{workv1alpha1.ConditionAvailable, &made.Available, ""},
		{workv1alpha1.ConditionProgressing, &made.Progressing, metav1.ConditionTrue},
	} {
		*condition.status = metav1.ConditionUnknown
		said := current(&w.Status, condition.kind)
		if said == nil {
			continue
		}
		switch said.Status { // constants, so that the decoded strings are not retained
		case metav1.ConditionTrue:
			*condition.status = metav1.ConditionTrue
		case metav1.ConditionFalse:
			*condition.status = metav1.ConditionFalse
		}
		if said.Status == condition.wrong || condition.wrong == "" && said.Status != metav1.ConditionTrue {
			reasons[i] = said.Reason
		}
		if said.LastTransitionTime.After(made.Changed) {
			made.Changed = said.LastTransitionTime.Time
		}
	}
	made.Reason = cmp.Or(reasons[:]...)
	return made
}

// current returns the condition if it is about the generation that the status is about. Nil: there is none.
func current(status *workv1alpha1.WorkStatus, kind string) *metav1.Condition {
	for i := range status.Conditions {
		condition := &status.Conditions[i]
		if condition.Type != kind {
			continue
		}
		if condition.ObservedGeneration != 0 && condition.ObservedGeneration < status.ObservedGeneration {
			return nil
		}
		return condition
	}
	return nil
}

// feedbackOf returns the feedback values. It omits entries whose identifier or name is longer than maxIdentifier, which
// would enlarge the status.
func feedbackOf(manifests []workv1alpha1.ManifestStatus) []Feedback {
	var all []Feedback
	for i := range manifests {
		m := &manifests[i]
		if len(m.Feedback) == 0 || length(m.ResourceIdentifier) > maxIdentifier {
			continue
		}
		for _, value := range m.Feedback {
			if len(value.Name) <= maxIdentifier {
				all = append(all, Feedback{m.ResourceIdentifier, value.Name, value.Type, bounded.Text(value.Value, maxValue)})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Feedback) int { return a.key().compare(b.key()) })
	return slices.Clone(all[:min(len(all), v1alpha1.MaxFeedbackSummaries)]) // without unused capacity
}

// key identifies a value: its object and its name.
type key struct {
	workv1alpha1.ResourceIdentifier
	value string
}

func (f *Feedback) key() key { return key{f.ResourceIdentifier, f.Name} }

func (k key) compare(other key) int {
	return cmp.Or(
		strings.Compare(k.Group, other.Group), strings.Compare(k.Kind, other.Kind),
		strings.Compare(k.Namespace, other.Namespace),
		strings.Compare(k.Name, other.Name), strings.Compare(k.Version, other.Version),
		strings.Compare(k.Resource, other.Resource),
		strings.Compare(k.value, other.value),
	)
}

func length(id workv1alpha1.ResourceIdentifier) int {
	return len(id.Group) + len(id.Version) + len(id.Kind) + len(id.Resource) + len(id.Namespace) + len(id.Name)
}

// upToDate reports whether the status is about the current generation of the Work, and the Work is not being deleted.
func (w *Work) upToDate() bool { return w.Observed == w.Generation && !w.Deleting }

// healthy reports whether the Work is applied, available and not degraded.
func (w *Work) healthy() bool {
	return w.Applied == metav1.ConditionTrue && w.Available == metav1.ConditionTrue && w.Degraded != metav1.ConditionTrue
}
