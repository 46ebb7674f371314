package v1alpha1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Validate returns all errors of the spec in the order of its fields. An empty list means that the spec is valid.
//
// Validate checks the rules of the CustomResourceDefinition and the rules that the API server cannot check: those of
// [workv1alpha1.WorkSpec.Validate] for manifests and options, the syntax of variables, the values of annotations, that
// each hook terminates, and the lengths of the parts and of the whole spec. Validate replaces each variable by a
// distinct value that is valid everywhere. The controller that renders the template checks the manifests with real
// values and whether the variables exist.
func (s *AddonTemplateSpec) Validate() field.ErrorList {
	spec := field.NewPath("spec")
	manifests, rest := s.validateWork(spec)
	errs := slices.Concat(
		shorter(s, MaxTemplateSpecBytes, spec),
		longest(s.Version, 128, spec.Child("version")),
		manifests,
	)
	owner := spec.Child("apply", "fieldOwner")
	if s.Apply.FieldOwner != "" &&
		!slices.ContainsFunc(rest, func(err *field.Error) bool { return err.Field == owner.String() }) {
		errs = append(errs, field.Forbidden(owner, "fieldOwner must not be set in a template, because it could not differ "+
			"between templates"))
	}
	errs = append(errs, rest...)
	if s.Registration != nil {
		errs = append(errs, s.Registration.validate(spec.Child("registration"))...)
	}
	return errs
}

// validateWork validates the manifests and the other parts by means of a Work.
func (s *AddonTemplateSpec) validateWork(spec *field.Path) (manifests, rest field.ErrorList) {
	at, options := spec.Child("manifests"), spec.Child("manifestOptions")
	work := workv1alpha1.WorkSpec{Apply: s.Apply, ManifestOptions: s.ManifestOptions, Waves: s.Waves, Executor: s.Executor}
	size := storedBytes(s.Manifests)
	switch {
	case len(s.Manifests) > MaxTemplateManifests:
		work.Manifests = []workv1alpha1.Manifest{} // further errors would be repetitions
		manifests = field.ErrorList{field.TooMany(at, len(s.Manifests), MaxTemplateManifests)}
	case size > MaxTemplateBytes:
		work.Manifests = []workv1alpha1.Manifest{}
		manifests = field.ErrorList{tooLong(at, size, MaxTemplateBytes)}
	default:
		work.Manifests, manifests = withValues(s.Manifests, at)
	}
	if text, err := json.Marshal(s.ManifestOptions); err == nil && len(text) > workv1alpha1.MaxOptionBytes {
		rest = field.ErrorList{tooLong(options, len(text), workv1alpha1.MaxOptionBytes)}
		work.ManifestOptions = nil
	}
	for i := range work.ManifestOptions {
		names, selector := &work.ManifestOptions[i].Select, options.Index(i).Child("select")
		_, wrong := filled(names.Namespace, selector.Child("namespace"))
		_, more := filled(names.Name, selector.Child("name"))
		rest = slices.Concat(rest, wrong, more)
	}
	for _, err := range work.Validate() {
		switch {
		case !strings.HasPrefix(err.Field, at.String()):
			rest = append(rest, err)
		// other too-long errors are caused by the replaced values
		case err.Field != at.String() || err.Type != field.ErrorTypeTooLong:
			manifests = append(manifests, err)
		}
	}
	decoded, _ := work.Decode()
	for i := range decoded {
		if object := decoded[i].Object; object != nil {
			manifests = append(manifests, validateAnnotations(object, at.Index(i))...)
		}
	}
	return manifests, rest
}

// validateAnnotations checks the annotations that muster interprets and their effect on the object.
func validateAnnotations(object *unstructured.Unstructured, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, annotation := range []struct {
		name      string
		supported []string
	}{
		{PreDeleteAnnotation, []string{"true", "false"}},
		{ScopeAnnotation, []string{ScopeCluster, ScopeNamespaced}},
		{LocationAnnotation, []string{LocationMember, LocationHosting}},
	} {
		if value, found := object.GetAnnotations()[annotation.name]; found {
			errs = append(
				errs,
				oneOf(value, path.Child("metadata", "annotations").Key(annotation.name), annotation.supported...)...)
		}
	}
	if object.GetAnnotations()[PreDeleteAnnotation] != "true" {
		return errs
	}
	switch object.GroupVersionKind().GroupKind() {
	case schema.GroupKind{Group: "batch", Kind: "Job"}:
	case schema.GroupKind{Kind: "Pod"}:
		if policy, _, _ := unstructured.NestedString(
			object.Object,
			"spec",
			"restartPolicy",
		); policy != "Never" &&
			policy != "OnFailure" {
			errs = append(errs,
				field.Invalid(path.Child("spec", "restartPolicy"), policy, "an object that runs before the removal "+
					"must come to an end, and this would always start again: set it to Never or OnFailure"))
		}
	default:
		errs = append(errs,
			field.Invalid(path.Child("kind"), object.GetKind(), "an object that runs before the removal must be "+
				"a Job or a Pod: nothing else runs to an end"))
	}
	return errs
}

func (r *TemplateRegistration) validate(path *field.Path) field.ErrorList {
	errs := oneOf(
		cmp.Or(r.Credential, RegistrationToken),
		path.Child("credential"),
		RegistrationToken,
		RegistrationCertificate,
	)
	if r.ExpirationSeconds != nil {
		errs = append(errs, between(*r.ExpirationSeconds, 600, 31536000, path.Child("expirationSeconds"))...)
	}
	return slices.Concat(errs,
		each(r.Rules, 32, path.Child("rules"), validatePolicyRule),
		optional(secretName, r.SecretName, path.Child("secretName")),
	)
}

func validatePolicyRule(r *rbacv1.PolicyRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, list := range []struct {
		name, missing string
		values        []string
	}{
		{"verbs", "verbs is required: a rule without them grants nothing", r.Verbs},
		{"apiGroups", "apiGroups is required; the core group is an empty string", r.APIGroups},
		{"resources", "resources is required: name at least one resource", r.Resources},
	} {
		if len(list.values) == 0 {
			errs = append(errs, field.Required(path.Child(list.name), list.missing))
		}
	}
	if len(r.NonResourceURLs) > 0 {
		errs = append(errs, field.Forbidden(path.Child("nonResourceURLs"), "nonResourceURLs must not be set in the rules "+
			"of a namespace: remove them"))
	}
	return errs
}

// storedBytes returns the length of the manifests in their stored form.
func storedBytes(manifests []TemplateManifest) int {
	size := 0
	for i := range manifests {
		raw, _ := manifests[i].MarshalJSON() // an encoding error is reported elsewhere
		size += workv1alpha1.StoredBytes(raw)
	}
	return size
}

// withValues replaces each variable by a value that can be part of any name. Manifests that cannot be parsed are
// skipped; other checks report them.
func withValues(manifests []TemplateManifest, path *field.Path) ([]workv1alpha1.Manifest, field.ErrorList) {
	if manifests == nil {
		return nil, nil
	}
	var errs field.ErrorList
	out := make([]workv1alpha1.Manifest, len(manifests))
	for i := range out {
		out[i].RawExtension = manifests[i].RawExtension
		raw, err := out[i].MarshalJSON()
		if err != nil || !strings.Contains(string(raw), "${") {
			continue
		}
		var content map[string]any
		if utiljson.Unmarshal(raw, &content) != nil {
			continue
		}
		value, wrong := filled(content, path.Index(i))
		errs = append(errs, wrong...)
		if raw, err = json.Marshal(value); err == nil {
			out[i].RawExtension = runtime.RawExtension{Raw: raw}
		}
	}
	return out, errs
}

// start matches the beginning of a variable or, with an even number of $, a literal that looks like a variable.
var start = regexp.MustCompile(`\$+\{([A-Za-z_][A-Za-z0-9_]*\})?`)

// filled returns the value with variables replaced in its strings, except in field names. It may modify the value.
func filled(value any, path *field.Path) (any, field.ErrorList) {
	var errs, wrong field.ErrorList
	switch value := value.(type) {
	case string:
		text := start.ReplaceAllStringFunc(value, func(found string) string {
			dollars := strings.IndexByte(found, '{')
			kept, name := found[:dollars/2], found[dollars:]
			switch {
			case dollars%2 == 0:
				return kept + name
			case name == "{":
				errs = field.ErrorList{field.Invalid(path, field.OmitValueType{}, "a variable is ${NAME}, of letters, "+
					"digits and '_', not beginning with a digit; as text ${ is $${")}
			}
			hash := fnv.New32a()
			_, _ = hash.Write([]byte(name)) // never fails
			return fmt.Sprintf("%sv%08x", kept, hash.Sum32())
		})
		return text, errs
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			value[name], wrong = filled(value[name], path.Child(name))
			errs = append(errs, wrong...)
		}
	case []any:
		for i := range value {
			value[i], wrong = filled(value[i], path.Index(i))
			errs = append(errs, wrong...)
		}
	}
	return value, errs
}
