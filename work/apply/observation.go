package apply

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// marks are the marks on an object that tell which owners have applied it.
type marks struct {
	ours           bool     // it has our mark
	former         bool     // it has an owner reference to our owner, from an earlier release
	owners         int      // the number of owner references to others
	shared         bool     // another owner has applied it with this package
	rivals         []string // the field managers of other owners
	sameFieldOwner bool     // another owner has applied it with our field manager
	applied        string   // the hash of the manifest that was applied last
}

// marksOf reads the marks from the metadata of an object.
func marksOf(meta metav1.Object, owner Owner) (m marks) {
	annotations := meta.GetAnnotations()
	mark := owner.Mark()
	m.applied, m.ours = annotations[mark], annotations[mark] != ""
	if m.applied == "" {
		m.applied = annotations[formerMark(owner.Reference.UID)]
	}
	for _, reference := range meta.GetOwnerReferences() {
		former, applied := annotations[formerMark(reference.UID)]
		switch {
		case owner.isFormer(reference):
			m.ours, m.former = true, true
			if m.applied == "" {
				m.applied = former
			}
			continue
		case applied: // another owner, with the marks of an earlier release
			m.shareWith(owner, managersOf(meta.GetManagedFields(), ownerReferencePath(reference.UID)))
		}
		m.owners++
	}
	for name := range annotations {
		if strings.HasPrefix(name, MarkPrefix) && name != mark {
			m.shareWith(owner, managersOf(meta.GetManagedFields(), annotationPath(name)))
		}
	}
	return m
}

func (m *marks) shareWith(owner Owner, managers []string) {
	m.shared = true
	m.rivals = append(m.rivals, managers...)
	m.sameFieldOwner = m.sameFieldOwner || slices.Contains(managers, owner.FieldOwner)
}

func ownerReferencePath(uid types.UID) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "ownerReferences", fieldpath.KeyByFields("uid", string(uid)))
}

func annotationPath(name string) fieldpath.Path {
	return fieldpath.MakePathOrDie("metadata", "annotations", name)
}

// managersOf returns the field managers that have a field.
func managersOf(entries []metav1.ManagedFieldsEntry, path fieldpath.Path) []string {
	var managers []string
	for _, entry := range entries {
		if entry.FieldsV1 == nil {
			continue
		}
		set, err := parseFields(entry.FieldsV1.GetRawBytes())
		if err != nil {
			continue
		}
		below := set
		for _, element := range path {
			below = below.WithPrefix(element)
		}
		if set.Has(path) || !below.Empty() {
			managers = append(managers, entry.Manager)
		}
	}
	return managers
}

// appliedFields returns the fields that a manager owns by server-side apply, as JSON. Nil: none.
func appliedFields(entries []metav1.ManagedFieldsEntry, manager string) []byte {
	for _, entry := range entries {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == "" &&
			entry.FieldsV1 != nil {
			return entry.FieldsV1.GetRawBytes()
		}
	}
	return nil
}
