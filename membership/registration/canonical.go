package registration

import (
	"encoding/binary"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// All data that a claim key signs here begins with one of these domains. Therefore a signature for another purpose
// (TLS, a certificate request) is never valid for a JoinRequest or a renewal, and the signature of a JoinRequest is
// never valid for a renewal, or the reverse. A hub and an agent with different sets of fields must use different
// versions: otherwise the signature would not cover a field that the hub drops.
const (
	joinDomain  = "muster join v1"
	renewDomain = "muster renew v1"
	keysDomain  = "muster keys v1"
)

// canonical encodes the spec without the MAC and the signature, which are computed from the result. Every value is
// preceded by its length and every list by its count, so that two different specs never have the same encoding. Fields
// are in the order below, and maps are sorted by key. A field that is not set is an empty list.
func canonical(spec *v1alpha1.JoinRequestSpec) []byte {
	var e encoder
	e.text(joinDomain)
	e.text(spec.ClusterID)
	e.text(spec.Name)
	e.count(len(spec.Labels))
	for _, key := range slices.Sorted(maps.Keys(spec.Labels)) {
		e.text(key)
		e.text(spec.Labels[key])
	}
	e.text(string(spec.MemberUID))
	if e.present(spec.Token != nil) {
		e.text(spec.Token.Name)
	}
	e.bytes(spec.ClaimKey)
	e.credential(&spec.Credential)
	if spec.HubID != "" {
		// This field is last, and encoded only if it is set, so that agents and hubs without this field use the same
		// encoding for all other requests.
		e.text(spec.HubID)
	}
	return e.out
}

// canonicalRenewal encodes a renewal of a member without the signature, in the same way.
func canonicalRenewal(member types.UID, renewal *v1alpha1.Renewal) []byte {
	var e encoder
	e.text(renewDomain)
	e.text(string(member))
	e.text(renewal.ID)
	e.credential(&renewal.Request)
	e.bytes(renewal.ClaimKey)
	return e.out
}

// canonicalKeys encodes the data that each of the later claim keys signs: the data that the first claim key signs, and
// all later keys. The first claim key does not sign the later keys, so that its signature is the same for hubs and
// agents without support for later keys.
func canonicalKeys(signed []byte, keys []v1alpha1.KeyProof) []byte {
	var e encoder
	e.text(keysDomain)
	e.bytes(signed)
	e.count(len(keys))
	for i := range keys {
		e.bytes(keys[i].Key)
	}
	return e.out
}

type encoder struct{ out []byte }

func (e *encoder) credential(request *v1alpha1.CredentialRequest) {
	e.text(string(request.Type))
	e.bytes(request.CertificateRequest)
	e.bytes(request.PublicKey)
	if seconds := request.ExpirationSeconds; e.present(seconds != nil) {
		e.bytes(binary.BigEndian.AppendUint32(nil, uint32(*seconds)))
	}
}

func (e *encoder) count(n int) { e.out = binary.BigEndian.AppendUint64(e.out, uint64(n)) }

func (e *encoder) bytes(b []byte) {
	e.count(len(b))
	e.out = append(e.out, b...)
}

func (e *encoder) text(s string) { e.bytes([]byte(s)) }

func (e *encoder) present(is bool) bool {
	if is {
		e.count(1)
	} else {
		e.count(0)
	}
	return is
}
