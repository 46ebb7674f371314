package v1alpha1

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// decode decodes one manifest. Errors contain only values of names and metadata, because other values may be
// confidential.
func decode(raw []byte, at *field.Path) (d DecodedManifest) {
	var content map[string]any
	switch {
	case depth(raw) > MaxManifestDepth: // before anything recurses into it
		d.refuse(field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("its maps and lists are nested more than %d deep",
			MaxManifestDepth)))
		return d
	case utiljson.Unmarshal(raw, &content) != nil || content == nil:
		d.refuse(field.TypeInvalid(at, field.OmitValueType{},
			"a manifest must be a JSON object with apiVersion, kind and metadata.name"))
		return d
	}
	dropNulls(content)

	kind, errs := decodeKind(content, at)
	d.Group, d.Version, d.Kind = kind.Group, kind.Version, kind.Kind
	if _, isList := content["items"].([]any); isList && strings.HasSuffix(kind.Kind, "List") {
		d.refuse(field.Forbidden(at.Child("items"), "a list is no object: put its items into spec.manifests"))
		return d
	}
	metadata, _ := content["metadata"].(map[string]any)
	d.Namespace, _ = metadata["namespace"].(string)
	d.Name, _ = metadata["name"].(string)
	errs = append(errs, validateMetadata(content["metadata"], at.Child("metadata"))...)

	d.Exported = exported(metadata)
	for _, name := range writtenByAPIServer {
		delete(metadata, name)
	}
	delete(content, "status")
	if kind.GroupKind() == (schema.GroupKind{Kind: "Secret"}) {
		errs = append(errs, encodeStringData(content, at)...)
	}
	if len(errs) > 0 {
		d.refuse(errs...)
		return d
	}
	d.Object = &unstructured.Unstructured{Object: content}
	return d
}

func decodeKind(content map[string]any, at *field.Path) (schema.GroupVersionKind, field.ErrorList) {
	var errs field.ErrorList
	apiVersion, _ := content["apiVersion"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	switch {
	case apiVersion == "":
		errs = append(errs, field.Required(at.Child("apiVersion"),
			"write the group and version of the object's API, such as apps/v1"))
	case err != nil, version.Group != "" && len(validation.IsDNS1123Subdomain(version.Group)) > 0,
		len(validation.IsDNS1035Label(version.Version)) > 0:
		errs = append(errs, field.Invalid(at.Child("apiVersion"), apiVersion,
			"apiVersion must be the group and version of an API, such as apps/v1, or v1 for the core group"))
	case version.Group == GroupName:
		errs = append(errs, field.Forbidden(at.Child("apiVersion"),
			"a Work cannot carry objects of work.muster.dev: apply them to their cluster directly"))
	}
	kind, _ := content["kind"].(string)
	switch {
	case kind == "":
		errs = append(errs, field.Required(at.Child("kind"), "write the kind of the object, such as Deployment"))
	case len(validation.IsDNS1035Label(strings.ToLower(kind))) > 0:
		errs = append(errs, field.Invalid(at.Child("kind"), kind, "kind must be the kind of an API, such as Deployment"))
	}
	return version.WithKind(kind), errs
}

// writtenByAPIServer are the fields of metadata that the API server writes and that a manifest cannot set.
var writtenByAPIServer = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
	"resourceVersion", "selfLink", "uid",
}

// exported reports whether the metadata of a manifest were read from an API server. It ignores the generation, because
// some tools write it.
func exported(metadata map[string]any) bool {
	for _, name := range []string{"creationTimestamp", "managedFields", "resourceVersion", "selfLink", "uid"} {
		switch value := metadata[name].(type) {
		case string:
			if value != "" {
				return true
			}
		case []any:
			if len(value) > 0 {
				return true
			}
		}
	}
	return false
}

// validateMetadata checks the API server's rules for the metadata of all objects, and the stricter rules of a Work.
func validateMetadata(metadata any, at *field.Path) field.ErrorList {
	var meta metav1.ObjectMeta
	text, err := utiljson.Marshal(metadata)
	if err == nil {
		err = utiljson.Unmarshal(text, &meta)
	}
	if err != nil {
		return field.ErrorList{field.Invalid(at, field.OmitValueType{}, err.Error())}
	}
	var errs field.ErrorList
	if meta.Name == "" {
		errs = append(errs, field.Required(at.Child("name"),
			"metadata.name is required: an object without a fixed name cannot be applied twice"))
		meta.Name = "unnamed" // it is said once
	}
	if len(meta.Name) > MaxNameLength {
		errs = append(errs, field.TooLong(at.Child("name"), "", MaxNameLength))
	}
	if meta.GenerateName != "" {
		errs = append(errs, field.Forbidden(at.Child("generateName"), "metadata.generateName cannot be used, because each "+
			"apply would create another object: set metadata.name"))
		meta.GenerateName = ""
	}
	if len(meta.OwnerReferences) > 0 {
		errs = append(errs, field.Forbidden(at.Child("ownerReferences"), "an owner is found by its UID, which is another "+
			"one on each cluster: remove it; the Work is what the object is deleted with"))
		meta.OwnerReferences = nil
	}
	// Further rules for names depend on the kind. The member's API server checks them.
	inPaths := func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	more := apivalidation.ValidateObjectMeta(&meta, meta.Namespace != "", inPaths, at)
	// The order of the errors of labels is random, because labels are a map.
	slices.SortFunc(more, func(a, b *field.Error) int { return strings.Compare(a.Error(), b.Error()) })
	return append(errs, more...)
}

// encodeStringData moves the stringData of a Secret to its data, as the API server does when it stores a Secret. The
// API server never returns stringData, so a manifest with stringData would always differ from the object.
func encodeStringData(secret map[string]any, at *field.Path) field.ErrorList {
	texts, found := secret["stringData"]
	if !found {
		return nil
	}
	values, isMap := texts.(map[string]any)
	data, dataIsMap := secret["data"].(map[string]any)
	if secret["data"] == nil {
		data, dataIsMap = make(map[string]any, len(values)), true
	}
	var errs field.ErrorList
	if !isMap {
		errs = append(errs, field.Invalid(at.Child("stringData"), field.OmitValueType{},
			"stringData must be a map of strings"))
	}
	if !dataIsMap {
		errs = append(errs, field.Invalid(at.Child("data"), field.OmitValueType{}, "data must be a map of strings in base64"))
	}
	if len(errs) > 0 {
		return errs
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, isString := values[key].(string)
		if !isString {
			errs = append(errs, field.Invalid(at.Child("stringData").Key(key), field.OmitValueType{},
				"stringData must be a map of strings"))
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(value))
	}
	delete(secret, "stringData")
	if len(data) > 0 {
		secret["data"] = data
	}
	return errs
}

// dropNulls removes the fields that are null. It keeps items of lists that are null; the API server rejects these.
func dropNulls(value any) {
	switch value := value.(type) {
	case map[string]any:
		maps.DeleteFunc(value, func(_ string, child any) bool { return child == nil })
		for _, child := range value {
			dropNulls(child)
		}
	case []any:
		for _, child := range value {
			dropNulls(child)
		}
	}
}

// depth returns the nesting depth of the maps and lists of a JSON text.
func depth(raw []byte) int {
	level, deepest, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++ // what is escaped ends no string
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
