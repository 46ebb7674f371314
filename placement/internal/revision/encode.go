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
	// ErrNotFound is the error of a revision that the WorkSet does not have.
	ErrNotFound = errors.New("the WorkSet has no such revision")
	// ErrIncomplete is the error of a revision of which a part is missing: it is still being saved, or a user deleted
	// the part. Saving the content again completes it.
	ErrIncomplete = errors.New("a part of it is missing")
	// ErrCorrupt is the error of a revision that is not what was saved. It can only be deleted.
	ErrCorrupt = errors.New("the content does not match its hash")
	// ErrLater is the error of a revision that a later release has written.
	ErrLater = errors.New("a later release has written it")
)

// format is the version of document. One that has another, or a field that is not known, was written by a later
// release.
const format = 1

// document is the content of one part of a revision. Its fields are in the order of their names; see encode.
type document struct {
	Format   int               `json:"format"`
	Objects  []json.RawMessage `json:"objects,omitempty"`
	Settings json.RawMessage   `json:"settings,omitempty"` // in the first
}

// encode returns the parts of a revision, each with so many bytes of settings and objects at most, or one that is
// larger alone. They lack what is of the WorkSet.
//
// The text is the one that the API server makes of it: fields are in the order of their names, and < is \u003c. So its
// length is what is stored, and a part that is there has the text that it would get.
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

// read reads the content of a part. What is wrong with it is [ErrCorrupt], unless it was written by a later release.
func read(part []byte) (*document, error) {
	var version struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(part, &version); err != nil {
		return nil, ErrCorrupt // the cause may have a secret in it
	}
	if version.Format != format {
		return nil, fmt.Errorf("%w: it has format %d, and this release knows only %d", ErrLater, version.Format, format)
	}
	d := &document{}
	if err := strictly(part, d); err != nil {
		return nil, err
	}
	return d, nil
}

// strictly decodes what has no fields that are not known: to leave one out would make another revision of it.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err == nil {
		return nil
	}
	if json.Unmarshal(text, into) != nil {
		return ErrCorrupt
	}
	return fmt.Errorf("%w: it has fields that this release does not know", ErrLater)
}

// decode makes a Content of the parts of a revision, which are in their order, and checks that it is the one that was
// saved. The objects are in the order of their hashes, and defaults are filled in.
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

// place says which part of a revision is meant, from 1, and how many there are.
type place struct{ part, parts int }

func (p place) String() string { return strconv.Itoa(p.part) + "/" + strconv.Itoa(p.parts) }

// placeOf reads an annotation that a user may have changed. An invalid place is no place.
func placeOf(text string) place {
	part, parts, _ := strings.Cut(text, "/")
	if p := (place{number(part), number(parts)}); 1 <= p.part && p.part <= p.parts {
		return p
	}
	return place{}
}

// objectName is that of the WorkSetRevision that has this part of a revision.
func (p place) objectName(revision string) string {
	if p.parts == 1 {
		return revision
	}
	return revision + "-" + strconv.Itoa(p.part)
}
