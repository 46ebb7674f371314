package v1alpha1

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns all errors of the overrides, and no error if they are valid. The path is the path of the overrides
// in the object that contains them. It may be nil.
//
// Validate checks the rules of the CustomResourceDefinition, and rules that the API server cannot check: which
// operations have a value, which fields a merge patch changes, the nesting depth of patches, and the total size of all
// rules. Variables and CEL expressions are not parsed; package placement/override parses them.
func (o *Overrides) Validate(path *field.Path) field.ErrorList {
	rules := path.Child("rules")
	if len(o.Rules) > MaxOverrideRules {
		return field.ErrorList{field.TooMany(rules, len(o.Rules), MaxOverrideRules)}
	}
	var errs field.ErrorList
	size := 0
	for i := range o.Rules {
		errs = append(errs, o.Rules[i].validate(rules.Index(i))...)
		text, _ := json.Marshal(&o.Rules[i]) // a value that is not JSON is already reported by validate
		size += len(text)
	}
	if size > MaxOverrideBytes {
		err := field.TooLong(rules, "", MaxOverrideBytes)
		err.Detail = fmt.Sprintf("must have at most %d bytes as JSON together, got %d", MaxOverrideBytes, size)
		errs = append(errs, err)
	}
	return errs
}

func (r *OverrideRule) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		each(r.Clusters, 16, path.Child("clusters"), (*ClusterSelector).validate),
		each(r.Objects, 16, path.Child("objects"), (*ObjectSelector).validate),
		each(r.JSONPatch, MaxPatchOperations, path.Child("jsonPatch"), (*JSONPatchOperation).validate),
		validateMergePatch(r.MergePatch, path.Child("mergePatch")),
	)
	patched := len(r.JSONPatch) > 0 || r.MergePatch != nil
	switch {
	case !patched && !r.Delete:
		errs = append(errs, field.Invalid(path, field.OmitValueType{},
			"a rule requires jsonPatch, mergePatch or delete"))
	case patched && r.Delete:
		errs = append(errs,
			field.Forbidden(path.Child("delete"), "patches must not be set with delete: remove the patches, or delete"))
	}
	if r.Delete && len(r.Objects) == 0 {
		errs = append(errs, field.Required(path.Child("objects"),
			"objects is required with delete: select the objects to delete, because an empty selector does not select all "+
				"objects"))
	}
	return errs
}

func (s *ClusterSelector) validate(path *field.Path) field.ErrorList {
	labels := s.LabelSelector != nil && len(s.LabelSelector.MatchLabels)+len(s.LabelSelector.MatchExpressions) > 0
	if !labels && len(s.Names) == 0 && len(s.CEL) == 0 {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"an empty selector matches every cluster: give it names, a labelSelector or cel, or remove it")}
	}
	names := path.Child("names")
	errs := slices.Concat(
		each(s.Names, 1000, names, func(name *string, path *field.Path) field.ErrorList {
			return dnsLabel.check(*name, path, "the name of a cluster must be a DNS label: lower-case letters, digits and "+
				"'-', starting and ending with a letter or digit")
		}),
		unique(s.Names, names, func(name string) string { return name }),
	)
	if labels || len(s.CEL) > 0 {
		errs = append(errs, (&ClusterSelectorTerm{LabelSelector: s.LabelSelector, CEL: s.CEL}).validate(path)...)
	}
	return errs
}

func (s *ObjectSelector) validate(path *field.Path) field.ErrorList {
	if *s == (ObjectSelector{}) {
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			"should have at least 1 properties: name a group, kind, namespace or name, or remove the selector")}
	}
	errs := slices.Concat(
		longest(s.Kind, 63, path.Child("kind")),
		longest(s.Namespace, 63, path.Child("namespace")),
		longest(s.Name, 253, path.Child("name")),
	)
	if s.Group != nil {
		errs = append(errs, longest(*s.Group, 253, path.Child("group"))...)
	}
	return errs
}

func (o *JSONPatchOperation) validate(path *field.Path) field.ErrorList {
	errs := slices.Concat(
		oneOf(o.Op, path.Child("op"), JSONPatchAdd, JSONPatchRemove, JSONPatchReplace, JSONPatchMove, JSONPatchCopy,
			JSONPatchTest),
		validatePointer(o.Path, path.Child("path")),
		validatePointer(o.From, path.Child("from")),
	)
	if len(errs) > 0 {
		return errs
	}
	moves := o.Op == JSONPatchMove || o.Op == JSONPatchCopy
	valued := o.Op == JSONPatchAdd || o.Op == JSONPatchReplace || o.Op == JSONPatchTest
	if valued != (o.Value != nil && !isNull(o.Value)) {
		errs = append(errs, field.Invalid(path.Child("value"), field.OmitValueType{},
			"value is required with add, replace and test, and must not be set with another op; for null use op remove"))
	}
	if valued && len(errs) == 0 {
		errs = append(errs, validateJSON(o.Value, path.Child("value"))...)
	}
	if moves != (o.From != "") {
		errs = append(errs,
			field.Invalid(path.Child("from"), o.From, "from is required with move and copy, and must not be set with another "+
				"op"))
	}
	const forbidden = " must not be, contain or be within apiVersion, kind, status, or the name, namespace, " +
		"generateName or ownerReferences of metadata"
	if o.Op != JSONPatchTest && protected.MatchString(o.Path) {
		errs = append(errs, field.Forbidden(path.Child("path"), "path"+forbidden))
	}
	if o.Op == JSONPatchMove && o.From != "" && protected.MatchString(o.From) {
		errs = append(errs, field.Forbidden(path.Child("from"), "from"+forbidden))
	}
	if o.Op == JSONPatchMove && strings.HasPrefix(o.Path, o.From+"/") {
		errs = append(errs, field.Invalid(path.Child("path"), o.Path, "nothing can be moved into itself"))
	}
	return errs
}

var (
	pointer   = regexp.MustCompile(`^(/([^~/]|~[01])*)*$`)
	protected = regexp.MustCompile(
		`^(/metadata)?$|^/(apiVersion|kind|status|metadata/(name|namespace|generateName|ownerReferences))(/|$)`)
)

func validatePointer(text string, path *field.Path) field.ErrorList {
	if errs := longest(text, 1024, path); len(errs) > 0 {
		return errs
	}
	if pointer.MatchString(text) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, text,
		"must be a JSON pointer such as /spec/replicas, in whose names ~1 stands for / and ~0 for ~")}
}

// protectedInMetadata lists the fields of metadata that no patch may set; see [JSONPatchOperation].
var protectedInMetadata = []string{"name", "namespace", "generateName", "ownerReferences"}

// validateMergePatch compares field names case-sensitively, as the code that applies the patch does.
func validateMergePatch(patch *runtime.RawExtension, path *field.Path) field.ErrorList {
	if patch == nil {
		return nil
	}
	if errs := validateJSON(patch, path); len(errs) > 0 {
		return errs
	}
	var content map[string]json.RawMessage
	if json.Unmarshal(patch.Raw, &content) != nil || content == nil {
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{},
			"a merge patch must be a JSON object, with the fields to change")}
	}
	var errs field.ErrorList
	for _, name := range []string{"apiVersion", "kind", "status"} {
		if _, found := content[name]; found {
			errs = append(errs, field.Forbidden(path.Child(name), "no patch may change it: remove it"))
		}
	}
	raw, found := content["metadata"]
	if !found {
		return errs
	}
	var metadata map[string]json.RawMessage
	if json.Unmarshal(raw, &metadata) != nil || metadata == nil {
		return append(errs,
			field.Forbidden(path.Child("metadata"), "contains the name of the object: list the fields of metadata to change"))
	}
	for _, name := range protectedInMetadata {
		if _, found := metadata[name]; found {
			errs = append(errs, field.Forbidden(path.Child("metadata", name), "no patch may change it: remove it"))
		}
	}
	return errs
}

func isNull(value *runtime.RawExtension) bool {
	return value.Object == nil && (len(value.Raw) == 0 || strings.TrimSpace(string(value.Raw)) == "null")
}

// validateJSON checks that the value is JSON, and limits its depth before any recursive function reads it.
func validateJSON(value *runtime.RawExtension, path *field.Path) field.ErrorList {
	switch {
	case value.Object != nil || !json.Valid(value.Raw):
		return field.ErrorList{field.TypeInvalid(path, field.OmitValueType{}, "must be JSON, as raw bytes")}
	case depth(value.Raw) > MaxPatchDepth:
		return field.ErrorList{field.Invalid(path, field.OmitValueType{},
			fmt.Sprintf("maps and lists must not be nested more than %d levels deep", MaxPatchDepth))}
	}
	return nil
}

// depth returns the nesting depth of the maps and lists in a JSON text.
func depth(raw []byte) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++ // an escaped character does not end the string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			level++
			deepest = max(deepest, level)
		case c == '}' || c == ']':
			level--
		}
	}
	return deepest
}
