package readiness

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// OperatorKinds returns the kinds of custom resources that have a rule.
func OperatorKinds() []schema.GroupKind {
	kinds := map[schema.GroupKind]bool{}
	for _, table := range []map[string]map[string]customRule{operatorKinds, reportingKinds} {
		for group, of := range table {
			for kind := range of {
				kinds[schema.GroupKind{Group: group, Kind: kind}] = true
			}
		}
	}
	for kind := range kindFuncs {
		kinds[kind] = true
	}
	return slices.Collect(maps.Keys(kinds))
}

// OperatorGroups returns the suffixes of the groups that have a rule for all of their kinds.
func OperatorGroups() []string { return slices.Collect(maps.Keys(operatorGroups)) }
