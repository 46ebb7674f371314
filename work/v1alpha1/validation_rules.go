package v1alpha1

import (
	"fmt"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateMode(mode ApplyMode, path *field.Path) field.ErrorList {
	return oneOf(mode, path.Child("mode"), ServerSideApply, CreateOnly, Observe, ReportDiff)
}

func validateTakeover(takeover Takeover, path *field.Path) field.ErrorList {
	return oneOf(takeover, path.Child("takeover"), TakeoverNever, TakeoverIfNoDiff, TakeoverAlways)
}

func validateRecreate(policy RecreatePolicy, path *field.Path) field.ErrorList {
	return oneOf(policy, path.Child("recreate"), RecreateNever, RecreateIfImmutable)
}

func validateDrift(drift DriftPolicy, path *field.Path) field.ErrorList {
	return oneOf(drift, path.Child("drift"), DriftCorrect, DriftReport, DriftIgnore)
}

func validateAdditions(policy AdditionPolicy, path *field.Path) field.ErrorList {
	return oneOf(policy, path.Child("additions"), AdditionsKeep, AdditionsReport, AdditionsRemove)
}

func validateAction(action DeleteAction, path *field.Path) field.ErrorList {
	return oneOf(action, path, DeleteObject, OrphanObject)
}

// each checks every entry of a list, unless the list exceeds its limit.
func each[T any](list []T, limit int, path *field.Path, check func(*T, *field.Path) field.ErrorList) field.ErrorList {
	if len(list) > limit {
		return field.ErrorList{field.TooMany(path, len(list), limit)}
	}
	var errs field.ErrorList
	for i := range list {
		errs = append(errs, check(&list[i], path.Index(i))...)
	}
	return errs
}

// unique returns an error for each entry of a list that repeats the key of an earlier entry.
func unique[T any, K comparable](list []T, path *field.Path, key func(T) K) field.ErrorList {
	var errs field.ErrorList
	seen := make(map[K]bool, len(list))
	for i := range list {
		k := key(list[i])
		if seen[k] {
			errs = append(errs, field.Duplicate(path.Index(i), k))
		}
		seen[k] = true
	}
	return errs
}

// oneOf checks that a value is supported. An empty value means the default and is valid.
func oneOf[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	if value == "" || slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func inRange(value, least, most int32, path *field.Path) field.ErrorList {
	switch {
	case value < least:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be greater than or equal to %d", least))}
	case value > most:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be less than or equal to %d", most))}
	}
	return nil
}

// length checks the length of a string in characters, as the API server does, and not in bytes.
func length(value string, least, most int, path *field.Path) field.ErrorList {
	switch n := utf8.RuneCountInString(value); {
	case n < least:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be at least %d chars long", least))}
	case n > most:
		return field.ErrorList{field.TooLong(path, value, most)}
	}
	return nil
}

// tooLong returns the error of a list that exceeds its size limit, in bytes of JSON.
func tooLong(path *field.Path, size, limit int) *field.Error {
	err := field.TooLong(path, "", limit)
	err.Detail = fmt.Sprintf("must have at most %d bytes as JSON, got %d: split the Work into several", limit, size)
	return err
}

// form is the syntax of a string, with the pattern of the CustomResourceDefinition and a message that explains it.
type form struct {
	pattern *regexp.Regexp
	limit   int
	message string
}

var (
	dnsLabel = form{
		regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`), 63,
		"must be a DNS label: lower-case letters, digits and '-', with a letter or digit at either end",
	}
	dnsSubdomain = form{
		regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`), 253,
		"must be a DNS name: lower-case letters, digits, '-' and '.', with a letter or digit at either end of each part",
	}
	feedbackName = form{
		regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`), 63,
		"must be letters, digits, '-', '_' or '.', with a letter or digit at either end",
	}
	fieldOwner = form{
		regexp.MustCompile(`^([!-~]([ -~]*[!-~])?)?$`), 128,
		"must be printable ASCII characters, without a space at either end",
	}
)

func matches(f form, value string, path *field.Path) field.ErrorList {
	if errs := length(value, 0, f.limit, path); len(errs) > 0 {
		return errs
	}
	if f.pattern.MatchString(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, f.message)}
}
