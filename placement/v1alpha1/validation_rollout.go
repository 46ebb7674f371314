package v1alpha1

import (
	"cmp"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the strategy, in the order of its fields, and no error if the strategy is valid. The
// path is the path of the strategy in the object that contains it. It may be nil. An empty field that has a default is
// valid.
func (s *RolloutStrategy) Validate(path *field.Path) field.ErrorList {
	kind := cmp.Or(s.Type, RolloutAll)
	errs := oneOf(kind, path.Child("type"), RolloutAll, RolloutProgressive, RolloutProgressivePerGroup, RolloutStages)
	if s.MaxConcurrency != nil && kind == RolloutAll {
		errs = append(errs, field.Forbidden(path.Child("maxConcurrency"),
			"type All updates all clusters at once: remove maxConcurrency, or set the type to Progressive"))
	}
	errs = slices.Concat(errs,
		validateShare(s.MaxConcurrency, 1, path.Child("maxConcurrency"),
			"maxConcurrency must be a number from 1, or a percentage from 1% to 100%"),
		validateSeconds(s.MinSuccessSeconds, 0, path.Child("minSuccessSeconds"),
			"minSuccessSeconds must be from 0 to 31536000 (a year)"),
		validateSeconds(cmp.Or(s.ProgressDeadlineSeconds, 600), 1, path.Child("progressDeadlineSeconds"),
			"progressDeadlineSeconds must be from 1 to 31536000 (a year)"),
		validateShare(s.MaxFailures, 0, path.Child("maxFailures"),
			"maxFailures must be a number from 0, or a percentage from 0% to 100%"),
		oneOf(cmp.Or(s.OnFailure, FailureHalt), path.Child("onFailure"), FailureHalt, FailureRollBack),
		oneOf(cmp.Or(s.State, RolloutRun), path.Child("state"), RolloutRun, RolloutPause, RolloutStop),
	)

	groups, stages := path.Child("mandatoryGroups"), path.Child("stages")
	if len(s.MandatoryGroups) > 0 && kind != RolloutProgressivePerGroup {
		errs = append(errs, field.Forbidden(groups,
			"mandatoryGroups may only be set with type ProgressivePerGroup: remove it, or set the type to ProgressivePerGroup"))
	}
	errs = append(errs, each(s.MandatoryGroups, 32, groups, (*DecisionGroupReference).validate)...)
	switch {
	case len(s.Stages) > 0 && kind != RolloutStages:
		errs = append(errs,
			field.Forbidden(stages, "stages may only be set with type Stages: remove it, or set the type to Stages"))
	case len(s.Stages) == 0 && kind == RolloutStages:
		errs = append(errs,
			field.Required(stages, "stages is required with type Stages; use type Progressive for a rollout without them"))
	}
	return slices.Concat(errs,
		each(s.Stages, 32, stages, (*RolloutStage).validate),
		unique(s.Stages, stages, func(s RolloutStage) string { return s.Name }),
	)
}

func (r *DecisionGroupReference) validate(path *field.Path) field.ErrorList {
	errs := longest(r.Name, 63, path.Child("name"))
	if (r.Name != "") == (r.Index != nil) {
		errs = append(errs, field.Invalid(path, r, "a group must be named by either name or index"))
	}
	if r.Index != nil {
		errs = append(errs, atLeast(*r.Index, 0, path.Child("index"), "index must not be negative")...)
	}
	return errs
}

func (s *RolloutStage) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		dnsLabel.check(s.Name, path.Child("name"), "the name of a stage must be a DNS label: lower-case letters, "+
			"digits and '-', starting and ending with a letter or digit"),
		validateSelector(s.Selector, path.Child("selector")),
	)
	if s.OrderBy != "" {
		errs = append(errs, qualified(s.OrderBy, path.Child("orderBy"),
			"orderBy must be the key of a label such as example.com/rollout-order")...)
	}
	const wait = "waitSeconds must be from 0 to 31536000 (a year)"
	return slices.Concat(errs,
		validateShare(s.MaxConcurrency, 1, path.Child("maxConcurrency"),
			"maxConcurrency must be a number from 1, or a percentage from 1% to 100%"),
		validateSeconds(s.Before.WaitSeconds, 0, path.Child("before", "waitSeconds"), wait),
		validateSeconds(s.After.WaitSeconds, 0, path.Child("after", "waitSeconds"), wait),
	)
}

var percentage = regexp.MustCompile(`^([1-9]?[0-9]|100)%$`)

// validateShare checks a number, which must be at least least, or a percentage, which must not be 0% if least is
// positive.
func validateShare(share *intstr.IntOrString, least int32, path *field.Path, message string) field.ErrorList {
	switch {
	case share == nil:
		return nil
	case share.Type == intstr.Int:
		return atLeast(share.IntVal, least, path, message)
	case !percentage.MatchString(share.StrVal) || least > 0 && share.StrVal == "0%":
		return field.ErrorList{field.Invalid(path, share.StrVal, message)}
	}
	return nil
}

func validateSeconds(seconds, least int32, path *field.Path, message string) field.ErrorList {
	if seconds >= least && seconds <= 31536000 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, seconds, message)}
}
