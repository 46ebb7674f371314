package token_test

import (
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/token"
)

// The agent requests a token and stores the private data to open the answer.
func Example() {
	claim, err := registration.NewClaimKey()
	if err != nil {
		panic(err)
	}
	request, private, err := token.Method{}.Request(claim, nil)
	if err != nil {
		panic(err)
	}
	fmt.Println("to keep:", len(private), "bytes; to send:", len(request.PublicKey))

	issuer := &token.Issuer{} // With the manager's Client.
	subject, err := issuer.Subject(membership.Member{Namespace: "member-east"})
	fmt.Println(subject.Kind, subject.Namespace, subject.Name, err)
	// Output:
	// to keep: 32 bytes; to send: 32
	// ServiceAccount member-east muster-agent <nil>
}
