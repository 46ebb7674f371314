package clusterprofile

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var decisionKind = schema.GroupKind{Group: v1alpha1.GroupName, Kind: "PlacementDecision"}

func (e *exporter) decisionKind() kind {
	return kind{
		resource: schema.GroupVersionResource{Group: group, Version: version, Resource: "placementdecisions"},
		source:   &v1alpha1.PlacementDecision{},
		keysOf:   func(decision metav1.Object) []key { return []key{toolscache.MetaObjectToName(decision)} },
		isOurs:   func(decision *unstructured.Unstructured) bool { return ownerOf(decision, decisionKind) != nil },
		sync:     e.syncDecision,
	}
}

// syncDecision creates or updates the exported PlacementDecision. It never deletes: the garbage collector deletes the
// exported object after its source.
func (e *exporter) syncDecision(ctx context.Context, x *export, k key) (time.Duration, error) {
	decision := &v1alpha1.PlacementDecision{}
	if err := e.cache.Get(ctx, client.ObjectKey{Namespace: k.Namespace, Name: k.Name}, decision); err != nil ||
		decision.DeletionTimestamp != nil {
		if apierrors.IsNotFound(err) {
			x.forget(k)
		}
		return 0, client.IgnoreNotFound(err)
	}
	// Otherwise a consumer would use the profile of another cluster for this one.
	decision.Decisions = slices.DeleteFunc(decision.Decisions, func(d v1alpha1.ClusterDecision) bool {
		return e.hasForeignProfile(d.ClusterName)
	})
	have, want := x.get(k), DecisionOf(decision, e.Options)
	switch {
	case have == nil:
		_, err := x.create(ctx, want)
		return 0, err
	case !x.isOurs(have):
		x.notify(decision, have, "not managed by muster")
		return 0, nil
	case have.GetDeletionTimestamp() != nil:
		return 0, nil
	}
	if change := amendDecision(have, want); change != nil {
		_, err := x.patch(ctx, have, change)
		return 0, err
	}
	return 0, nil
}

// observeProfile observes a changed or deleted profile. If it belongs to another manager, observeProfile enqueues the
// decisions that name its cluster.
func (e *exporter) observeProfile(profile *unstructured.Unstructured) {
	x := e.decisions.Load()
	if x == nil || managerOf(profile) == e.ClusterManager || profile.GetNamespace() != e.ProfileNamespace {
		return
	}
	var decisions v1alpha1.PlacementDecisionList
	if err := e.cache.List(context.Background(), &decisions, client.UnsafeDisableDeepCopy); err != nil {
		e.log.Error(err, "Failed to list PlacementDecisions")
		return
	}
	for i := range decisions.Items {
		decision := &decisions.Items[i]
		if slices.ContainsFunc(decision.Decisions, func(d v1alpha1.ClusterDecision) bool {
			return d.ClusterName == profile.GetName()
		}) {
			x.queue.Add(toolscache.MetaObjectToName(decision))
		}
	}
}
