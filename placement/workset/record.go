package workset

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// record is what is kept of a Work: not its manifests, of which there may be a hundred thousand, but what tells whether they are as
// they should be. A record is never changed.
type record struct {
	metav1.ObjectMeta // its name, versions, labels and annotations

	set      types.NamespacedName
	content  bundle.Work         // without texts
	options  bundle.Hash         // of all that is not manifests
	parting  parting             // part of that
	written  *bundle.Fingerprint // what this process wrote last; nil: nothing, or another client changed it since
	replicas map[bundle.Key]int32
	told     told
	marked   bool // it has our labels and annotations, as it should
	settled  bool // the member has done what it can with it as it is
	status   progress.Work
}

func (r *record) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// told is the revision that a cluster was told, and when.
type told struct {
	revision string
	since    time.Time
}

// stamp is a time as it can be stored, so that two that are the same are equal.
func stamp(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }

// sameButStatus reports whether two records of a Work differ in its status at most, and so whether the same is to be done about it.
func (r *record) sameButStatus(o *record) bool {
	return r.UID == o.UID && r.Generation == o.Generation && r.told == o.told && r.marked == o.marked && r.set == o.set &&
		(r.written == nil) == (o.written == nil) && (r.written == nil || *r.written == *o.written) &&
		(r.DeletionTimestamp == nil) == (o.DeletionTimestamp == nil) && maps.Equal(r.Annotations, o.Annotations)
}

// dying is the record of the same Work once its deletion has begun.
func (r *record) dying() *record {
	gone := *r
	gone.DeletionTimestamp = &metav1.Time{} // when does not matter
	gone.status.Deleting = true
	return &gone
}

// recordOf makes a record. What was read of the same generation before is not read again.
func recordOf(work *workv1alpha1.Work, before *record) *record {
	r := &record{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.Namespace, Name: work.Name, UID: work.UID, ResourceVersion: work.ResourceVersion, Generation: work.Generation,
			CreationTimestamp: work.CreationTimestamp, DeletionTimestamp: work.DeletionTimestamp, Labels: work.Labels, Annotations: work.Annotations,
		},
		set:     setOf(work.Labels, work.Annotations),
		settled: bundle.Settled(work),
		status:  progress.Of(work),
	}
	r.told.revision = work.Annotations[v1alpha1.RevisionAnnotation]
	if since, err := time.Parse(time.RFC3339Nano, work.Annotations[v1alpha1.RevisionSinceAnnotation]); err == nil {
		r.told.since = stamp(since)
	}
	r.marked = work.Labels[v1alpha1.WorkSetLabel] == v1alpha1.LabelValue(r.set.Name) && work.Labels[v1alpha1.WorkSetNamespaceLabel] == r.set.Namespace &&
		work.Annotations[v1alpha1.WorkSetAnnotation] == r.set.String() && work.Annotations[workv1alpha1.GeneratedByAnnotation] == generatedBy(r.set) &&
		(work.Annotations[workv1alpha1.DeletionRequestedByAnnotation] == "" || work.DeletionTimestamp != nil)
	if before != nil && before.UID == r.UID && before.Generation == r.Generation {
		r.content, r.options, r.parting, r.written, r.replicas = before.content, before.options, before.parting, before.written, before.replicas
		return r
	}
	r.content = bundle.Read(work.Name, work.Spec.Manifests)
	r.replicas = replicasOf(r.content.Objects)
	r.content = withoutTexts(r.content)
	r.options = bundle.HashOptions(&work.Spec)
	r.parting = partingOf(work.Spec.Delete)
	return r
}

// setOf returns the WorkSet of a Work: the one that its annotation names or, if a user removed that, its labels. A
// label cannot have a name that is too long for it.
func setOf(labels, annotations map[string]string) types.NamespacedName {
	if is, annotated := annotations[v1alpha1.WorkSetAnnotation]; annotated {
		namespace, name, err := toolscache.SplitMetaNamespaceKey(is)
		if err != nil {
			return types.NamespacedName{}
		}
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	return types.NamespacedName{Namespace: labels[v1alpha1.WorkSetNamespaceLabel], Name: labels[v1alpha1.WorkSetLabel]}
}

func withoutTexts(w bundle.Work) bundle.Work {
	w.Objects = slices.Clone(w.Objects)
	for i := range w.Objects {
		w.Objects[i].JSON = nil
	}
	return w
}

// replicasOf are the replicas of those objects that have any.
func replicasOf(objects []bundle.Object) map[bundle.Key]int32 {
	var found map[bundle.Key]int32
	for i := range objects {
		var workload struct {
			Spec struct {
				Replicas *int32 `json:"replicas"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(objects[i].JSON, &workload); err != nil || workload.Spec.Replicas == nil {
			continue
		}
		if found == nil {
			found = map[bundle.Key]int32{}
		}
		found[objects[i].Key()] = *workload.Spec.Replicas
	}
	return found
}
