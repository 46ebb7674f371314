package turn_test

import (
	"fmt"

	"github.com/muster-sdk/muster/addon/internal/turn"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

func Example() {
	its := turn.Turn{Placement: "apps/all"}
	member := turn.Observed{Turn: its, Desired: "v2", Of: "v2", Told: "v1", Before: &v1alpha1.MemberAddonStatus{},
		Joined: true}

	member.Turn = its.Rolled("v2", "10 others are on their way", start)
	fmt.Printf("%+v\n", turn.Next(member))
	member.Turn = its.Rolled("v2", "", start)
	fmt.Printf("%+v\n", turn.Next(member))
	// Output:
	// {Tell:false Stays:false Hold:10 others are on their way}
	// {Tell:true Stays:false Hold:}
}
