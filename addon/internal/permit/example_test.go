package permit_test

import (
	"fmt"

	"github.com/muster-sdk/muster/addon/internal/permit"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

func Example() {
	permitted := permit.Permit{Placement: "apps/all"}
	member := permit.Observed{Permit: permitted, Desired: "v2", Of: "v2", Assigned: "v1",
		Before: &v1alpha1.MemberAddonStatus{},
		Joined: true}

	member.Permit = permitted.Rolled("v2", "10 others are on their way", start)
	fmt.Printf("%+v\n", permit.Next(member))
	member.Permit = permitted.Rolled("v2", "", start)
	fmt.Printf("%+v\n", permit.Next(member))
	// Output:
	// {Update:false Keep:false Hold:10 others are on their way}
	// {Update:true Keep:false Hold:}
}
