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

// hangingClient is a hub that accepts requests and never responds.
type hangingClient struct{ client.Client }

func (hangingClient) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// emptyCache is a cache without objects.
type emptyCache struct{ cache.Cache }

func (emptyCache) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "memberclusters"}, key.Name)
}

// TestRunner_HubDoesNotRespond checks that the read of a member that is not in the cache has a timeout, also while its
// agent runs.
func TestRunner_HubDoesNotRespond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Runner{clusters: emptyCache{}, client: hangingClient{}}
		_, err := r.cluster(t.Context(), "east", "uid")
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}
