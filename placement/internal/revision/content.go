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

// Content is the content of a revision: the objects for clusters, and the options for them. It does not include which
// clusters get it and when.
type Content struct {
	// Objects are the objects, in any order.
	Objects []bundle.Object
	// Overrides are the overrides of the WorkSet. Nil is the same as no rules.
	Overrides *v1alpha1.Overrides
	// Replicas is the division of replicas. Nil is the same as the zero value.
	Replicas *v1alpha1.ReplicaDivision
	// Work contains the common options of the Works. A field that is not set is the same as one with its default.
	Work v1alpha1.WorkTemplate
}

// Hash returns a hash that identifies the content. It does not depend on the order of the objects, on whether an empty
// field is nil, or on whether the API server has set defaults. It is the same in each version of this package: a field
// that a later version adds does not change the hash until it is set to another value than its default.
//
// The hash includes the hashes of the objects, not their texts. The content of a patch must be JSON, as the API server
// ensures; [Store.Save] returns an error if it is not.
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

// sorted returns the objects in the order in which they are stored.
func (c *Content) sorted() []bundle.Object {
	return slices.SortedFunc(slices.Values(c.Objects), func(a, b bundle.Object) int {
		return cmp.Or(compare(a.Hash, b.Hash), bytes.Compare(a.JSON, b.JSON))
	})
}

const (
	// digits is the number of digits of the hash in a name. A collision is an error of Save, and requires some million
	// revisions that are created to provoke it. The names for a ClusterWorkSet have one more digit, so that no WorkSet in
	// the namespace of its revisions has the same names.
	digits = 12
	// maxPrefix is the maximum length of the text before the digits, so that there is room for the number of a part.
	maxPrefix = validation.DNS1123SubdomainMaxLength - len("-") - digits - len("-9999")
)

// Name returns the name of the revision of a WorkSet with a hash: the name of the WorkSet, or a hash of that name if it
// is too long, and the first digits of the hash, as in web-5f6d8c9b7a12. The result is a DNS subdomain of at most 253
// bytes.
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

// isName reports whether a revision of the WorkSet can have this name, which a user may have chosen.
func isName(workSet *v1alpha1.WorkSet, name string) bool {
	rest, found := strings.CutPrefix(name, prefix(workSet))
	return found && len(rest) == digitsOf(workSet) && strings.Trim(rest, "0123456789abcdef") == ""
}
