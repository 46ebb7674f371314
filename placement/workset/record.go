package workset

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/internal/progress"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// record is the part of a Work that the controller caches. It has no manifests, because a hub can have a hundred
// thousand Works, but it suffices for the comparison with the desired Work. A record is immutable.
type record struct {
	metav1.ObjectMeta // name, versions, labels and annotations

	set          types.NamespacedName
	content      bundle.Work         // without texts
	options      bundle.Hash         // of the spec without manifests
	deletePolicy deletePolicy        // part of the options
	written      *bundle.Fingerprint // the last write of this process; nil: none, or another client changed the Work since
	replicas     map[bundle.Key]int32
	assigned     assignment
	marked       bool // the Work has the labels and annotations of the controller
	observed     bool // the agent has finished the current generation
	status       progress.Work
}

func (r *record) key() types.NamespacedName {
	return types.NamespacedName{Namespace: r.Namespace, Name: r.Name}
}

// assignment is the revision of a cluster, and when it was assigned.
type assignment struct {
	revision string
	since    time.Time
}

// stamp returns a time with the precision of the API, so that equal times compare equal.
func stamp(t time.Time) time.Time { return time.Unix(0, t.UnixNano()).UTC() }

// sameButStatus reports whether two records of a Work differ at most in the status, so that they lead to the same
// steps.
func (r *record) sameButStatus(o *record) bool {
	return r.UID == o.UID && r.Generation == o.Generation && r.assigned == o.assigned && r.marked == o.marked &&
		r.set == o.set &&
		(r.written == nil) == (o.written == nil) && (r.written == nil || *r.written == *o.written) &&
		(r.DeletionTimestamp == nil) == (o.DeletionTimestamp == nil) && maps.Equal(r.Annotations, o.Annotations)
}

// deleting returns the record of the same Work after its deletion has begun.
func (r *record) deleting() *record {
	gone := *r
	gone.DeletionTimestamp = &metav1.Time{} // any time
	gone.status.Deleting = true
	return &gone
}

// recordOf returns the record of a Work. It reuses the content of an earlier record of the same generation.
func recordOf(work *workv1alpha1.Work, before *record) *record {
	r := &record{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: work.Namespace, Name: work.Name, UID: work.UID, ResourceVersion: work.ResourceVersion,
			Generation:        work.Generation,
			CreationTimestamp: work.CreationTimestamp, DeletionTimestamp: work.DeletionTimestamp,
			Labels: bounded.Metadata(work.Labels), Annotations: bounded.Metadata(work.Annotations),
		},
		set:      setOf(work.Labels, work.Annotations),
		observed: bundle.Processed(work),
		status:   progress.Of(work),
	}
	r.assigned.revision = work.Annotations[v1alpha1.RevisionAnnotation]
	if since, err := time.Parse(time.RFC3339Nano, work.Annotations[v1alpha1.RevisionSinceAnnotation]); err == nil {
		r.assigned.since = stamp(since)
	}
	namespace, labeled := work.Labels[v1alpha1.WorkSetNamespaceLabel]
	r.marked = work.Labels[v1alpha1.WorkSetLabel] == v1alpha1.LabelValue(r.set.Name) &&
		labeled && namespace == r.set.Namespace &&
		work.Annotations[v1alpha1.WorkSetAnnotation] == r.set.String() &&
		work.Annotations[workv1alpha1.GeneratedByAnnotation] == generatedBy(r.set) &&
		(work.Annotations[workv1alpha1.DeletionRequestedByAnnotation] == "" || work.DeletionTimestamp != nil)
	if before != nil && before.UID == r.UID && before.Generation == r.Generation {
		r.content, r.options, r.deletePolicy, r.written, r.replicas = before.content, before.options, before.deletePolicy,
			before.written, before.replicas
		return r
	}
	r.content = bundle.Read(work.Name, work.Spec.Manifests)
	r.replicas = replicasOf(r.content.Objects)
	r.content = withoutTexts(r.content)
	r.options = bundle.HashOptions(&work.Spec)
	r.deletePolicy = deletePolicyOf(work.Spec.Delete)
	return r
}

// setOf returns the WorkSet that owns a Work: the one in its annotation or, if a user removed the annotation, the one
// in its labels. A label cannot contain a name that exceeds the length limit of labels. The annotation of a
// ClusterWorkSet is /<name>, and its namespace label is empty. A Work without a namespace label does not belong to a
// ClusterWorkSet, because a user may have removed the label. If the returned name is empty, no WorkSet owns the Work.
func setOf(labels, annotations map[string]string) types.NamespacedName {
	if is, annotated := annotations[v1alpha1.WorkSetAnnotation]; annotated {
		namespace, name, err := toolscache.SplitMetaNamespaceKey(is)
		if err != nil || !strings.Contains(is, "/") {
			return types.NamespacedName{}
		}
		return types.NamespacedName{Namespace: namespace, Name: name}
	}
	namespace, labeled := labels[v1alpha1.WorkSetNamespaceLabel]
	if !labeled {
		return types.NamespacedName{}
	}
	return types.NamespacedName{Namespace: namespace, Name: labels[v1alpha1.WorkSetLabel]}
}

func withoutTexts(w bundle.Work) bundle.Work {
	w.Objects = slices.Clone(w.Objects)
	for i := range w.Objects {
		w.Objects[i].JSON = nil
	}
	return w
}

// replicasOf returns the replicas of objects that have any.
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
