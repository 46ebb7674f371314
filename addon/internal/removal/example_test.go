package removal_test

import (
	"fmt"
	"time"

	"github.com/muster-sdk/muster/addon/internal/removal"
)

// The removal of an add-on from a member that responds, and from one that does not.
func ExampleNext() {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	o := removal.Observed{
		Now: noon, Started: noon, Deadline: 10 * time.Minute, Finalizer: true, Member: removal.Reachable,
		Jobs: removal.Hook{State: removal.NotStarted}, Works: removal.Present, Credentials: removal.Present,
	}
	show := func() {
		step := removal.Next(o)
		fmt.Println(step.Reason, step.Actions)
	}
	show()
	o.Jobs.State = removal.Succeeded
	show()
	o.Works = removal.Absent
	show()
	o.Jobs.State = removal.NotStarted
	show()
	o.Credentials = removal.Absent
	show()

	o.Works, o.Member, o.Now = removal.Present, removal.Unreachable, noon.Add(10*time.Minute)
	show()
	o.Forced = true
	show()
	// Output:
	// PreDelete [RunHooks]
	// Removing [DeleteWorks]
	// Removing [DeleteHooks]
	// Removing [RevokeCredentials]
	// Removing [RemoveFinalizer]
	// DeadlineExceeded []
	// DeadlineExceeded [StripFinalizers RemoveFinalizer]
}
