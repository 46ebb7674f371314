package push

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// stuck is a hub that takes requests and answers none.
type stuck struct{ client.Client }

func (stuck) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// nothing is a cache that has seen nothing yet.
type nothing struct{ cache.Cache }

func (nothing) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "memberclusters"}, key.Name)
}

// A look at a member that the cache does not have, which is taken beside an agent at work, ends.
func TestHubThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{clusters: nothing{}, client: stuck{}}
		_, err := r.cluster(t.Context(), "east", "uid")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
