package v1alpha1

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Validate returns all errors of the spec, in the order of its fields, and no error if the spec is valid.
//
// Validate checks the rules of the CustomResourceDefinition, and rules that the API server cannot check: the rules of
// [workv1alpha1.WorkSpec.Validate] for manifests and options, the rules of [Overrides.Validate] and
// [RolloutStrategy.Validate], the syntax of label selectors, and the sizes of the parts and of the whole spec. An empty
// field that has a default is valid.
//
// Validate does not parse CEL expressions, JSONPaths and variables. The hub checks whether the placements, kinds,
// objects and revisions exist. Only the API server, which has the old and the new spec, can check that
// work.apply.fieldOwner does not change.
func (s *WorkSetSpec) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if len(s.Resources) == 0 && len(s.Manifests) == 0 {
		errs = append(errs, field.Invalid(spec, field.OmitValueType{},
			"resources or manifests is required; to remove all objects from the clusters, delete the WorkSet"))
	}
	if text, err := json.Marshal(s); err == nil && len(text) > MaxWorkSetSpecBytes {
		errs = append(errs, tooLong(spec, len(text), MaxWorkSetSpecBytes))
	}
	manifests, template := s.validateWork(spec)
	errs = slices.Concat(errs,
		validatePlacements(s.Placements, spec.Child("placements")),
		each(s.Resources, MaxSelectors, spec.Child("resources"), (*ResourceSelector).validate),
		manifests,
	)
	if s.Overrides != nil {
		errs = append(errs, s.Overrides.Validate(spec.Child("overrides"))...)
	}
	if s.Replicas != nil {
		errs = append(errs, s.Replicas.validate(spec.Child("replicas"))...)
	}
	approvals := spec.Child("approvals")
	errs = slices.Concat(errs,
		template,
		s.Rollout.Validate(spec.Child("rollout")),
		each(s.Approvals, 64, approvals, (*RolloutApproval).validate),
		unique(s.Approvals, approvals, func(a RolloutApproval) RolloutApproval { return a }),
		longest(s.Revision, 253, spec.Child("revision")),
	)
	if s.RevisionHistoryLimit != nil {
		errs = append(errs, between(*s.RevisionHistoryLimit, 0, 32, spec.Child("revisionHistoryLimit"))...)
	}
	return errs
}

// validateWork returns the errors of the manifests, and the errors of the template. It validates both as a Work.
func (s *WorkSetSpec) validateWork(spec *field.Path) (manifests, template field.ErrorList) {
	work := workv1alpha1.WorkSpec{
		Manifests: append([]workv1alpha1.Manifest{}, s.Manifests...), Apply: s.Work.Apply,
		ManifestOptions: s.Work.ManifestOptions,
		Waves:           s.Work.Waves, Delete: s.Work.Delete, Executor: s.Work.Executor,
	}
	at, bytes := spec.Child("manifests"), 0
	for i := range s.Manifests {
		bytes += encodedLength(&s.Manifests[i])
	}
	switch {
	case len(s.Manifests) > MaxInlineManifests:
		manifests = field.ErrorList{field.TooMany(at, len(s.Manifests), MaxInlineManifests)}
	case bytes > MaxInlineBytes:
		manifests = field.ErrorList{tooLong(at, bytes, MaxInlineBytes)}
	}
	if manifests != nil {
		work.Manifests = []workv1alpha1.Manifest{} // report no further errors of the manifests
	}
	if text, err := json.Marshal(work.ManifestOptions); err == nil && len(text) > workv1alpha1.MaxOptionBytes {
		template = field.ErrorList{tooLong(spec.Child("work", "manifestOptions"), len(text), workv1alpha1.MaxOptionBytes)}
		work.ManifestOptions = nil
	}
	for _, err := range work.Validate() {
		if strings.HasPrefix(err.Field, "spec.manifests") {
			manifests = append(manifests, err)
			continue
		}
		err.Field = "spec.work" + strings.TrimPrefix(err.Field, "spec")
		template = append(template, err)
	}
	return manifests, template
}

// encodedLength returns the size of a manifest in the stored WorkSet, in bytes.
func encodedLength(manifest *workv1alpha1.Manifest) int {
	if text, err := json.Marshal(manifest); err == nil {
		return len(text)
	}
	return len(manifest.Raw) // invalid JSON, which WorkSpec.Validate reports
}

func validatePlacements(placements []PlacementReference, path *field.Path) field.ErrorList {
	switch {
	case placements == nil:
		return field.ErrorList{field.Required(path, "name the placements whose clusters are to get the objects")}
	case len(placements) == 0:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"should have at least 1 items: name the placements whose clusters are to get the objects")}
	}
	return slices.Concat(
		each(placements, 16, path, func(p *PlacementReference, path *field.Path) field.ErrorList {
			if p.Name == "" {
				return field.ErrorList{field.Invalid(path.Child("name"), p.Name,
					"should be at least 1 chars long: it must be the name of a Placement")}
			}
			return longest(p.Name, 253, path.Child("name"))
		}),
		unique(placements, path, func(p PlacementReference) string { return p.Name }),
	)
}

func (s *ResourceSelector) validate(path *field.Path) field.ErrorList {
	group, version := form{253, validation.IsDNS1123Subdomain}, form{63, validation.IsDNS1035Label}
	kind := form{63, func(kind string) []string { return validation.IsDNS1035Label(strings.ToLower(kind)) }}
	name := form{253, content.IsPathSegmentName}
	var errs field.ErrorList
	switch {
	case s.Kind != EveryKind:
		errs = kind.check(s.Kind, path.Child("kind"), "kind must be the kind of an API, such as Deployment")
	case s.Group != "" || s.Version != "" || s.Name != "":
		errs = append(errs, field.Invalid(path.Child("kind"), s.Kind,
			"group, version and name must not be set in a selector for all kinds"))
	}
	for _, optional := range []struct {
		form
		name, value, message string
	}{
		{group, "group", s.Group, "group must be the group of an API, such as apps, or empty for the core group"},
		{version, "version", s.Version,
			"version must be the version of an API, such as v1, or empty for the preferred version of the hub"},
		{dnsLabel, "namespace", s.Namespace, "namespace must be the name of a namespace, or empty for the namespace of " +
			"the WorkSet"},
		{name, "name", s.Name, "name must be the name of an object, without / and %; use labelSelector for several objects"},
	} {
		if optional.value != "" {
			errs = append(errs, optional.check(optional.value, path.Child(optional.name), optional.message)...)
		}
	}
	if s.Name != "" && s.LabelSelector != nil {
		errs = append(errs,
			field.Forbidden(path.Child("labelSelector"), "name and labelSelector must not be set together: remove one of them"))
	}
	return append(errs, validateSelector(s.LabelSelector, path.Child("labelSelector"))...)
}

func (d *ReplicaDivision) validate(path *field.Path) field.ErrorList {
	weights := path.Child("weights")
	errs := oneOf(d.Strategy, path.Child("strategy"), DivisionDuplicated, DivisionStaticWeight, DivisionDynamicWeight,
		DivisionAggregated)
	switch {
	case len(d.Weights) == 0:
	case d.Strategy != DivisionStaticWeight:
		errs = append(errs, field.Forbidden(weights,
			"weights may only be set with strategy StaticWeight: remove them, or set the strategy to StaticWeight"))
	case !slices.ContainsFunc(d.Weights, func(w ClusterWeight) bool { return w.Weight > 0 }):
		errs = append(errs, field.Invalid(weights, field.OmitValueType{},
			"at least one weight must be greater than 0; remove all entries for equal shares"))
	}
	return slices.Concat(errs,
		each(d.Weights, 32, weights, func(w *ClusterWeight, path *field.Path) field.ErrorList {
			return append(w.Clusters.validate(path.Child("clusters")), between(w.Weight, 0, 1000000, path.Child("weight"))...)
		}),
		each(d.Objects, 16, path.Child("objects"), (*ObjectSelector).validate),
	)
}

func (a *RolloutApproval) validate(path *field.Path) field.ErrorList {
	errs := longest(a.Revision, 253, path.Child("revision"))
	if a.Revision == "" {
		errs = append(errs, field.Invalid(path.Child("revision"), a.Revision,
			"revision must be the name of a revision, as in status.revisions: an approval applies to one revision"))
	}
	return slices.Concat(errs,
		dnsLabel.check(a.Stage, path.Child("stage"),
			"stage must be the name of a stage: lower-case letters, digits and '-', starting and ending with a letter or digit"),
		oneOf(a.Gate, path.Child("gate"), GateBefore, GateAfter),
	)
}

// between checks that a value is in a range, with the messages of the CustomResourceDefinition.
func between(value, least, most int32, path *field.Path) field.ErrorList {
	switch {
	case value < least:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be greater than or equal to %d", least))}
	case value > most:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be less than or equal to %d", most))}
	}
	return nil
}

// tooLong returns the error for a part of a WorkSet that exceeds the maximum number of bytes.
func tooLong(path *field.Path, size, limit int) *field.Error {
	err := field.TooLong(path, "", limit)
	err.Detail = fmt.Sprintf("must have at most %d bytes as JSON, got %d: split the WorkSet into several", limit, size)
	return err
}
