package crdinstall

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
)

// VersionAnnotation is an annotation of a definition. Its value is the version of the muster module that last applied
// the definition.
const VersionAnnotation = "muster.dev/version"

// HashAnnotation is an annotation of a definition. Its value is the hash of the content that was applied last.
const HashAnnotation = "muster.dev/definition-hash"

const module = "github.com/muster-sdk/muster"

// versionIn returns the version of the muster module in a program. It returns nil if the build does not contain the
// version, such as in tests, or if the module is replaced by a folder. Such a program neither records nor compares
// versions.
func versionIn(build *debug.BuildInfo) *version.Version {
	if build == nil {
		return nil
	}
	for _, m := range append([]*debug.Module{&build.Main}, build.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace != nil {
			m = m.Replace
		}
		if parsed, err := version.ParseSemantic(m.Version); err == nil {
			return parsed
		}
	}
	return nil
}

// newer returns the version of the installed definition if it is newer than own. Otherwise it returns nil: the
// installed version is not newer, the definition does not exist, or it has no version.
func newer(installed *unstructured.Unstructured, own *version.Version) *version.Version {
	if own == nil || installed == nil {
		return nil
	}
	there, err := version.ParseSemantic(installed.GetAnnotations()[VersionAnnotation])
	if err != nil || !own.LessThan(there) {
		return nil // An absent or foreign value is not newer.
	}
	return there
}

// recorded returns a copy of the definition with the version that applies it and the hash of its content.
func recorded(definition *unstructured.Unstructured, own *version.Version) (*unstructured.Unstructured, error) {
	definition = definition.DeepCopy()
	annotations := definition.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	if own != nil {
		annotations[VersionAnnotation] = "v" + own.String()
		definition.SetAnnotations(annotations)
	}
	data, err := json.Marshal(definition.Object) // the keys of maps are sorted
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", definition.GetName(), err)
	}
	sum := sha256.Sum256(data)
	annotations[HashAnnotation] = hex.EncodeToString(sum[:16])
	definition.SetAnnotations(annotations)
	return definition, nil
}

// isApplied reports whether applying a recorded definition would change nothing. The hash shows that the same content
// was applied last, so that no field has to be removed, and the comparison shows that no other client has changed a
// field since. The API server validates and compiles a whole definition at each apply, also if nothing changes.
func isApplied(config, installed *unstructured.Unstructured) bool {
	return installed != nil && installed.GetDeletionTimestamp() == nil &&
		installed.GetAnnotations()[HashAnnotation] == config.GetAnnotations()[HashAnnotation] &&
		installed.GetAnnotations()[VersionAnnotation] == config.GetAnnotations()[VersionAnnotation] &&
		slices.ContainsFunc(installed.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
			return entry.Manager == string(FieldOwner) && entry.Operation == metav1.ManagedFieldsOperationApply
		}) &&
		contains(installed.Object, config.Object)
}

// contains reports whether a value has all fields of another one, with the same values. Lists must have the same
// length.
func contains(value, other any) bool {
	switch other := other.(type) {
	case map[string]any:
		fields, ok := value.(map[string]any)
		if !ok {
			return false
		}
		for name, field := range other {
			if existing, found := fields[name]; !found || !contains(existing, field) {
				return false
			}
		}
		return true
	case []any:
		items, ok := value.([]any)
		return ok && slices.EqualFunc(items, other, contains)
	case int64:
		number, isFloat := value.(float64)
		return value == any(other) || isFloat && number == float64(other)
	case float64:
		number, isInt := value.(int64)
		return value == any(other) || isInt && float64(number) == other
	default:
		return value == other
	}
}
