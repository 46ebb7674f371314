package deletion

import (
	"time"

	"github.com/muster-sdk/muster/internal/definition"
)

// OfGenerator reports whether a user requested the deletion of an object that generates Works. The deletion of a
// missing object was not requested, because the finalizer of its controller would have kept it. The deletion of an
// object together with its definition is not a request either.
func OfGenerator(found bool, deleted time.Time, of definition.State) bool {
	return found && !deleted.IsZero() && of == definition.Served
}
