package addon

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyConflicts(t *testing.T) {
	works := schema.GroupResource{Group: "work.muster.dev", Resource: "works"}
	conflict := apierrors.NewConflict(works, "east", errors.New("the object has been modified"))
	exists := apierrors.NewAlreadyExists(works, "east")
	forbidden := apierrors.NewForbidden(works, "east", errors.New("no role"))
	for _, row := range []struct {
		name, reason string
		err          error
		want         bool
	}{
		{"nil", "no error", nil, false},
		{"conflict", "another client has written", fmt.Errorf("write the status: %w", conflict), true},
		{"already exists", "another client has created the object", fmt.Errorf("create: %w", exists), true},
		{"retry", "the reconcile requests a retry", fmt.Errorf("Create: %w", errRetry), true},
		{"forbidden", "a user must grant the permission", fmt.Errorf("create: %w", forbidden), false},
		{"several conflicts", "each of several writes can conflict",
			fmt.Errorf("members: %w", errors.Join(conflict, errors.Join(errRetry, exists))), true},
		{"a conflict and another error", "the other error must be reported", errors.Join(conflict, forbidden), false},
		{"a conflict and another error in a nested list",
			"the other error must be reported", errors.Join(errors.Join(exists, forbidden), conflict), false},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, onlyConflicts(row.err), row.reason) })
	}
}
