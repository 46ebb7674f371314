package addon

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOvertaken(t *testing.T) {
	works := schema.GroupResource{Group: "work.muster.dev", Resource: "works"}
	conflict := apierrors.NewConflict(works, "east", errors.New("the object has been modified"))
	exists := apierrors.NewAlreadyExists(works, "east")
	forbidden := apierrors.NewForbidden(works, "east", errors.New("no role"))
	for _, row := range []struct {
		name, reason string
		err          error
		want         bool
	}{
		{"none", "all went well", nil, false},
		{"a conflict", "somebody else has written", fmt.Errorf("write the status: %w", conflict), true},
		{"a race to create", "somebody else has created", fmt.Errorf("create: %w", exists), true},
		{"our own word", "the look itself has found out", fmt.Errorf("Create: %w", errRetry), true},
		{"forbidden", "that is for a person to mend", fmt.Errorf("create: %w", forbidden), false},
		{"several of them", "of many writes each may be overtaken",
			fmt.Errorf("members: %w", errors.Join(conflict, errors.Join(errRetry, exists))), true},
		{"one among others", "what else is wrong must not be hidden by it", errors.Join(conflict, forbidden), false},
		{"one among others, further down", "as above", errors.Join(errors.Join(exists, forbidden), conflict), false},
	} {
		t.Run(row.name, func(t *testing.T) { require.Equal(t, row.want, onlyConflicts(row.err), row.reason) })
	}
}
