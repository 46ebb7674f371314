package config

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Reference is a configuration and its source.
type Reference struct {
	v1alpha1.ConfigReference
	From v1alpha1.ConfigSource
}

// String formats the configuration, for example "configmaps fleet/limits" or "addontemplates.addon.muster.dev logs".
func (r Reference) String() string {
	name := r.Name
	if r.Namespace != "" {
		name = r.Namespace + "/" + name
	}
	return r.kind().String() + " " + name
}

func (r Reference) kind() schema.GroupResource {
	return schema.GroupResource{Group: r.Group, Resource: r.Resource}
}

// Problem is a configuration that cannot apply.
type Problem struct {
	Reference
	// Reason is [v1alpha1.ReasonUnsupported] or [v1alpha1.ReasonConfigNotFound].
	Reason string
}

// String returns a message for the condition Configured.
func (p Problem) String() string {
	by := map[v1alpha1.ConfigSource]string{
		v1alpha1.FromDefault:   "the defaults of the Addon",
		v1alpha1.FromPlacement: "the install strategy of the Addon",
		v1alpha1.FromMember:    "the MemberAddon",
	}[p.From]
	if p.Reason == v1alpha1.ReasonUnsupported {
		return fmt.Sprintf("The add-on does not support %s, listed in %s: remove the reference, or declare the kind "+
			"in spec.configs of the Addon.", p.Reference, by)
	}
	return fmt.Sprintf("%s, listed in %s, does not exist: create it, or remove the reference.", p.Reference, by)
}

// Effective returns the configurations that apply to a member, sorted by the order of the kinds in the Addon and then
// by their own order. The placement argument contains the configs of the install strategy for the member's Placement,
// and the member argument those of the MemberAddon; either may be nil. The problems are references to undeclared kinds,
// in the order in which they are listed. The function is deterministic and does not modify its arguments.
func Effective(addon *v1alpha1.AddonSpec, placement, member []v1alpha1.ConfigReference) ([]Reference, []Problem) {
	var order []schema.GroupResource
	counting := map[schema.GroupResource][]Reference{}
	for i := range addon.Configs {
		declared := &addon.Configs[i]
		kind := schema.GroupResource{Group: declared.Group, Resource: declared.Resource}
		if _, again := counting[kind]; again {
			continue // the API server rejects others
		}
		order = append(order, kind)
		counting[kind] = nil
		for _, name := range declared.Defaults {
			reference := v1alpha1.ConfigReference{Group: kind.Group, Resource: kind.Resource, ObjectName: name}
			counting[kind] = append(counting[kind], Reference{reference, v1alpha1.FromDefault})
		}
	}

	var problems []Problem
	overrule := func(from v1alpha1.ConfigSource, named []v1alpha1.ConfigReference) {
		level := map[schema.GroupResource][]Reference{}
		for _, name := range named {
			reference := Reference{name, from}
			if _, declared := counting[reference.kind()]; !declared {
				problems = append(problems, Problem{reference, v1alpha1.ReasonUnsupported})
				continue
			}
			level[reference.kind()] = append(level[reference.kind()], reference)
		}
		maps.Copy(counting, level)
	}
	overrule(v1alpha1.FromPlacement, placement)
	overrule(v1alpha1.FromMember, member)

	var references []Reference
	for _, kind := range order {
		references = append(references, once(counting[kind])...)
	}
	return references, once(problems)
}

// once removes all but the last occurrence of each item. The lists have at most 32 items.
func once[T comparable](items []T) []T {
	var out []T
	for i, item := range items {
		if !slices.Contains(items[i+1:], item) {
			out = append(out, item)
		}
	}
	return out
}
