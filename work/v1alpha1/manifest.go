package v1alpha1

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DecodedManifest is a manifest as it is to be applied, or why it cannot be.
//
// +kubebuilder:object:generate=false
type DecodedManifest struct {
	// ResourceIdentifier is the object, without its resource. If the manifest is refused it has what could be read.
	ResourceIdentifier

	// Object is the object to apply. Nil: the manifest is rejected. The caller may change it.
	Object *unstructured.Unstructured

	// Exported is true if the manifest was read from a cluster, as by kubectl get -o yaml: its metadata have fields that
	// only an API server writes.
	Exported bool

	// Errors are the reasons why the manifest is rejected. They name its fields, such as spec.manifests[3].metadata.name.
	Errors field.ErrorList
}

// Decode reads the manifests, each by itself: the entry at index i is of manifest i, and one that is refused does not
// keep the others from being applied. If there are too many, or they are too long together, there are no entries at
// all, and the first result is nil. The errors are all that there are, those of single manifests included.
//
// What an object cannot have from a manifest is left out: its status; the fields of metadata that the API server
// writes, such as uid, resourceVersion and managedFields; and fields that are null, which server-side apply would take
// for wanted. The stringData of a Secret becomes data, as which alone it can be read back. Numbers are int64 or
// float64.
//
// Manifests of the same object are all refused: by group, kind, namespace and name, whatever the version. While a
// manifest is refused, the object that it used to be may be unknown: prune nothing until there are no errors.
//
// It takes about twice as long as parsing the JSON.
func (s *WorkSpec) Decode() ([]DecodedManifest, field.ErrorList) {
	at := field.NewPath("spec", "manifests")
	if len(s.Manifests) > MaxManifests {
		return nil, field.ErrorList{field.TooMany(at, len(s.Manifests), MaxManifests)}
	}
	raw, err := s.rawManifests(at)
	if err != nil {
		return nil, field.ErrorList{err}
	}
	decoded := make([]DecodedManifest, len(raw))
	for i := range raw {
		decoded[i] = decode(raw[i], at.Index(i))
	}
	refuseDuplicates(decoded, at)

	var errs field.ErrorList
	for i := range decoded {
		errs = append(errs, decoded[i].Errors...)
	}
	return decoded, errs
}

// rawManifests are the manifests as JSON, where they are not too long together. One that cannot be JSON is empty.
func (s *WorkSpec) rawManifests(at *field.Path) ([][]byte, *field.Error) {
	raw, size := make([][]byte, len(s.Manifests)), 0
	for i := range s.Manifests {
		raw[i], _ = s.Manifests[i].MarshalJSON()
		size += StoredBytes(raw[i])
	}
	if size <= MaxManifestBytes {
		return raw, nil
	}
	return nil, tooLong(at, size, MaxManifestBytes)
}

// StoredBytes returns the size in bytes of a JSON text in the storage of the API server, to which limits apply: the API
// server writes <, > and &, and the separators U+2028 and U+2029, as escapes of six bytes.
func StoredBytes(text []byte) int {
	n := len(text)
	for _, c := range []string{"<", ">", "&"} {
		n += 5 * bytes.Count(text, []byte(c))
	}
	for _, separator := range []string{"\u2028", "\u2029"} {
		n += 3 * bytes.Count(text, []byte(separator))
	}
	return n
}

// refuseDuplicates refuses all manifests of an object that has several, and lets each name another one.
func refuseDuplicates(decoded []DecodedManifest, at *field.Path) {
	object := func(i int) ResourceIdentifier {
		id := decoded[i].ResourceIdentifier
		id.Version = ""
		return id
	}
	manifests := make(map[ResourceIdentifier][]int, len(decoded))
	for i := range decoded {
		if id := object(i); id.Kind != "" && id.Name != "" {
			manifests[id] = append(manifests[id], i)
		}
	}
	for i := range decoded {
		id := object(i)
		alike := manifests[id]
		if len(alike) < 2 {
			continue
		}
		other := alike[0]
		if other == i {
			other = alike[1]
		}
		err := field.Duplicate(at.Index(i), id.String())
		err.Detail = fmt.Sprintf("the manifest has the object of %s as well: remove one of them", at.Index(other))
		decoded[i].refuse(err)
	}
}

func (d *DecodedManifest) refuse(errs ...*field.Error) {
	d.Object, d.Errors = nil, append(d.Errors, errs...)
}
