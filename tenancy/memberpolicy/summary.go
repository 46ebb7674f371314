package memberpolicy

import (
	"maps"
	"slices"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// maxEntries is the maximum length of the lists in a summary.
const maxEntries = 128

// Summary returns the accepted objects of a hub, for the status of the member on the hub. Nil means that the member
// accepts every object. A summary is less exact than the rules: a kind and a namespace in the summary can come from
// different rules.
func (r *Rules) Summary(hub string) *membershipv1alpha1.MemberPolicySummary {
	if !r.Restricted() {
		return nil
	}
	kinds, namespaces := map[string]bool{}, map[string]bool{}
	for i := range r.policies {
		for j := range r.policies[i].Spec.Rules {
			rule := &r.policies[i].Spec.Rules[j]
			if len(rule.Hubs) > 0 && !slices.Contains(rule.Hubs, hub) {
				continue
			}
			for _, kind := range rule.Kinds {
				kinds[nameOf(kind)] = true
			}
			for _, namespace := range rule.Namespaces {
				namespaces[namespace] = true
			}
		}
	}
	s := &membershipv1alpha1.MemberPolicySummary{Policies: int32(len(r.policies))}
	for from, to := range map[*map[string]bool]*[]string{&kinds: &s.Kinds, &namespaces: &s.Namespaces} {
		sorted := slices.Sorted(maps.Keys(*from))
		s.Truncated = s.Truncated || len(sorted) > maxEntries
		*to = sorted[:min(len(sorted), maxEntries)]
	}
	return s
}

// nameOf returns a kind as kind.group.
func nameOf(kind v1alpha1.ObjectKind) string {
	if kind.Group == "" {
		return kind.Kind
	}
	return kind.Kind + "." + kind.Group
}
