package v1alpha1

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

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

// unique reports the entries of a list that repeat the key of an earlier entry.
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

// between checks the range of a number, with the messages of the CustomResourceDefinition.
func between(value, least, most int32, path *field.Path) field.ErrorList {
	switch {
	case value < least:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be greater than or equal to %d", least))}
	case value > most:
		return field.ErrorList{field.Invalid(path, value, fmt.Sprintf("should be less than or equal to %d", most))}
	}
	return nil
}

// longest checks the maximum length of a string in characters, as the API server does.
func longest(value string, limit int, path *field.Path) field.ErrorList {
	if utf8.RuneCountInString(value) <= limit {
		return nil
	}
	return field.ErrorList{field.TooLong(path, value, limit)}
}

// form is the syntax of a string and the message for an invalid one.
type form struct {
	limit   int
	right   func(string) bool
	message string
}

// free returns a function that reports whether a check of apimachinery returns no errors.
func free(complaints func(string) []string) func(string) bool {
	return func(value string) bool { return len(complaints(value)) == 0 }
}

func matching(pattern string) func(string) bool { return regexp.MustCompile(pattern).MatchString }

// image is a registry, or a repository in a registry. The host can have capital letters and a port.
const image = `^([A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?|[[][0-9A-Fa-f:]+[]])(:[0-9]{1,` +
	`5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`

const ofLabels = ": lower-case letters, digits and '-', starting and ending with a letter or digit"

var (
	dnsLabel = free(validation.IsDNS1123Label)
	segment  = free(content.IsPathSegmentName)

	namespaceName   = form{63, dnsLabel, "installNamespace must be the name of a namespace" + ofLabels}
	memberName      = form{63, dnsLabel, "the name of a member must be a DNS label" + ofLabels}
	stageName       = form{63, dnsLabel, "stage must be the name of a stage" + ofLabels}
	containerName   = form{63, dnsLabel, "container must be the name of a container" + ofLabels}
	objectNamespace = form{63, dnsLabel, "namespace must be the name of a namespace, or empty for a cluster-scoped " +
		"kind"}
	placementNamespace = form{63, dnsLabel, "namespace must be the namespace of a Placement, or empty for a " +
		"ClusterPlacement"}
	objectName    = form{253, present(segment), "name must be the name of an object, without / and %"}
	placementName = form{253, present(segment), "name must be the name of a Placement"}
	apiGroup      = form{253, free(validation.IsDNS1123Subdomain), "group must be the group of an API, such as " +
		"addon.muster.dev, or empty for the core group"}
	resourceName = form{63, free(validation.IsDNS1035Label), "resource must be the plural name of a kind in " +
		"lower-case letters, such as addonconfigs"}
	secretName = form{253, free(validation.IsDNS1123Subdomain), "secretName must be a DNS name: lower-case " +
		"letters, digits, '-' and '.', with a letter or digit at either end of each part"}

	variableName = form{128, matching(`^[A-Za-z_][A-Za-z0-9_]*$`), "the name of a variable must be letters, digits " +
		"and '_', and not begin with a digit"}
	sourceImage = form{512, matching(image), "source must be a registry, or a repository in one, such as " +
		"quay.io/example: without https://, tag or / at its end"}
	mirrorImage = form{512, matching(image), "mirror must be a registry, or a repository in one, such as " +
		"mirror.example.com/quay: without https://, tag or / at its end"}
	httpProxy = form{1024, matching(`^[!-~]*$`), "http must be the URL of a proxy, such as " +
		"http://proxy.example.com:3128: it has no spaces"}
	httpsProxy = form{1024, matching(`^[!-~]*$`), "https must be the URL of a proxy, such as " +
		"http://proxy.example.com:3128: it has no spaces"}
	noProxy = form{4096, matching(`^[ -~]*$`), "noProxy must be names of hosts and networks with commas " +
		"between them, such as .svc,10.0.0.0/8"}
	workload = form{
		320, matching(`^([A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?|[*])/([a-z0-9]([-a-z0-9.]*[a-z0-9])?|[*])$`),
		"workload must be the kind and the name of a workload, such as Deployment/web, DaemonSet/* or */web",
	}
	// The forms check the length.
	taintKey = form{math.MaxInt, free(validation.IsQualifiedName), "key must be a qualified name such as " +
		"example.com/maintenance"}
	taintValue = form{math.MaxInt, free(validation.IsValidLabelValue), "value must be up to 63 letters, digits, " +
		"'-', '_' or '.', starting and ending with a letter or digit"}
)

func present(right func(string) bool) func(string) bool {
	return func(value string) bool { return value != "" && right(value) }
}

func (f form) check(value string, path *field.Path) field.ErrorList {
	if errs := longest(value, f.limit, path); len(errs) > 0 {
		return errs
	}
	if f.right(value) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value, f.message)}
}

// optional checks a string that may be empty.
func optional(f form, value string, path *field.Path) field.ErrorList {
	if value == "" {
		return nil
	}
	return f.check(value, path)
}
