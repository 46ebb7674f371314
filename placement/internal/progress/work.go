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

// How long texts may be, in bytes. Members write them, and the API refuses a status with one that is longer.
const (
	maxMessage       = 512  // of a Work or a cluster
	maxMessageLength = 1024 // of the WorkSet
	maxValue         = 128  // of what is fed back
	maxRevision      = 253  // the name of a revision
	maxIdentifier    = 1024 // what an object and its value are told by
)

// Work is what matters of a Work's status, small enough to keep for a hundred thousand of them.
type Work struct {
	// Generation of the Work, and the one that its status is about.
	Generation, Observed int64
	// The conditions of the Work: True, False, or Unknown where one is missing or about a generation before Observed.
	Applied, Available, Degraded, Progressing metav1.ConditionStatus
	// Reason of what is most wrong: of Degraded, then Applied, Available, Progressing. Empty: nothing is.
	Reason string
	// Message is the Work's one sentence, of at most 512 bytes.
	Message string
	// Changed is the latest of the conditions' transitions, by the member's clock, which may be wrong.
	Changed time.Time
	// Feedback in the order of objects and names, at most [v1alpha1.MaxFeedbackSummaries]; nil without any.
	Feedback []Feedback
	// Deleting says that its deletion has begun.
	Deleting bool
}

// Feedback is one value that a member reports of an object.
type Feedback struct {
	workv1alpha1.ResourceIdentifier
	// Name that it is reported under.
	Name string
	Type workv1alpha1.FeedbackType
	// Value as text, of at most 128 bytes.
	Value string
}

// Of takes from a Work what matters. It keeps nothing of it but strings.
func Of(w *workv1alpha1.Work) Work {
	made := Work{
		Generation: w.Generation, Observed: w.Status.ObservedGeneration, Message: bounded.Text(w.Status.Message, maxMessage),
		Feedback: feedbackOf(w.Status.Manifests), Deleting: w.DeletionTimestamp != nil,
	}
	var reasons [4]string
	for i, condition := range []struct {
		kind   string
		status *metav1.ConditionStatus
		wrong  metav1.ConditionStatus // which it is not to be; empty: it is to be True
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
		switch said.Status { // the constants, so that what was decoded need not be kept
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

// current finds a condition that is about the generation that the status is about.
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

// feedbackOf collects what is fed back. What has a name that no object has is left out, for it would be the status that
// grows.
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
	return slices.Clone(all[:min(len(all), v1alpha1.MaxFeedbackSummaries)]) // with no room to spare
}

// key is what a value is told by.
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

// upToDate reports whether the member has looked at the Work as it is now.
func (w *Work) upToDate() bool { return w.Observed == w.Generation && !w.Deleting }

// fine reports whether the member has all of it, and it is ready.
func (w *Work) fine() bool {
	return w.Applied == metav1.ConditionTrue && w.Available == metav1.ConditionTrue && w.Degraded != metav1.ConditionTrue
}
