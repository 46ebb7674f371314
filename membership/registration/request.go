package registration

import (
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requestName returns the name of the only JoinRequest of a claim key, given its fingerprint. After a create whose
// response was lost, the request can be read with this name.
func requestName(fingerprint string) string {
	const enough = 40 // hexadecimal digits, 160 bits
	return "join-" + fingerprint[:min(enough, len(fingerprint))]
}

// Sign completes a request whose spec contains the requested values of the cluster: it sets the name and the namespace
// of the bootstrap credential, proves the JoinToken and signs the request. Without a bootstrap credential (nil: an
// administrator gave the agent another credential to create the request with) the namespace and spec.token are not
// changed; hubs deny such a request unless they are configured to accept it. The same key, bootstrap and spec always
// result in the same request. The request also proves the later keys of the agent, newest first.
func Sign(request *v1alpha1.JoinRequest, claim *ClaimKey, bootstrap *Bootstrap, later ...*ClaimKey) error {
	spec := &request.Spec
	request.Name = requestName(claim.Fingerprint())
	spec.ClaimKey = claim.Public()
	if bootstrap != nil {
		request.Namespace = bootstrap.Namespace
		spec.Token = &v1alpha1.TokenProof{Name: bootstrap.TokenName}
		spec.Token.MAC = mac(spec, bootstrap.Key)
	}
	signed := canonical(spec)
	signature, err := claim.sign(signed)
	if err != nil {
		return fmt.Errorf("sign JoinRequest %s: %w", request.Name, err)
	}
	spec.Signature = signature
	if spec.Keys, err = signKeys(signed, later); err != nil {
		return fmt.Errorf("sign JoinRequest %s: %w", request.Name, err)
	}
	return nil
}

// Verify checks the content of a request: its name and signature must match its claim key, all its later keys must
// have signed it, and its labels must be permitted for an agent. The error is an [*membership.InvalidError]. All other
// fields are requested values of the owner of the claim key, and are not verified.
func Verify(request *v1alpha1.JoinRequest) error {
	spec := &request.Spec
	public, err := parsePublic(spec.ClaimKey)
	if err != nil {
		return &membership.InvalidError{Field: "spec.claimKey", Problem: err.Error()}
	}
	if want := requestName(Fingerprint(spec.ClaimKey)); request.Name != want {
		return &membership.InvalidError{Field: "metadata.name", Problem: fmt.Sprintf("must be %q, after the claim key", want)}
	}
	signed := canonical(spec)
	if !verifies(public, signed, spec.Signature) {
		return &membership.InvalidError{Field: "spec.signature",
			Problem: "is not a signature of this request by its claim key: " +
				"the request was changed, or the agent is of a version that signs other fields"}
	}
	if err := verifyKeys("spec.keys", signed, spec.ClaimKey, spec.Keys); err != nil {
		return err
	}
	return CheckLabels("spec.labels", spec.Labels)
}

// VerifyToken checks that a request was made with the JoinToken that it names, given the key in the token's Secret. The
// error is an [*membership.InvalidError].
func VerifyToken(request *v1alpha1.JoinRequest, key []byte) error {
	token := request.Spec.Token
	if token == nil {
		return &membership.InvalidError{Field: "spec.token", Problem: "is not set"}
	}
	if len(key) != keySize || !hmac.Equal(token.MAC, mac(&request.Spec, key)) {
		return &membership.InvalidError{Field: "spec.token.mac", Problem: fmt.Sprintf(
			"does not prove JoinToken %q: give the agent the current join.yaml of the token's Secret", token.Name)}
	}
	return nil
}

func mac(spec *v1alpha1.JoinRequestSpec, key []byte) []byte {
	hash := hmac.New(sha256.New, key)
	hash.Write(canonical(spec))
	return hash.Sum(nil)
}

// CheckLabels checks that labels are valid and that none is reserved for Kubernetes or muster. The error is a
// [*membership.InvalidError] for the first invalid label; path is the path of the labels in its field. It quotes at
// most the beginning of a long key.
func CheckLabels(path string, labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		invalid := func(problem string) error {
			return &membership.InvalidError{Field: fmt.Sprintf("%s[%.*q]", path, quoted, key), Problem: problem}
		}
		if membership.ReservedLabel(key) {
			return invalid("is reserved for Kubernetes and muster: use a prefix of your own")
		}
		if errs := metav1validation.ValidateLabels(map[string]string{key: labels[key]}, nil); len(errs) > 0 {
			return invalid("is not a valid label: " + details(errs))
		}
	}
	return nil
}

// quoted is the maximum number of characters of a key that an error quotes: a key may have any length, and errors
// become part of conditions.
const quoted = 100

func details(errs field.ErrorList) string {
	var all []string
	for _, err := range errs {
		all = append(all, err.Detail)
	}
	return strings.Join(all, "; ")
}
