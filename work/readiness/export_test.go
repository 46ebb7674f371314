package readiness

import "k8s.io/apimachinery/pkg/runtime/schema"

// OperatorKinds are the kinds of custom resources that have a rule.
func OperatorKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for group, of := range operatorKinds {
		for kind := range of {
			kinds = append(kinds, schema.GroupKind{Group: group, Kind: kind})
		}
	}
	for kind := range routes {
		kinds = append(kinds, schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: kind})
	}
	return kinds
}
