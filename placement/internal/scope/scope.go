// Package scope lets the controllers treat cluster-scoped objects like namespaced ones. A ClusterPlacement is a
// Placement without a namespace, and a ClusterWorkSet is a WorkSet without a namespace. The package converts objects
// where they are read and written; the conversion changes the type of a pointer and copies nothing.
package scope

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// ChildNamespace returns the namespace of the PlacementDecisions or WorkSetRevisions of an object in a namespace.
func ChildNamespace(namespace string) string {
	if namespace == "" {
		return v1alpha1.ClusterScopeNamespace
	}
	return namespace
}

// PlacementKind returns the kind of the Placements of a namespace.
func PlacementKind(namespace string) schema.GroupVersionKind {
	if namespace == "" {
		return v1alpha1.GroupVersion.WithKind("ClusterPlacement")
	}
	return v1alpha1.GroupVersion.WithKind("Placement")
}

// WorkSetKind returns the kind of the WorkSets of a namespace.
func WorkSetKind(namespace string) schema.GroupVersionKind {
	if namespace == "" {
		return v1alpha1.GroupVersion.WithKind("ClusterWorkSet")
	}
	return v1alpha1.GroupVersion.WithKind("WorkSet")
}

// WorkSetResource returns the resource of the WorkSets of a namespace.
func WorkSetResource(namespace string) schema.GroupVersionResource {
	if namespace == "" {
		return v1alpha1.GroupVersion.WithResource("clusterworksets")
	}
	return v1alpha1.GroupVersion.WithResource("worksets")
}

// Name returns how messages name an object: by namespace and name, or by its name if it is cluster-scoped.
func Name(key client.ObjectKey) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

// DecisionLabels returns the labels by which the PlacementDecisions of a Placement are listed.
func DecisionLabels(placement client.ObjectKey) client.MatchingLabels {
	if placement.Namespace == "" {
		return client.MatchingLabels{v1alpha1.ClusterPlacementLabel: v1alpha1.LabelValue(placement.Name)}
	}
	return client.MatchingLabels{v1alpha1.PlacementLabel: v1alpha1.LabelValue(placement.Name)}
}

// RevisionLabels returns the labels by which the WorkSetRevisions of a WorkSet are listed.
func RevisionLabels(set client.ObjectKey) client.MatchingLabels {
	if set.Namespace == "" {
		return client.MatchingLabels{v1alpha1.ClusterWorkSetLabel: v1alpha1.LabelValue(set.Name)}
	}
	return client.MatchingLabels{v1alpha1.WorkSetLabel: v1alpha1.LabelValue(set.Name)}
}

// ReadPlacement reads a Placement or, without a namespace, a ClusterPlacement.
func ReadPlacement(ctx context.Context, reader client.Reader, key client.ObjectKey) (*v1alpha1.Placement, error) {
	if key.Namespace == "" {
		p := &v1alpha1.ClusterPlacement{}
		err := reader.Get(ctx, key, p)
		return (*v1alpha1.Placement)(p), err
	}
	p := &v1alpha1.Placement{}
	return p, reader.Get(ctx, key, p)
}

// ReadWorkSet reads a WorkSet or, without a namespace, a ClusterWorkSet.
func ReadWorkSet(ctx context.Context, reader client.Reader, key client.ObjectKey) (*v1alpha1.WorkSet, error) {
	if key.Namespace == "" {
		s := &v1alpha1.ClusterWorkSet{}
		err := reader.Get(ctx, key, s)
		return (*v1alpha1.WorkSet)(s), err
	}
	s := &v1alpha1.WorkSet{}
	return s, reader.Get(ctx, key, s)
}

// ListWorkSets returns the WorkSets of a namespace or, for the empty namespace, the ClusterWorkSets.
func ListWorkSets(ctx context.Context, reader client.Reader, namespace string,
	options ...client.ListOption) ([]*v1alpha1.WorkSet, error) {
	if namespace == "" {
		var list v1alpha1.ClusterWorkSetList
		err := reader.List(ctx, &list, options...)
		sets := make([]*v1alpha1.WorkSet, len(list.Items))
		for i := range list.Items {
			sets[i] = (*v1alpha1.WorkSet)(&list.Items[i])
		}
		return sets, err
	}
	var list v1alpha1.WorkSetList
	err := reader.List(ctx, &list, append(options, client.InNamespace(namespace))...)
	sets := make([]*v1alpha1.WorkSet, len(list.Items))
	for i := range list.Items {
		sets[i] = &list.Items[i]
	}
	return sets, err
}

// Watched reports whether a manager's cache contains the PlacementDecisions and WorkSetRevisions of cluster-scoped
// objects. A manager whose cache is limited to other namespaces must leave cluster-scoped objects to another manager,
// because existing decisions would seem to be missing. The cache must have synced.
func Watched(ctx context.Context, cache client.Reader) bool {
	err := cache.Get(ctx, client.ObjectKey{Namespace: v1alpha1.ClusterScopeNamespace, Name: "any"},
		&v1alpha1.PlacementDecision{})
	return client.IgnoreNotFound(err) == nil // A cache of some namespaces returns its own error for others.
}

// PlacementObject returns the object of the API. A client that writes it changes the argument as well.
func PlacementObject(p *v1alpha1.Placement) client.Object {
	if p.Namespace == "" {
		return (*v1alpha1.ClusterPlacement)(p)
	}
	return p
}

// WorkSetObject returns the object of the API. A client that writes it changes the argument as well.
func WorkSetObject(s *v1alpha1.WorkSet) client.Object {
	if s.Namespace == "" {
		return (*v1alpha1.ClusterWorkSet)(s)
	}
	return s
}

// CreateChild creates an object in a namespace of [ChildNamespace]. If [v1alpha1.ClusterScopeNamespace] does not exist,
// it creates that namespace first.
func CreateChild(ctx context.Context, c client.Client, object client.Object) error {
	err := c.Create(ctx, object)
	if !apierrors.IsNotFound(err) || object.GetNamespace() != v1alpha1.ClusterScopeNamespace {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ClusterScopeNamespace}}
	if err := c.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create namespace %s: %w", namespace.Name, err)
	}
	return c.Create(ctx, object)
}
