package workset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/workwriter"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// deletePolicy determines what happens to the objects of a Work that is deleted. A Work gets the policy with a
// revision. But users can change the policy immediately before they delete a WorkSet. Then a waiting rollout must not
// delete objects that the new policy keeps.
type deletePolicy workv1alpha1.DeletePolicy

// deletePolicyOf returns a policy with the defaults of the API server. The result contains constants only and no
// strings of the argument, so that it does not keep a Work in memory.
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

// api returns the policy in the form of the API.
func (p deletePolicy) api() *workv1alpha1.DeletePolicy { return (*workv1alpha1.DeletePolicy)(&p) }

// hasDeletePolicy reports whether the cached Work is the given version and has the given policy.
func (c *controller) hasDeletePolicy(work *metav1.ObjectMeta, how deletePolicy) bool {
	c.works.mu.Lock()
	defer c.works.mu.Unlock()
	known := c.works.works.Get(types.NamespacedName{Namespace: work.Namespace, Name: work.Name})
	return known != nil && known.UID == work.UID && known.Generation == work.Generation && known.deletePolicy == how
}

// request writes the deletion request and the delete policy to a Work, and returns the Work.
func (c *controller) request(ctx context.Context, work *metav1.ObjectMeta, r workwriter.Request) (*workv1alpha1.Work,
	error) {
	got, err := c.writer().RequestDeletion(ctx, work, r)
	if err == nil {
		c.metrics.written.WithLabelValues("update").Inc()
	}
	return got, err
}
