package workset

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// generatedBy is what a Work of a WorkSet says of its origin.
func generatedBy(set types.NamespacedName) string { return "WorkSet " + set.String() }

// baseName is what the names of a WorkSet's Works begin with, wherever they are: <namespace>.<name>, so that no two WorkSets share
// one, or a hash of it where that is too long. A number follows.
func baseName(set types.NamespacedName) string {
	const limit = validation.DNS1123SubdomainMaxLength - len("-12345")
	name := set.Namespace + "." + set.Name
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:limit-33], "-.") + "-" + hex.EncodeToString(sum[:16])
}
