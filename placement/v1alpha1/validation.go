package v1alpha1

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the policy, in the order of its fields, and no error if the policy is valid. The path
// is the path of the policy in the object that contains it, such as field.NewPath("spec", "policy"). It may be nil.
//
// Validate checks the rules of the CustomResourceDefinition, and rules that the API server cannot check: the syntax of
// label selectors, the type of every value in a list, and the complete syntax of API names and DNS prefixes. An empty
// field that has a default is valid. CEL expressions are not compiled. The scheduler checks whether the profile and the
// plugins exist.
func (p *PlacementPolicy) Validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		p.validateType(path),
		p.Affinity.validate(path.Child("affinity")),
		each(p.Sorters, 8, path.Child("sorters"), (*PropertySorter).validate),
		unique(p.Sorters, path.Child("sorters"), func(s PropertySorter) string { return s.Name }),
		each(p.Tolerations, 32, path.Child("tolerations"), (*Toleration).validate),
		each(p.TopologySpread, 4, path.Child("topologySpread"), (*TopologySpreadConstraint).validate),
		unique(p.TopologySpread, path.Child("topologySpread"), func(c TopologySpreadConstraint) string {
			return c.TopologyKey
		}),
		each(p.GroupSpread, 4, path.Child("groupSpread"), (*GroupSpreadConstraint).validate),
		unique(p.GroupSpread, path.Child("groupSpread"), func(c GroupSpreadConstraint) string { return c.Label }),
		oneOf(cmp.Or(p.Rebalance, RebalanceNever), path.Child("rebalance"), RebalanceNever, RebalanceAlways),
		each(p.Prioritizers, 32, path.Child("prioritizers"), (*Prioritizer).validate),
		unique(p.Prioritizers, path.Child("prioritizers"), func(p Prioritizer) string { return p.Plugin }),
		validateResources(p.Resources, path.Child("resources")),
		each(p.RequiredAPIs, 32, path.Child("requiredAPIs"), validateAPI),
		unique(p.RequiredAPIs, path.Child("requiredAPIs"),
			func(kind metav1.GroupVersionKind) metav1.GroupVersionKind { return kind }),
	)
	if p.Profile != "" {
		errs = append(errs,
			qualified(p.Profile, path.Child("profile"), "profile must be a qualified name such as example.com/cheapest")...)
	}
	return errs
}

// validateType checks that the fields that the type requires are set, and that the fields that it forbids are empty.
func (p *PlacementPolicy) validateType(path *field.Path) field.ErrorList {
	kind := cmp.Or(p.Type, PickAll)
	errs := oneOf(kind, path.Child("type"), PickAll, PickN, PickFixed)

	number := path.Child("numberOfClusters")
	switch {
	case p.NumberOfClusters == nil && kind == PickN:
		errs = append(errs,
			field.Required(number, "numberOfClusters is required with type PickN; use type PickAll for all clusters"))
	case p.NumberOfClusters != nil && kind != PickN:
		errs = append(errs,
			field.Forbidden(number, "numberOfClusters may only be set with type PickN: remove it, or set the type to PickN"))
	case p.NumberOfClusters != nil && (*p.NumberOfClusters < 0 || *p.NumberOfClusters > 10000):
		errs = append(errs, field.Invalid(number, *p.NumberOfClusters,
			"numberOfClusters must be from 0 to 10000; use type PickAll for all clusters"))
	}

	names := path.Child("clusterNames")
	switch {
	case len(p.ClusterNames) == 0 && kind == PickFixed:
		errs = append(errs, field.Required(names,
			"clusterNames is required with type PickFixed: name the clusters, or set another type"))
	case len(p.ClusterNames) > 0 && kind != PickFixed:
		errs = append(errs,
			field.Forbidden(names, "clusterNames may only be set with type PickFixed: remove it, or set the type to PickFixed"))
	}
	errs = append(errs, each(p.ClusterNames, 1000, names, func(name *string, path *field.Path) field.ErrorList {
		return dnsLabel.check(*name, path, "the name of a cluster must be a DNS label: lower-case letters, digits and '-', "+
			"starting and ending with a letter or digit")
	})...)
	errs = append(errs, unique(p.ClusterNames, names, func(name string) string { return name })...)

	for _, other := range []struct {
		name string
		set  bool
	}{
		{"affinity", p.Affinity != nil},
		{"sorters", len(p.Sorters) > 0},
		{"tolerations", len(p.Tolerations) > 0},
		{"topologySpread", len(p.TopologySpread) > 0},
		{"groupSpread", len(p.GroupSpread) > 0},
		{"prioritizers", len(p.Prioritizers) > 0},
		{"resources", len(p.Resources) > 0},
		{"requiredAPIs", len(p.RequiredAPIs) > 0},
	} {
		if kind == PickFixed && other.set {
			errs = append(errs,
				field.Forbidden(path.Child(other.name), fmt.Sprintf(
					"type PickFixed selects clusters by clusterNames only: remove %s, or set the type to PickAll or "+
						"PickN", other.name)))
		}
	}

	for i, constraint := range p.TopologySpread {
		if kind == PickAll && constraint.action() == DoNotSchedule {
			errs = append(errs, field.Invalid(path.Child("topologySpread").Index(i).Child("whenUnsatisfiable"), DoNotSchedule,
				"topologySpread with DoNotSchedule may only be set with type PickN, because PickAll selects every cluster: "+
					"set whenUnsatisfiable to ScheduleAnyway, or the type to PickN"))
		}
	}
	return errs
}

func (s *PropertySorter) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		longest(s.Name, 329, path.Child("name")),
		oneOf(cmp.Or(s.Order, Descending), path.Child("order"), Ascending, Descending),
	)
	if weight := cmp.Or(s.Weight, 1); weight < 1 || weight > 100 {
		errs = append(errs, field.Invalid(path.Child("weight"), weight,
			"weight must be from 1 to 100; leave it out for 1, and set order to reverse the order"))
	}
	of, resource, found := strings.Cut(s.Name, "/")
	switch {
	case s.Name == "":
		errs = append(errs,
			field.Invalid(path.Child("name"), s.Name, "name must be the name of a property, or of a resource such as "+
				"available/cpu"))
	case found && slices.Contains([]string{"capacity", "allocatable", "available"}, of) &&
		len(validation.IsQualifiedName(resource)) > 0:
		errs = append(errs, field.Invalid(path.Child("name"), s.Name, "name must have the name of a resource after "+
			"capacity/, allocatable/ or available/, such as available/cpu or capacity/nvidia.com/gpu"))
	}
	return errs
}

func (t *Toleration) validate(path *field.Path) field.ErrorList {
	operator := cmp.Or(t.Operator, corev1.TolerationOpEqual)
	errs := slices.Concat(
		oneOf(operator, path.Child("operator"), corev1.TolerationOpEqual, corev1.TolerationOpExists),
		labelValue.check(t.Value, path.Child("value"),
			"value must be letters, digits, '-', '_' or '.', and start and end with a letter or digit"),
	)
	if t.Effect != "" {
		errs = append(errs, oneOf(t.Effect, path.Child("effect"), corev1.TaintEffectNoSchedule,
			corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
	}
	switch {
	case t.Key != "":
		errs = append(errs,
			qualified(t.Key, path.Child("key"), "key must be a qualified name such as example.com/maintenance")...)
	case operator != corev1.TolerationOpExists:
		errs = append(errs, field.Required(path.Child("key"),
			"key is required with operator Equal; use operator Exists to tolerate every taint"))
	}
	if t.Value != "" && operator == corev1.TolerationOpExists {
		errs = append(errs,
			field.Forbidden(path.Child("value"), "operator Exists tolerates every value: remove value, or use operator Equal"))
	}
	if t.TolerationSeconds != nil {
		seconds := path.Child("tolerationSeconds")
		if *t.TolerationSeconds < 0 || *t.TolerationSeconds > 31536000 {
			errs = append(errs, field.Invalid(seconds, *t.TolerationSeconds,
				"tolerationSeconds must be from 0 to 31536000 (a year); leave it out to tolerate the taint forever"))
		}
		if t.Effect != "" && t.Effect != corev1.TaintEffectNoExecute {
			errs = append(errs, field.Forbidden(seconds, "tolerationSeconds may only be set with effect NoExecute: "+
				"remove it, or set the effect to NoExecute"))
		}
	}
	return errs
}

// action returns WhenUnsatisfiable, or its default.
func (c *TopologySpreadConstraint) action() UnsatisfiableAction {
	return cmp.Or(c.WhenUnsatisfiable, DoNotSchedule)
}

func (c *TopologySpreadConstraint) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		qualified(c.TopologyKey, path.Child("topologyKey"),
			"topologyKey must be the key of a label such as topology.kubernetes.io/region"),
		atLeast(cmp.Or(c.MaxSkew, 1), 1, path.Child("maxSkew"), "maxSkew must be 1 or more; leave it out for 1"),
		oneOf(c.action(), path.Child("whenUnsatisfiable"), DoNotSchedule, ScheduleAnyway),
	)
	if c.MinDomains != nil {
		minimum := path.Child("minDomains")
		errs = append(errs,
			atLeast(*c.MinDomains, 1, minimum, "minDomains must be 1 or more; leave it out for no minimum")...)
		if c.action() != DoNotSchedule {
			errs = append(errs, field.Forbidden(minimum,
				"minDomains may only be set with whenUnsatisfiable DoNotSchedule: remove it, or set whenUnsatisfiable to "+
					"DoNotSchedule"))
		}
	}
	return errs
}

func (c *GroupSpreadConstraint) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		qualified(c.Label, path.Child("label"), "label must be the key of a label such as example.com/provider"),
		atLeast(c.MinGroups, 0, path.Child("minGroups"), "minGroups must not be negative; leave it out for no minimum"),
		atLeast(c.MaxGroups, 0, path.Child("maxGroups"), "maxGroups must not be negative; leave it out for no maximum"),
	)
	if c.MaxGroups > 0 && c.MaxGroups < c.MinGroups {
		errs = append(errs, field.Invalid(path.Child("maxGroups"), c.MaxGroups,
			"maxGroups must not be less than minGroups; leave it out for no maximum"))
	}
	return errs
}

func (p *Prioritizer) validate(path *field.Path) field.ErrorList {
	errs := qualified(p.Plugin, path.Child("plugin"), "plugin must be a qualified name such as example.com/carbon")
	if p.Weight < 0 || p.Weight > 100 {
		errs = append(errs,
			field.Invalid(path.Child("weight"), p.Weight, "weight must be from 0 to 100; 0 disables the plugin"))
	}
	return errs
}

// exponent matches a quantity whose exponent is signed or has more than one digit. An unsigned exponent of one digit is
// harmless, and the cost budget of the API server for a rule does not allow a finer distinction. [ParseQuantity]
// describes the effects of large exponents.
var exponent = regexp.MustCompile(`[eE].\d`)

func validateResources(resources corev1.ResourceList, path *field.Path) field.ErrorList {
	if len(resources) > 16 {
		return field.ErrorList{field.TooMany(path, len(resources), 16)}
	}
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(resources)) {
		quantity, at := resources[name], path.Key(string(name))
		errs = append(errs,
			qualified(string(name), at, "resources must have qualified names such as cpu or nvidia.com/gpu")...)
		switch text := quantity.String(); {
		case quantity.Sign() < 0:
			errs = append(errs, field.Invalid(at, text,
				"resources must not be negative: set the amount of each resource that a cluster must have available"))
		case exponent.MatchString(text):
			errs = append(errs, field.Invalid(at, text, "resources must not have exponents that are signed or have more than "+
				"one digit: write a suffix such as m, k, M, G, Ki, Mi or Gi"))
		}
	}
	return errs
}

func validateAPI(kind *metav1.GroupVersionKind, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if kind.Group != "" && len(validation.IsDNS1123Subdomain(kind.Group)) > 0 {
		errs = append(errs, field.Invalid(path.Child("group"), kind.Group,
			"group must be the group of an API, such as apps, or empty for the core group"))
	}
	if len(validation.IsDNS1035Label(kind.Version)) > 0 {
		errs = append(errs, field.Invalid(path.Child("version"), kind.Version, "version must be the version of an API, "+
			"such as v1"))
	}
	if len(validation.IsDNS1035Label(strings.ToLower(kind.Kind))) > 0 {
		errs = append(errs, field.Invalid(path.Child("kind"), kind.Kind, "kind must be the kind of an API, such as "+
			"Deployment"))
	}
	return errs
}
