package revision

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/placement/bundle"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Content is all that makes a revision: what clusters get, and how it is treated. Which clusters and when is not part
// of it.
type Content struct {
	// Objects in any order.
	Objects []bundle.Object
	// Overrides of the WorkSet; nil is the same as none.
	Overrides *v1alpha1.Overrides
	// Replicas says how replicas are divided; nil is the same as the zero value.
	Replicas *v1alpha1.ReplicaDivision
	// Work is what the Works have in common. A field that is not set is the same as one that has its default.
	Work v1alpha1.WorkTemplate
}

// Hash tells the content from any other. It is the same whatever the order of the objects, whether what is empty is
// nil, whether the API server has filled in its defaults, and in each version of this package: a field that a later one
// adds changes no hash until it is set to something else than its default.
//
// Of the objects their hashes count, not their text. What is in a patch must be JSON, as the API server sees to;
// [Store.Save] refuses what is not.
func (c *Content) Hash() bundle.Hash {
	text, err := c.settings()
	if err != nil {
		text = []byte(err.Error())
	}
	hashes := make([]bundle.Hash, len(c.Objects))
	for i := range c.Objects {
		hashes[i] = c.Objects[i].Hash
	}
	slices.SortFunc(hashes, compare)
	sum := sha256.New()
	sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(hashes))))
	for i := range hashes {
		sum.Write(hashes[i][:])
	}
	sum.Write(text)
	return bundle.Hash(sum.Sum(nil))
}

func compare(a, b bundle.Hash) int { return bytes.Compare(a[:], b[:]) }

// sorted are the objects in the order in which they are stored.
func (c *Content) sorted() []bundle.Object {
	return slices.SortedFunc(slices.Values(c.Objects), func(a, b bundle.Object) int {
		return cmp.Or(compare(a.Hash, b.Hash), bytes.Compare(a.JSON, b.JSON))
	})
}

const (
	// digits of the hash that a name has. A collision is an error of Save, and needs some million revisions that are
	// made for it. The names of a ClusterWorkSet have one more, so that no WorkSet in the namespace of its revisions has
	// the same.
	digits = 12
	// maxPrefix is how long what is before them may be, so that there is room for the number of a part.
	maxPrefix = validation.DNS1123SubdomainMaxLength - len("-") - digits - len("-9999")
)

// Name is the name of the revision of a WorkSet that has this hash: the name of the WorkSet, or a hash of that where it
// is too long, and the first digits of the hash, as in web-5f6d8c9b7a12. It is a DNS subdomain of at most 253 bytes.
func Name(workSet *v1alpha1.WorkSet, h bundle.Hash) string {
	return prefix(workSet) + hex.EncodeToString(h[:])[:digitsOf(workSet)]
}

func digitsOf(workSet *v1alpha1.WorkSet) int {
	if workSet.Namespace == "" {
		return digits + 1
	}
	return digits
}

func prefix(workSet *v1alpha1.WorkSet) string {
	if len(workSet.Name) > maxPrefix+digits-digitsOf(workSet) {
		return v1alpha1.LabelValue(workSet.Name) + "-"
	}
	return workSet.Name + "-"
}

// isName says whether a revision of the WorkSet may have this name, which a user may have chosen.
func isName(workSet *v1alpha1.WorkSet, name string) bool {
	rest, found := strings.CutPrefix(name, prefix(workSet))
	return found && len(rest) == digitsOf(workSet) && strings.Trim(rest, "0123456789abcdef") == ""
}
