package agent

import (
	"slices"
	"strings"

	boundedtext "github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The maximum length of texts in the status of a Work, in bytes. The limits of the types are higher, for agents of
// earlier releases. Messages of agents have at most 512 bytes, and feedback values are never cut.
const (
	maxGroup    = 253
	maxLabel    = 63
	maxResource = 253
	maxPath     = 1024
	maxDiff     = 256
)

// shortened cuts texts that exceed their limit. The API server would reject the whole status otherwise.
type shortened struct {
	names, differences bool // some were cut
}

// identifier returns the identifier with texts within the limits. Only rejected manifests exceed them; an object that
// exists on a member cannot.
func (s *shortened) identifier(id v1alpha1.ResourceIdentifier) v1alpha1.ResourceIdentifier {
	short := v1alpha1.ResourceIdentifier{
		Group: boundedtext.Text(id.Group, maxGroup), Version: boundedtext.Text(id.Version, maxLabel),
		Kind: boundedtext.Text(id.Kind, maxLabel), Resource: boundedtext.Text(id.Resource, maxResource),
		Namespace: boundedtext.Text(id.Namespace, maxLabel), Name: boundedtext.Text(id.Name, v1alpha1.MaxNameLength),
	}
	s.names = s.names || short != id
	return short
}

// diffs returns the differences with texts within the limits.
func (s *shortened) diffs(all []v1alpha1.FieldDiff) []v1alpha1.FieldDiff {
	cut := false
	for i, diff := range all {
		short := v1alpha1.FieldDiff{
			Path: boundedtext.Text(diff.Path, maxPath), Wanted: boundedtext.Text(diff.Wanted, maxDiff),
			Found: boundedtext.Text(diff.Found, maxDiff),
		}
		if short == diff {
			continue
		}
		if !cut {
			all = slices.Clone(all) // the engine keeps them
		}
		all[i], cut, s.differences = short, true, true
	}
	return all
}

// String names the texts that were cut. Empty: none was.
func (s *shortened) String() string {
	var what []string
	if s.names {
		what = append(what, "names of objects")
	}
	if s.differences {
		what = append(what, "differences")
	}
	if len(what) == 0 {
		return ""
	}
	return "Truncated because they are too long for a status: " + strings.Join(what, ", ") + "."
}
