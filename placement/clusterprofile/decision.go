package clusterprofile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Labels that the API of PlacementDecisions defines.
const (
	decisionKeyLabel   = group + "/decision-key"
	decisionIndexLabel = group + "/decision-index"
	placementKeyLabel  = group + "/placement-key"
)

// DecisionOf returns the PlacementDecision of multicluster.x-k8s.io for a PlacementDecision of muster. It is a pure
// function.
func DecisionOf(decision *v1alpha1.PlacementDecision, o Options) *unstructured.Unstructured {
	o = o.withDefaults()
	exported := newObject("PlacementDecision", decision.Namespace, decision.Name)
	labels := map[string]string{}
	if placement := decision.Labels[v1alpha1.PlacementLabel]; placement != "" {
		labels[decisionKeyLabel], labels[placementKeyLabel] = placement, placement
	} else if placement := decision.Labels[v1alpha1.ClusterPlacementLabel]; placement != "" {
		key := v1alpha1.LabelValue("clusterplacement." + placement) // A Placement can have the same name.
		labels[decisionKeyLabel], labels[placementKeyLabel] = key, key
	}
	if index := decision.Labels[v1alpha1.DecisionIndexLabel]; index != "" {
		labels[decisionIndexLabel] = index
	}
	if len(labels) > 0 {
		exported.SetLabels(labels)
	}
	exported.SetOwnerReferences(
		[]metav1.OwnerReference{ownedBy(decision, v1alpha1.GroupVersion.WithKind("PlacementDecision"))})
	decisions := make([]any, 0, len(decision.Decisions)) // not nil: the field is required
	for _, d := range decision.Decisions {
		chosen := map[string]any{"clusterProfileRef": map[string]any{"namespace": o.ProfileNamespace, "name": d.ClusterName}}
		if d.Reason != "" {
			chosen["reason"] = d.Reason
		}
		decisions = append(decisions, chosen)
	}
	exported.Object["decisions"], exported.Object["schedulerName"] = decisions, o.ClusterManager
	return exported
}

// amendDecision returns the changes from an existing decision to the desired one, or nil if there are none. Labels and
// owner references of other clients stay.
func amendDecision(have, want *unstructured.Unstructured) map[string]any {
	change, metadata := map[string]any{}, map[string]any{}
	if labels := missing(have.GetLabels(), want.GetLabels()); labels != nil {
		metadata["labels"] = labels
	}
	owners, owner := have.GetOwnerReferences(), want.GetOwnerReferences()[0]
	for i := range owners {
		// The slice may have been deleted and created again. The exported decision does not have to be recreated with it.
		if controller := owners[i].Controller; controller != nil && *controller && owners[i].UID != owner.UID {
			owners[i] = owner
			metadata["ownerReferences"] = owners
		}
	}
	if len(metadata) > 0 {
		change["metadata"] = metadata
	}
	if !same(list(have.Object, "decisions"), list(want.Object, "decisions")) {
		change["decisions"] = want.Object["decisions"]
	}
	if have.Object["schedulerName"] != want.Object["schedulerName"] {
		change["schedulerName"] = want.Object["schedulerName"]
	}
	if len(change) == 0 {
		return nil
	}
	return change
}
