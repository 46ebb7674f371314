package clusterprofile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// create creates an object.
func (x *export) create(ctx context.Context, want *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	k := key{Namespace: want.GetNamespace(), Name: want.GetName()}
	created, err := x.objects(k).Create(ctx, want, metav1.CreateOptions{FieldManager: fieldOwner})
	if err != nil {
		return nil, fmt.Errorf("create %s %s: %w", want.GetKind(), k, err)
	}
	return x.recordWritten(created), nil
}

// patch changes an object if its resourceVersion is still the observed one.
func (x *export) patch(ctx context.Context, have *unstructured.Unstructured, change map[string]any,
	subresources ...string) (*unstructured.Unstructured, error) {
	k := key{Namespace: have.GetNamespace(), Name: have.GetName()}
	metadata, _ := change["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
		change["metadata"] = metadata
	}
	metadata["resourceVersion"] = have.GetResourceVersion()
	data, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	patched, err := x.objects(k).Patch(ctx, k.Name, types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: fieldOwner}, subresources...)
	if err != nil {
		return nil, fmt.Errorf("patch %s %s: %w", have.GetKind(), k, err)
	}
	return x.recordWritten(patched), nil
}

// recordWritten records a written object in the store before the watch reports it.
func (x *export) recordWritten(object *unstructured.Unstructured) *unstructured.Unstructured {
	object.SetManagedFields(nil)
	x.store.Mutation(object)
	return object
}

// reserveWrite counts a write of an object against its rate limit. If the limit does not permit the write yet,
// reserveWrite counts nothing and returns the time to wait.
func (x *export) reserveWrite(k key, turned bool) (wait time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.Clock.Now()
	if wait := x.rateLimits[k].wait(now, turned); wait > 0 {
		return wait
	}
	x.rateLimits[k] = x.rateLimits[k].afterWrite(now)
	return 0
}

// releaseWrite reverts reserveWrite for a write that the API server rejected.
func (x *export) releaseWrite(k key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.rateLimits[k] = rateLimit{x.rateLimits[k].usedUntil.Add(-perWrite)}
}

// notify reports, once for each such object, that an object of another owner has the name of an exported object. It
// logs this, and records an Event of the source.
func (x *export) notify(source runtime.Object, foreign *unstructured.Unstructured, whose string) {
	k := key{Namespace: foreign.GetNamespace(), Name: foreign.GetName()}
	x.mu.Lock()
	known := x.announced[k] == foreign.GetUID()
	x.announced[k] = foreign.GetUID()
	x.mu.Unlock()
	if known {
		return
	}
	x.log.Info("Exported object has the name of an object of another owner, which is not changed",
		"resource", x.resource.GroupResource().String(), "object", k.String(), "whose", whose)
	// +event:object=MemberCluster, PlacementDecision
	x.recorder.Eventf(source, nil, corev1.EventTypeWarning, "NameTaken", "Export",
		"%s %s is %s, and is not changed. Delete or rename the object, so that this object can be "+
			"exported.", foreign.GetKind(), k, whose)
}

// forget removes the state of an object that is no longer exported.
func (x *export) forget(k key) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.rateLimits, k)
	delete(x.announced, k)
}

// namespaceMissing reports whether an object could not be created because its namespace does not exist. A missing kind
// causes NotFound as well.
func namespaceMissing(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil &&
		status.Status().Details.Kind == "namespaces"
}
