package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Errors of [Store.Load].
var (
	// ErrNotFound is the error for a revision that the WorkSet does not have.
	ErrNotFound = errors.New("the revision does not exist")
	// ErrIncomplete is the error for a revision with a missing part: the revision is still being saved, or a user deleted
	// the part. Saving the content again completes it.
	ErrIncomplete = errors.New("a part of the revision is missing")
	// ErrCorrupt is the error for a revision whose content is not the one that was saved. It can only be deleted.
	ErrCorrupt = errors.New("the content does not match its hash")
	// ErrLater is the error for a revision that a later release has written.
	ErrLater = errors.New("the revision was written by a later release")
)

// format is the version of document. A document with another version, or with an unknown field, was written by a later
// release.
const format = 1

// document is the content of one part of a revision. Its fields are sorted by name; see encode.
type document struct {
	Format   int               `json:"format"`
	Objects  []json.RawMessage `json:"objects,omitempty"`
	Settings json.RawMessage   `json:"settings,omitempty"` // in the first part
}

// encode returns the parts of a revision. Each has at most limit bytes of settings and objects, or a single object that
// is larger. The fields that identify the WorkSet and the revision are not set.
//
// The text is identical to the one that the API server stores: fields are sorted by name, and < is \u003c. So its
// length is the stored length, and the text of an existing part equals the one that would be created.
func encode(c *Content, limit int) ([]v1alpha1.WorkSetRevisionSpec, error) {
	text, err := c.settings()
	if err != nil {
		return nil, err
	}
	documents := []document{{Settings: text}}
	size := len(text)
	if string(text) == "{}" {
		documents[0].Settings, size = nil, 0
	}
	objects := c.sorted()
	for i := range objects {
		text, err := json.Marshal(json.RawMessage(objects[i].JSON))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", objects[i].ResourceIdentifier, bundle.ErrInvalid)
		}
		if size > 0 && size+len(text) > limit {
			documents, size = append(documents, document{}), 0
		}
		last := &documents[len(documents)-1]
		last.Objects = append(last.Objects, text)
		size += len(text)
	}
	parts, hash := make([]v1alpha1.WorkSetRevisionSpec, len(documents)), c.Hash().String()
	for i := range documents {
		documents[i].Format = format
		text, err := json.Marshal(&documents[i])
		if err != nil {
			return nil, err
		}
		parts[i] = v1alpha1.WorkSetRevisionSpec{
			Hash: hash, Part: place{i + 1, len(documents)}.String(), Objects: int32(len(objects)),
			Content: runtime.RawExtension{Raw: text},
		}
	}
	return parts, nil
}

// read decodes the content of a part. The error is [ErrCorrupt], or [ErrLater] if a later release has written the part.
func read(part []byte) (*document, error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(part, &version); err != nil {
		return nil, ErrCorrupt // the cause may have a secret in it
	}
	if version.Format != format {
		return nil, fmt.Errorf("%w: the revision has format %d, and this release supports format %d "+
			"only", ErrLater, version.Format, format)
	}
	d := &document{}
	if err := strictly(part, d); err != nil {
		return nil, err
	}
	return d, nil
}

// strictly decodes JSON and rejects unknown fields: to omit a field would result in another revision.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err == nil {
		return nil
	}
	if json.Unmarshal(text, into) != nil {
		return ErrCorrupt
	}
	return fmt.Errorf("%w: the revision has fields that this release does not support", ErrLater)
}

// decode returns the Content of the sorted parts of a revision, and verifies that it is the one that was saved. The
// objects are sorted by their hashes, and defaults are set.
func decode(parts []v1alpha1.WorkSetRevisionSpec) (*Content, error) {
	c, s := &Content{}, settings{}
	for i := range parts {
		d, err := read(parts[i].Content.Raw)
		if err != nil {
			return nil, err
		}
		if parts[i].Part != (place{i + 1, len(parts)}).String() || parts[i].Hash != parts[0].Hash ||
			i > 0 && d.Settings != nil {
			return nil, ErrCorrupt
		}
		if d.Settings != nil {
			if err := strictly(d.Settings, &s); err != nil {
				return nil, err
			}
		}
		for _, text := range d.Objects {
			o, err := bundle.Parse(text)
			if err != nil {
				return nil, ErrCorrupt
			}
			c.Objects = append(c.Objects, o)
		}
	}
	c.Overrides, c.Replicas, c.Work = s.Overrides, s.Replicas, s.Work
	for _, field := range defaults(&c.Work) {
		field.fill()
	}
	if len(parts) == 0 || c.Hash().String() != parts[0].Hash {
		return nil, ErrCorrupt
	}
	return c, nil
}

// place is the number of a part of a revision, from 1, and the total number of parts.
type place struct{ part, parts int }

func (p place) String() string { return strconv.Itoa(p.part) + "/" + strconv.Itoa(p.parts) }

// placeOf parses an annotation that a user may have changed. If it is invalid, placeOf returns the zero value.
func placeOf(text string) place {
	part, parts, _ := strings.Cut(text, "/")
	if p := (place{number(part), number(parts)}); 1 <= p.part && p.part <= p.parts {
		return p
	}
	return place{}
}

// objectName returns the name of the WorkSetRevision that contains this part of a revision.
func (p place) objectName(revision string) string {
	if p.parts == 1 {
		return revision
	}
	return revision + "-" + strconv.Itoa(p.part)
}
