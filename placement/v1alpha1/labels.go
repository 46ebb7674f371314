package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue returns the label value for the name of an object: the name itself or, if it exceeds the limit of 63 bytes
// for label values, 32 hexadecimal digits of its SHA-256 hash. Use it to select the PlacementDecisions of a Placement,
// or the Works and WorkSetRevisions of a WorkSet.
func LabelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
