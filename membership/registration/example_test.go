package registration_test

import (
	"errors"
	"fmt"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// An agent signs a request, and the hub verifies it.
func Example() {
	claim, err := registration.NewClaimKey()
	if err != nil {
		panic(err)
	}
	request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{ClusterID: "4e1c", Name: "east"}}
	if err := registration.Sign(request, claim, nil); err != nil {
		panic(err)
	}
	fmt.Println("unchanged:", registration.Verify(request))

	request.Spec.ClusterID = "another cluster"
	err = registration.Verify(request)
	if invalid := new(membership.InvalidError); errors.As(err, &invalid) {
		fmt.Println("changed in transit:", invalid.Field)
	}
	// Output:
	// unchanged: <nil>
	// changed in transit: spec.signature
}

func ExampleParseBootstrap() {
	_, err := registration.ParseBootstrap([]byte(`
apiVersion: membership.muster.dev/v1alpha1
kind: Bootstrap
server: http://hub.example.com
`))
	fmt.Println(err)
	// Output: server: must be a URL such as https://hub.example.com:6443
}

func ExampleBootstrapRole() {
	for _, rule := range registration.BootstrapRole().Rules {
		fmt.Println(rule.Verbs, rule.Resources)
	}
	// Output: [create get] [joinrequests]
}
