package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"

	"k8s.io/apimachinery/pkg/util/validation"
)

// LabelValue is the value of a label that names an object: its name, or 32 hexadecimal digits of a hash of that where
// it is too long for a label, which has 63 bytes. It is what to select the PlacementDecisions of a Placement by, and
// what a WorkSet has.
func LabelValue(name string) string {
	if len(name) <= validation.LabelValueMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:16])
}
