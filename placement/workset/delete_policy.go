package workset

import (
	"context"
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// deletePolicy is what happens to the objects of a Work that is deleted. A Work gets it with a revision. But users can
// change it just before they delete a WorkSet, and then a waiting rollout must not destroy what the new policy keeps.
type deletePolicy workv1alpha1.DeletePolicy

// deletePolicyOf returns a policy with the defaults of the API server. The result contains only constants and no
// strings of the argument, so that it keeps no Work in memory.
func deletePolicyOf(p workv1alpha1.DeletePolicy) deletePolicy {
	full := deletePolicy{Action: workv1alpha1.DeleteObject, Propagation: metav1.DeletePropagationForeground}
	switch p.Action {
	case "", workv1alpha1.DeleteObject:
	case workv1alpha1.OrphanObject:
		full.Action = workv1alpha1.OrphanObject
	default: // a value of a later release
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

// hasDeletePolicy reports whether the current version of a Work is known to have a policy.
func (c *controller) hasDeletePolicy(work *metav1.ObjectMeta, how deletePolicy) bool {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	e := c.works.entries[types.NamespacedName{Namespace: work.Namespace, Name: work.Name}]
	return e != nil && e.record != nil && e.record.UID == work.UID && e.record.Generation == work.Generation &&
		e.record.deletePolicy == how
}

// atVersion makes a patch fail if the Work was changed meanwhile. sameUID makes it fail if it is another Work.
func atVersion(work *metav1.ObjectMeta) operation {
	return operation{"replace", "/metadata/resourceVersion", work.ResourceVersion}
}

func sameUID(work *metav1.ObjectMeta) operation {
	return operation{"replace", "/metadata/uid", work.UID}
}

// request annotates a Work with the UID of the WorkSet that requests its deletion, sets its delete policy, and returns
// the Work. Without the annotation the agent keeps the objects, because it assumes that a user deleted the Work by
// mistake.
func (c *controller) request(ctx context.Context, work *metav1.ObjectMeta, bound operation, how deletePolicy,
	by types.UID) (*workv1alpha1.Work, error) {
	ops := []operation{bound}
	if len(work.Annotations) == 0 {
		ops = append(ops, operation{"add", "/metadata/annotations", map[string]string{}})
	}
	ops = append(ops, operation{"add", "/metadata/annotations/" +
		pointer.Replace(workv1alpha1.DeletionRequestedByAnnotation), by}, operation{"add", "/spec/delete", how})
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
