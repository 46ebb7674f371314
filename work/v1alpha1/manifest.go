package v1alpha1

import (
	"bytes"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// DecodedManifest is the result of decoding one manifest: the object to apply, or the errors of the manifest.
//
// +kubebuilder:object:generate=false
type DecodedManifest struct {
	// ResourceIdentifier identifies the object; Resource is empty. If the manifest is rejected, the identifier contains
	// the parts that could be decoded.
	ResourceIdentifier

	// Object is the object to apply. Nil: the manifest is rejected. The caller may change it.
	Object *unstructured.Unstructured

	// Exported is true if the manifest was read from a cluster, for example by kubectl get -o yaml: its metadata contain
	// fields that only an API server writes.
	Exported bool

	// Errors are the reasons why the manifest is rejected. They name its fields, such as spec.manifests[3].metadata.name.
	Errors field.ErrorList
}

// Decode decodes the manifests independently: the entry at index i is the result of manifest i, and a rejected manifest
// does not prevent that others are applied. If the manifests exceed [MaxManifests] or [MaxManifestBytes], the first
// result is nil. The second result contains all errors, including those of single manifests.
//
// Decode removes fields that must not be applied: the status; the fields of metadata that the API server writes, such
// as uid, resourceVersion and managedFields; and fields that are null, which server-side apply would own. It moves the
// stringData of a Secret to data, because the API server never returns stringData. Numbers are int64 or float64.
//
// If several manifests have the same group, kind, namespace and name, Decode rejects all of them, even if their
// versions differ. The identity of a rejected manifest may be unknown. Therefore, the caller must not prune objects
// while there are errors.
//
// Decode takes about twice as long as parsing the JSON.
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

// rawManifests returns the manifests as JSON, or an error if they exceed MaxManifestBytes in total. A manifest that
// cannot be encoded is empty.
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

// StoredBytes returns the size in bytes of a JSON text in the storage of the API server. The limits apply to this size.
// The API server encodes <, > and &, and the separators U+2028 and U+2029, as escape sequences of six bytes.
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

// refuseDuplicates rejects all manifests of an object that has several. The error of each manifest names another one.
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
