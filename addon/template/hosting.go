package template

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// HostingNamespace returns the name of the namespace, on a hosting member, of the agent of an add-on for one member: the two names, as far as they fit
// into the 63 characters that a namespace may have, and a hash of both. It is that of no other add-on or member, whose names are compared whole:
// the hash is always there, since the add-on a-b for the member c would else be the add-on a for b-c.
func HostingNamespace(addon, member string) string {
	const limit, hashed = 63, 16 // so long that nobody who may choose a name finds another one with the same hash
	sum := sha256.Sum256([]byte(addon + "/" + member))
	readable := addon + "-" + member
	return strings.TrimRight(readable[:min(len(readable), limit-hashed-1)], "-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}
