package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// Resources of this group that are configurations.
const (
	configResource   = "addonconfigs"
	templateResource = "addontemplates"
)

// Validate returns all errors of the spec in the order of its fields. An empty list means that the spec is valid.
//
// Validate checks the rules of the CustomResourceDefinition and the rules that the API server cannot check: those of
// [placementv1alpha1.RolloutStrategy.Validate], and the length of the whole spec. An empty field that has a default is
// valid. The hub checks whether the placements, members, kinds and objects exist.
func (s *AddonSpec) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	configs, install := spec.Child("configs"), spec.Child("install")
	errs := slices.Concat(
		shorter(s, MaxAddonSpecBytes, spec),
		longest(s.DisplayName, 128, spec.Child("displayName")),
		longest(s.Description, 1024, spec.Child("description")),
		optional(namespaceName, s.InstallNamespace, spec.Child("installNamespace")),
		each(
			s.HostingMembers,
			64,
			spec.Child("hostingMembers"),
			func(name *string, path *field.Path) field.ErrorList { return memberName.check(*name, path) },
		),
		unique(s.HostingMembers, spec.Child("hostingMembers"), func(name string) string { return name }),
		each(s.Configs, 16, configs, (*ConfigKind).validate),
		unique(s.Configs, configs, func(k ConfigKind) [2]string { return [2]string{k.Group, k.Resource} }),
		s.Install.validate(install),
	)
	for i := range s.Install.Placements {
		errs = append(errs, s.admits(&s.Install.Placements[i], install.Child("placements").Index(i))...)
	}
	removal := between(cmp.Or(s.Removal.DeadlineSeconds, 900), 10, 86400, spec.Child("removal", "deadlineSeconds"))
	return slices.Concat(errs, s.Health.validate(spec.Child("health")), removal)
}

// admits checks that the add-on supports the configs and the hosting member of a placement.
func (s *AddonSpec) admits(p *PlacementInstall, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, config := range p.Configs {
		if !slices.ContainsFunc(
			s.Configs,
			func(k ConfigKind) bool { return k.Group == config.Group && k.Resource == config.Resource },
		) {
			errs = append(
				errs,
				field.Invalid(
					path.Child("configs").Index(i),
					config.Resource,
					"the kinds of all configs must be among spec.configs: add the kind there, or remove the config",
				),
			)
		}
	}
	if p.HostingMember != "" && len(p.HostingMember) <= 63 && !slices.Contains(s.HostingMembers, p.HostingMember) {
		errs = append(errs, field.Invalid(path.Child("hostingMember"), p.HostingMember, "each hostingMember must be "+
			"among spec.hostingMembers: add it there, or remove it"))
	}
	return errs
}

func (k *ConfigKind) validate(path *field.Path) field.ErrorList {
	defaults := path.Child("defaults")
	errs := slices.Concat(
		optional(apiGroup, k.Group, path.Child("group")),
		resourceName.check(k.Resource, path.Child("resource")),
		each(k.Defaults, 8, defaults, (*ObjectName).validate),
	)
	for i := range k.Defaults {
		errs = append(errs, scoped(k.Group, k.Resource, k.Defaults[i].Namespace, defaults.Index(i).Child("namespace"))...)
	}
	if k.Group == GroupName && k.Resource == templateResource && len(k.Defaults) > 1 {
		errs = append(errs, oneTemplate(defaults))
	}
	return errs
}

func (n *ObjectName) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		optional(objectNamespace, n.Namespace, path.Child("namespace")),
		objectName.check(n.Name, path.Child("name")),
	)
}

// validateConfigs checks the configurations of a placement or a member.
func validateConfigs(configs []ConfigReference, path *field.Path) field.ErrorList {
	errs := each(configs, 32, path, (*ConfigReference).validate)
	templates := 0
	for _, config := range configs {
		if config.Group == GroupName && config.Resource == templateResource {
			templates++
		}
	}
	if templates > 1 {
		errs = append(errs, oneTemplate(path))
	}
	return errs
}

func (r *ConfigReference) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		optional(apiGroup, r.Group, path.Child("group")),
		resourceName.check(r.Resource, path.Child("resource")),
		r.ObjectName.validate(path),
		scoped(r.Group, r.Resource, r.Namespace, path.Child("namespace")),
	)
}

// scoped checks the namespace of a reference to a kind with a known scope.
func scoped(group, resource, namespace string, path *field.Path) field.ErrorList {
	switch {
	case group != GroupName:
	case resource == configResource && namespace == "":
		return field.ErrorList{field.Required(path, "namespace is required for an AddonConfig")}
	case resource == templateResource && namespace != "":
		return field.ErrorList{field.Forbidden(path, "namespace must not be set for an AddonTemplate, which is "+
			"cluster-scoped")}
	}
	return nil
}

func oneTemplate(path *field.Path) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, "an add-on must have at most one AddonTemplate: remove the others")
}

func (s *InstallStrategy) validate(path *field.Path) field.ErrorList {
	kind, placements := cmp.Or(s.Type, InstallManual), path.Child("placements")
	errs := oneOf(kind, path.Child("type"), InstallManual, InstallPlacements)
	switch {
	case len(s.Placements) > 0 && kind != InstallPlacements:
		errs = append(errs, field.Forbidden(placements, "placements may only be set with type Placements: remove them, or "+
			"set "+
			"the type to Placements"))
	case len(s.Placements) == 0 && kind == InstallPlacements:
		errs = append(errs, field.Required(placements, "placements is required with type Placements: name one, or set "+
			"the type to Manual, which installs the add-on on no member"))
	}
	return slices.Concat(
		errs,
		each(s.Placements, 16, placements, (*PlacementInstall).validate),
		unique(
			s.Placements,
			placements,
			func(p PlacementInstall) ObjectName { return ObjectName{Namespace: p.Namespace, Name: p.Name} },
		),
	)
}

func (p *PlacementInstall) validate(path *field.Path) field.ErrorList {
	rollout, approvals := path.Child("rollout"), path.Child("approvals")
	errs := slices.Concat(
		optional(placementNamespace, p.Namespace, path.Child("namespace")),
		placementName.check(p.Name, path.Child("name")),
		validateConfigs(p.Configs, path.Child("configs")),
		// other rules are those of hostingMembers, which must contain it
		longest(p.HostingMember, 63, path.Child("hostingMember")),
		p.Rollout.Validate(rollout),
	)
	if p.Rollout.OnFailure == placementv1alpha1.FailureRollBack {
		errs = append(errs, field.Forbidden(rollout.Child("onFailure"), "the rollout of an add-on cannot be rolled "+
			"back, because earlier configurations are not kept: use Halt, and change the configuration back"))
	}
	return slices.Concat(
		errs,
		each(p.Approvals, 64, approvals, validateApproval),
		unique(
			p.Approvals,
			approvals,
			func(a placementv1alpha1.RolloutApproval) placementv1alpha1.RolloutApproval { return a },
		),
	)
}

func validateApproval(a *placementv1alpha1.RolloutApproval, path *field.Path) field.ErrorList {
	errs := longest(a.Revision, 253, path.Child("revision"))
	if a.Revision == "" {
		errs = append(errs, field.Invalid(path.Child("revision"), a.Revision, "revision must be the revision of the "+
			"rollout, as in status.placements: an approval applies to one revision"))
	}
	return slices.Concat(errs,
		stageName.check(a.Stage, path.Child("stage")),
		oneOf(a.Gate, path.Child("gate"), placementv1alpha1.GateBefore, placementv1alpha1.GateAfter),
	)
}

func (h *HealthCheck) validate(path *field.Path) field.ErrorList {
	kind := cmp.Or(h.Type, HealthWorks)
	errs := oneOf(kind, path.Child("type"), HealthWorks, HealthWorkloads, HealthLease, HealthCustom, HealthNone)
	if h.LeaseDurationSeconds == nil {
		return errs
	}
	seconds := path.Child("leaseDurationSeconds")
	if kind != HealthLease {
		errs = append(errs, field.Forbidden(seconds, "leaseDurationSeconds may only be set with type Lease: remove it, or "+
			"set the type to Lease"))
	}
	return append(errs, between(*h.LeaseDurationSeconds, 5, 86400, seconds)...)
}

// Validate returns all errors of the spec in the order of its fields. An empty list means that the spec is valid.
// Validate checks the rules of the CustomResourceDefinition. The hub checks whether the add-on supports the
// configurations and the hosting member.
func (s *MemberAddonSpec) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	errs := slices.Concat(
		optional(namespaceName, s.InstallNamespace, spec.Child("installNamespace")),
		validateConfigs(s.Configs, spec.Child("configs")),
		optional(memberName, s.HostingMember, spec.Child("hostingMember")),
	)
	if s.RemovalDeadlineSeconds != nil {
		errs = append(errs, between(*s.RemovalDeadlineSeconds, 0, 86400, spec.Child("removalDeadlineSeconds"))...)
	}
	return errs
}

// shorter checks the length of a spec in its stored form.
func shorter(spec any, limit int, path *field.Path) field.ErrorList {
	text, err := json.Marshal(spec)
	if err != nil || len(text) <= limit {
		return nil // a value that cannot be encoded as JSON is reported as an error of its field
	}
	return field.ErrorList{tooLong(path, len(text), limit)}
}

func tooLong(path *field.Path, size, limit int) *field.Error {
	err := field.TooLong(path, "", limit)
	err.Detail = fmt.Sprintf("must be at most %[2]d bytes long as JSON, got %[1]d", size, limit)
	return err
}
