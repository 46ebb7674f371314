package template

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// HostingNamespace returns the namespace on a hosting member for the agent of an add-on for one member: both names,
// truncated to the maximum of 63 characters, and a hash of the complete names. The hash makes the result unique:
// without it, the add-on a-b for the member c and the add-on a for the member b-c would share a namespace.
func HostingNamespace(addon, member string) string {
	const limit, hashed = 63, 16 // the hash is long enough that a collision cannot be constructed
	sum := sha256.Sum256([]byte(addon + "/" + member))
	readable := addon + "-" + member
	return strings.TrimRight(readable[:min(len(readable), limit-hashed-1)], "-") + "-" +
		hex.EncodeToString(sum[:])[:hashed]
}
