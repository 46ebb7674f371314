package readiness

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OperatorKinds are the kinds of custom resources that have a rule.
func OperatorKinds() []schema.GroupKind {
	var kinds []schema.GroupKind
	for group, of := range operatorKinds {
		for kind := range of {
			kinds = append(kinds, schema.GroupKind{Group: group, Kind: kind})
		}
	}
	return slices.AppendSeq(kinds, maps.Keys(kindFuncs))
}

// OperatorGroups are the suffixes of the groups that have a rule for all of their kinds.
func OperatorGroups() []string { return slices.Collect(maps.Keys(operatorGroups)) }
