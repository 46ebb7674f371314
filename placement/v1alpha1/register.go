package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "placement.muster.dev"

var (
	// GroupVersion is the group and version of the types in this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	schemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = schemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Placement{}, &PlacementList{}, &PlacementDecision{}, &PlacementDecisionList{}, &WorkSet{}, &WorkSetList{},
		&PlacementEviction{}, &PlacementEvictionList{},
		&WorkSetRevision{}, &WorkSetRevisionList{},
		&ClusterPlacement{}, &ClusterPlacementList{}, &ClusterWorkSet{}, &ClusterWorkSetList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
