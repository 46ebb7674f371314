package workset

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// parting is what becomes of the objects of a Work that is deleted. A Work gets it with a revision, in its turn; but people change it just
// before they delete, and a rollout that waits must not have destroyed what they say is to stay.
type parting workv1alpha1.DeletePolicy

// partingOf says it in full, as the API server would. What is kept of it is constants, and nothing of a Work that was read.
func partingOf(p workv1alpha1.DeletePolicy) parting {
	full := parting{Action: workv1alpha1.DeleteObject, Propagation: metav1.DeletePropagationForeground}
	switch p.Action {
	case "", workv1alpha1.DeleteObject:
	case workv1alpha1.OrphanObject:
		full.Action = workv1alpha1.OrphanObject
	default: // of a later release
		full.Action = p.Action
	}
	switch p.Propagation {
	case "", metav1.DeletePropagationForeground:
	case metav1.DeletePropagationBackground:
		full.Propagation = metav1.DeletePropagationBackground
	default:
		full.Propagation = p.Propagation
	}
	return full
}

// parts reports whether it is known that a Work says so, as it is.
func (c *controller) parts(work *metav1.ObjectMeta, how parting) bool {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	e := c.works.entries[types.NamespacedName{Namespace: work.Namespace, Name: work.Name}]
	return e != nil && e.record != nil && e.record.UID == work.UID && e.record.Generation == work.Generation && e.record.parting == how
}

// atVersion makes a patch fail if the Work was changed meanwhile, and sameUID if it is another one.
func atVersion(work *metav1.ObjectMeta) operation {
	return operation{"replace", "/metadata/resourceVersion", work.ResourceVersion}
}

func sameUID(work *metav1.ObjectMeta) operation {
	return operation{"replace", "/metadata/uid", work.UID}
}

// request notes on a Work that it is deleted on behalf of a WorkSet, and what becomes of its objects, and returns the Work. Without the
// note the agent takes the deletion for one by hand, and keeps the objects.
func (c *controller) request(ctx context.Context, work *metav1.ObjectMeta, bound operation, how parting, by types.UID) (*workv1alpha1.Work, error) {
	ops := []operation{bound}
	if len(work.Annotations) == 0 {
		ops = append(ops, operation{"add", "/metadata/annotations", map[string]string{}})
	}
	ops = append(ops, operation{"add", "/metadata/annotations/" + pointer.Replace(workv1alpha1.DeletionRequestedByAnnotation), by}, operation{"add", "/spec/delete", how})
	patch, err := json.Marshal(ops)
	if err != nil {
		return nil, err
	}
	got := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: work.Namespace, Name: work.Name}}
	if err := c.client.Patch(ctx, got, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return nil, err
	}
	c.metrics.written.WithLabelValues("update").Inc()
	return got, nil
}
