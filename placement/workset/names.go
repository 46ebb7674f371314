package workset

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/placement/internal/scope"
)

// generatedBy describes the origin of a generated Work.
func generatedBy(set types.NamespacedName) string {
	return scope.WorkSetKind(set.Namespace).Kind + " " + scope.Name(set)
}

// baseName returns the prefix of the names of a WorkSet's Works on all clusters. A number follows. The prefix is
// <namespace>.<name>, which no two WorkSets share, or a hash if that is too long. For a ClusterWorkSet, the prefix
// contains no dot, so that it differs from the prefix of every WorkSet: clusterworkset-<name>, or a hash if the name is
// too long or contains dots.
func baseName(set types.NamespacedName) string {
	const limit = validation.DNS1123SubdomainMaxLength - len("-12345")
	name, hashed := set.Namespace+"."+set.Name, false
	if set.Namespace == "" {
		name, hashed = "clusterworkset-"+strings.ReplaceAll(set.Name, ".", "-"), strings.Contains(set.Name, ".")
	}
	if len(name) <= limit && !hashed {
		return name
	}
	sum := sha256.Sum256([]byte(set.Namespace + "." + set.Name))
	return strings.TrimRight(name[:min(len(name), limit-33)], "-.") + "-" + hex.EncodeToString(sum[:16])
}
