package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// observation is the observed metadata of an object, as far as decisions need it.
type observation struct {
	uid        types.UID
	version    string   // the resourceVersion
	deleting   bool     // its deletion has begun
	finalizers []string // that delay its deletion
	marks      marks
	labeled    bool   // it has the label that selects it for watches
	noApply    bool   // an annotation of the member's administrator stops applies
	noDelete   bool   // an annotation of the member's administrator stops deletions
	fields     []byte // the managed fields of our field manager, as JSON
	manager    string // the name of our field manager

	// entries are the managed fields of all field managers. Nil in a [memory].
	entries []metav1.ManagedFieldsEntry
}

// annotationPrefix is the prefix of annotations that record what an owner has applied.
const annotationPrefix = "applied." + v1alpha1.GroupName + "/"

// digest returns a short hash without practical collisions.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:10])
}

// observe returns what the metadata of an object means for an owner.
func observe(meta metav1.Object, owner Owner) *observation {
	s := &observation{
		uid: meta.GetUID(), version: meta.GetResourceVersion(), deleting: meta.GetDeletionTimestamp() != nil,
		finalizers: meta.GetFinalizers(), labeled: meta.GetLabels()[v1alpha1.AppliedLabel] == "true",
		fields: appliedFields(meta.GetManagedFields(), owner.FieldOwner), entries: meta.GetManagedFields(),
		manager: owner.FieldOwner, marks: marksOf(meta, owner),
	}
	for stopped := range strings.SplitSeq(meta.GetAnnotations()[v1alpha1.DisabledAnnotation], ",") {
		s.noApply = s.noApply || strings.TrimSpace(stopped) == "Apply"
		s.noDelete = s.noDelete || strings.TrimSpace(stopped) == "Delete"
	}
	return s
}

// marked reports whether a hash, or the managed fields, record that we have applied the object.
func (s *observation) marked() bool { return s.marks.applied != "" || s.fields != nil }

// hash returns the hash of the manifest and its options. The object is applied when the hash changes.
func (o Object) hash() (string, error) {
	data, err := json.Marshal(o.Manifest.Object) // the keys of maps are sorted
	if err != nil {
		return "", fmt.Errorf("encode the manifest: %w", err)
	}
	for _, path := range o.IgnoredFields {
		data = append(append(data, 0), path.String()...)
	}
	return digest(data), nil
}

// checkManifest rejects manifests that can never be applied, or whose fields would be lost.
func checkManifest(manifest *unstructured.Unstructured) error {
	for field, value := range map[string]string{
		"apiVersion": manifest.GetAPIVersion(), "kind": manifest.GetKind(), "metadata.name": manifest.GetName(),
	} {
		if value == "" {
			return &ManifestError{Field: field, Problem: "is required"}
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(manifest.Object, "metadata", field); err != nil {
			return &ManifestError{Field: "metadata." + field,
				Problem: "must have strings as values: put quotes around numbers, true, false, yes and no"}
		}
	}
	for _, field := range []string{"uid", "resourceVersion", "managedFields"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(manifest.Object, "metadata", field); found {
			return &ManifestError{Field: "metadata." + field, Problem: "must not be set because the API server sets it"}
		}
	}
	if len(manifest.GetOwnerReferences()) > 0 {
		return &ManifestError{Field: "metadata.ownerReferences",
			Problem: "must not be set because the UIDs of owners are specific to one cluster"}
	}
	return nil
}

// intact reports whether no other manager changed the applied fields: our manager still owns all fields of the
// manifest, or all fields that it owned after the last write of the manifest.
func (s *observation) intact(o Object, accepted []byte) bool {
	if !s.marks.ours || !s.labeled || s.fields == nil {
		return false
	}
	if bytes.Equal(s.fields, accepted) {
		return true
	}
	set, err := parseFields(s.fields)
	if err != nil {
		return false
	}
	if (fieldCoverage{sync.OnceValue(s.othersFields)}).covers(set, o.pared().Object) {
		return true
	}
	if accepted == nil {
		return false
	}
	was, err := parseFields(accepted) // the order may differ
	return err == nil && set.Equals(was)
}

// othersFields returns the fields of all field managers except ours.
func (s *observation) othersFields() *fieldpath.Set {
	others := fieldpath.NewSet()
	for _, entry := range s.entries {
		if entry.FieldsV1 != nil && !bytes.Equal(entry.FieldsV1.GetRawBytes(), s.fields) {
			others = others.Union(fieldsOf(entry))
		}
	}
	return others
}
