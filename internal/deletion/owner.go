package deletion

import (
	"time"

	"github.com/muster-sdk/muster/internal/definition"
)

// OfGenerator reports whether a user asked for the deletion of an object from which Works are generated. One that is
// not found was not deleted on request: the finalizer of the controller would have kept it. Nor was one that is
// deleted with its definition.
func OfGenerator(found bool, deleted time.Time, of definition.State) bool {
	return found && !deleted.IsZero() && of == definition.Served
}
