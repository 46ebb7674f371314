package workset

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// generatedBy describes the origin of a generated Work.
func generatedBy(set types.NamespacedName) string { return "WorkSet " + set.String() }

// baseName is the beginning of the names of a WorkSet's Works on all clusters: <namespace>.<name>, so that two WorkSets
// never share one, or a hash if that is too long. A number follows.
func baseName(set types.NamespacedName) string {
	const limit = validation.DNS1123SubdomainMaxLength - len("-12345")
	name := set.Namespace + "." + set.Name
	if len(name) <= limit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:limit-33], "-.") + "-" + hex.EncodeToString(sum[:16])
}
