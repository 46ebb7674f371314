package csr_test

import (
	"fmt"
	"strings"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/csr"
)

// The agent requests a certificate; the hub knows its subject before the certificate exists.
func Example() {
	claim, err := registration.NewClaimKey()
	if err != nil {
		panic(err)
	}
	request, _, err := csr.Method{}.Request(claim, nil)
	if err != nil {
		panic(err)
	}
	issuer := &csr.Issuer{} // With the manager's Client and API reader.
	subject, err := issuer.Subject(membership.Member{Name: "east", Claim: claim.Fingerprint()})
	if err != nil {
		panic(err)
	}
	fmt.Println(request.Type, "for", subject.Kind, strings.Replace(subject.Name, claim.Fingerprint(), "<fingerprint>", 1))
	// Output: Certificate for User muster:member:<fingerprint>
}
