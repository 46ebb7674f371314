package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Object is an object for members. It must not be changed, and may be shared.
type Object struct {
	// ResourceIdentifier identifies the object. Its resource is empty.
	workv1alpha1.ResourceIdentifier
	// JSON is the canonical text of the object: fields are sorted, and there are no spaces. Equal objects have equal
	// texts.
	JSON []byte
	// Hash is the hash of JSON.
	Hash Hash
}

// Hash is a hash of content.
type Hash [sha256.Size]byte

// String returns the hash as 64 hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Key identifies an object on a member: its identifier without the version.
type Key struct{ Group, Kind, Namespace, Name string }

// Key returns the object's key.
func (o *Object) Key() Key { return Key{o.Group, o.Kind, o.Namespace, o.Name} }

// storedSize returns the number of bytes that the object takes of the maximum of a Work.
func (o *Object) storedSize() int { return workv1alpha1.StoredBytes(o.JSON) }

// Manifest returns the object as a manifest of a Work. The manifest shares the text of the object.
func (o *Object) Manifest() workv1alpha1.Manifest {
	return workv1alpha1.Manifest{RawExtension: runtime.RawExtension{Raw: o.JSON}}
}

// Errors of objects that no Work can carry.
var (
	ErrInvalid = errors.New("must be a JSON object with apiVersion, kind and metadata.name")
	ErrTooDeep = fmt.Errorf("maps and lists must not be nested more than %d levels deep", workv1alpha1.MaxManifestDepth)
)

// Parse parses a manifest. The error is [ErrInvalid] or [ErrTooDeep], and the Object then contains what could be read
// of the identifier. [workv1alpha1.WorkSpec.Decode] checks all other rules for manifests.
func Parse(text []byte) (Object, error) {
	if deep(text) {
		return Object{}, ErrTooDeep
	}
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return Object{}, ErrInvalid // the cause may have a secret in it
	}
	return Of(content)
}

// Of returns the Object for decoded JSON. It does not retain content. The errors are those of [Parse].
func Of(content map[string]any) (Object, error) {
	id, complete := identify(content)
	if !complete {
		if id.Kind == "" {
			return Object{}, ErrInvalid
		}
		return Object{}, fmt.Errorf("%s: %w", id, ErrInvalid)
	}
	text, err := encode(content)
	if err == nil && minusZero(text) {
		var again map[string]any
		if err = utiljson.Unmarshal(text, &again); err == nil {
			text, err = encode(again)
		}
	}
	if err != nil {
		return Object{}, fmt.Errorf("%s: %w", id, ErrInvalid)
	}
	if deep(text) {
		return Object{}, fmt.Errorf("%s: %w", id, ErrTooDeep)
	}
	return Object{id, text, sha256.Sum256(text)}, nil
}

// encode returns content as JSON. The fields are sorted by name, and <, > and & are not escaped.
func encode(content map[string]any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(content); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// minusZero reports whether a text may contain a float that is minus zero. It is encoded as -0, which is decoded as the
// integer 0 and then encoded as 0. So the text would change when it is decoded and encoded again.
func minusZero(text []byte) bool {
	return bytes.Contains(text, []byte(":-0")) || bytes.Contains(text, []byte(",-0")) ||
		bytes.Contains(text, []byte("[-0"))
}

// identify returns the identifier of an object, and reports whether it is complete.
func identify(content map[string]any) (id workv1alpha1.ResourceIdentifier, complete bool) {
	apiVersion, _ := content["apiVersion"].(string)
	version, err := schema.ParseGroupVersion(apiVersion)
	metadata, _ := content["metadata"].(map[string]any)
	id.Group, id.Version = version.Group, version.Version
	id.Kind, _ = content["kind"].(string)
	id.Namespace, _ = metadata["namespace"].(string)
	id.Name, _ = metadata["name"].(string)
	return id, err == nil && id.Version != "" && id.Kind != "" && id.Name != ""
}

// deep reports whether a JSON text is nested deeper than a manifest may be. It does not recurse.
func deep(text []byte) bool {
	level, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++ // an escaped character does not end a string
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if level++; level > workv1alpha1.MaxManifestDepth {
				return true
			}
		case c == '}' || c == ']':
			level--
		}
	}
	return false
}
