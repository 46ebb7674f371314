package v1alpha1

import (
	"cmp"
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the spec, those of manifests first. Nil means that the spec is valid.
//
// Validate checks the rules of the CustomResourceDefinition and rules that the API server cannot check: the errors of
// [WorkSpec.Decode], and whether ignored fields can be ignored. Empty fields with a default are valid. Validate neither
// compiles CEL expressions and JSONPaths nor checks whether the member serves the kinds; the agent does. Only the API
// server can check that apply.fieldOwner does not change.
func (s *WorkSpec) Validate() field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if s.Manifests == nil {
		errs = append(errs, field.Required(path.Child("manifests"),
			"write an empty list if there is to be nothing on the member"))
	}
	_, manifestErrs := s.Decode()
	errs = append(errs, manifestErrs...)
	errs = append(errs, s.Apply.validate(path.Child("apply"))...)
	errs = append(errs, validateOptions(s.ManifestOptions, path.Child("manifestOptions"))...)
	errs = append(errs, inRange(cmp.Or(s.Waves.TimeoutSeconds, 600), 1, 86400, path.Child("waves", "timeoutSeconds"))...)
	errs = append(errs, s.Delete.validate(path.Child("delete"))...)
	if s.Executor != nil {
		errs = append(errs, s.Executor.validate(path.Child("executor"))...)
	}
	if ttl := s.TTLSecondsAfterCompletion; ttl != nil && *ttl < 0 {
		errs = append(errs, field.Invalid(path.Child("ttlSecondsAfterCompletion"), *ttl,
			"should be greater than or equal to 0; leave it out to keep the Work"))
	}
	return errs
}

func (a *ApplyPolicy) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		validateMode(a.Mode, path),
		validateTakeover(a.Takeover, path),
		validateDrift(a.Drift, path),
		validateRecreate(a.Recreate, path),
		validateAdditions(a.Additions, path),
		matches(fieldOwner, a.FieldOwner, path.Child("fieldOwner")),
	)
}

func (d *DeletePolicy) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		validateAction(d.Action, path.Child("action")),
		oneOf(d.Propagation, path.Child("propagation"), metav1.DeletePropagationForeground,
			metav1.DeletePropagationBackground),
	)
}

func (e *Executor) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		matches(dnsLabel, e.Namespace, path.Child("namespace")),
		matches(dnsSubdomain, e.Name, path.Child("name")),
	)
}

func validateOptions(options []ManifestOption, path *field.Path) field.ErrorList {
	text, err := json.Marshal(options)
	if err == nil && len(text) > MaxOptionBytes && len(options) <= 200 {
		return field.ErrorList{tooLong(path, len(text), MaxOptionBytes)}
	}
	return each(options, 200, path, (*ManifestOption).validate)
}

func (o *ManifestOption) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		o.Select.validate(path.Child("select")),
		validateMode(o.Mode, path),
		validateTakeover(o.Takeover, path),
		validateDrift(o.Drift, path),
		validateRecreate(o.Recreate, path),
		validateAdditions(o.Additions, path),
		validateAction(o.Delete, path.Child("delete")),
		each(o.IgnoredFields, 32, path.Child("ignoredFields"), validateIgnoredField),
		each(o.Feedback, 16, path.Child("feedback"), (*FeedbackRule).validate),
		unique(o.Feedback, path.Child("feedback"), func(r FeedbackRule) string { return r.Name }),
	)
	if o.Readiness != nil {
		errs = append(errs, length(o.Readiness.CEL, 1, 2048, path.Child("readiness", "cel"))...)
	}
	if o.Wave != nil {
		errs = append(errs, inRange(*o.Wave, -100, 100, path.Child("wave"))...)
	}
	return errs
}

func (s *ManifestSelector) validate(path *field.Path) field.ErrorList {
	if *s != (ManifestSelector{}) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, "", "should have at least 1 properties: name a group, kind, namespace or "+
		"name; what is true of all manifests goes into apply")}
}

func (r *FeedbackRule) validate(path *field.Path) field.ErrorList {
	return slices.Concat(
		matches(feedbackName, r.Name, path.Child("name")),
		length(r.JSONPath, 1, 512, path.Child("jsonPath")),
	)
}

// validateIgnoredField validates the syntax of an ignored field. It rejects fields that identify the object, and the
// status, which is never applied.
func validateIgnoredField(text *string, at *field.Path) field.ErrorList {
	if errs := length(*text, 2, 512, at); len(errs) > 0 {
		return errs
	}
	path, err := ParseFieldPath(*text)
	if err != nil {
		return field.ErrorList{field.Invalid(at, *text, err.Error())}
	}
	var root, metadata FieldPath
	metadata = root.Field("metadata")
	switch {
	case path[0].kind != fieldElement:
		return field.ErrorList{field.Invalid(at, *text, "an object is a map: begin with a field, such as .spec")}
	case path.Equal(metadata), path.HasPrefix(metadata.with(element{kind: anyElement})),
		path.HasPrefix(root.Field("apiVersion")), path.HasPrefix(root.Field("kind")),
		path.HasPrefix(metadata.Field("name")), path.HasPrefix(metadata.Field("namespace")):
		return field.ErrorList{field.Invalid(at, *text, "apiVersion, kind, metadata.name and metadata.namespace make the "+
			"object and cannot be ignored; name the fields of metadata that are meant, such as .metadata.annotations")}
	case path.HasPrefix(root.Field("status")):
		return field.ErrorList{field.Invalid(at, *text, "the status is never applied: remove it")}
	}
	return nil
}
