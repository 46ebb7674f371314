package config

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Reference is a configuration, and who names it.
type Reference struct {
	v1alpha1.ConfigReference
	From v1alpha1.ConfigSource
}

// String is the configuration as people write it, such as "configmaps fleet/limits" or "addontemplates.addon.muster.dev logs".
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

// Problem is a configuration that cannot count.
type Problem struct {
	Reference
	// Reason is [v1alpha1.ReasonUnsupported] or [v1alpha1.ReasonConfigNotFound].
	Reason string
}

// String is a sentence for the condition Configured.
func (p Problem) String() string {
	by := map[v1alpha1.ConfigSource]string{
		v1alpha1.FromDefault:   "the defaults of the Addon",
		v1alpha1.FromPlacement: "the install strategy of the Addon",
		v1alpha1.FromMember:    "the MemberAddon",
	}[p.From]
	if p.Reason == v1alpha1.ReasonUnsupported {
		return fmt.Sprintf("The add-on does not take %s, named by %s: remove it there, or declare its kind in spec.configs of the Addon.", p.Reference, by)
	}
	return fmt.Sprintf("There is no %s, named by %s.", p.Reference, by)
}

// Effective returns the configurations that count for a member, by the kinds as the add-on declares them, and those of one kind in their order.
// Placement has the configs of the install strategy for the Placement that the member is in, and member those of the MemberAddon; either may be nil. The
// problems are references to kinds that the add-on does not declare, in the order in which they are named. Nothing is changed, and the same
// always gives the same.
func Effective(addon *v1alpha1.AddonSpec, placement, member []v1alpha1.ConfigReference) ([]Reference, []Problem) {
	var order []schema.GroupResource
	counting := map[schema.GroupResource][]Reference{}
	for i := range addon.Configs {
		declared := &addon.Configs[i]
		kind := schema.GroupResource{Group: declared.Group, Resource: declared.Resource}
		if _, again := counting[kind]; again {
			continue // the API server lets none through
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

// once leaves out all that comes again later. The lists are short: the API allows 32 items.
func once[T comparable](items []T) []T {
	var out []T
	for i, item := range items {
		if !slices.Contains(items[i+1:], item) {
			out = append(out, item)
		}
	}
	return out
}
