package identity_test

import (
	"errors"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration/identity"
)

// A request is pending until an administrator has set the identity of the agent.
func Example() {
	_, err := identity.Issuer{}.Subject(membership.Member{Name: "east"})
	fmt.Println(errors.Is(err, identity.ErrMissing))
	fmt.Println(err)
	// Output:
	// true
	// the MemberCluster's spec.identity does not name the agent's subject: set it on MemberCluster east to the subject that its agent authenticates as
}
