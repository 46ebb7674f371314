package v1alpha1

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// each validates every entry of a list. If the list is longer than the limit, it returns that error only.
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

// unique returns an error for each entry of a list with the same key as an earlier entry.
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

func oneOf[T ~string](value T, path *field.Path, supported ...T) field.ErrorList {
	if slices.Contains(supported, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, supported)}
}

func atLeast[T cmp.Ordered](value, least T, path *field.Path, message string) field.ErrorList {
	if value >= least {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, message)}
}

// longest limits the length of a string in characters, not in bytes, as the API server does.
func longest(value string, limit int, path *field.Path) field.ErrorList {
	if utf8.RuneCountInString(value) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, value, limit)}
}

// form defines the valid strings of a field: the maximum length in characters, and a function that returns the syntax
// errors.
type form struct {
	limit int
	wrong func(string) []string
}

var (
	qualifiedName = form{317, validation.IsQualifiedName}
	dnsLabel      = form{63, validation.IsDNS1123Label}
	labelValue    = form{63, validation.IsValidLabelValue}
)

func (f form) check(value string, path *field.Path, message string) field.ErrorList {
	if errs := longest(value, f.limit, path); len(errs) > 0 {
		return errs
	}
	if len(f.wrong(value)) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, message)}
}

// qualified checks a qualified name such as example.com/name. The message is the beginning of the error text and names
// the field.
func qualified(name string, path *field.Path, message string) field.ErrorList {
	return qualifiedName.check(name, path,
		message+": an optional DNS prefix and a slash, then up to 63 letters, digits, '-', '_' or '.'")
}
