package apply_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

var errCrashed = errors.New("crashed")

// crashing is a transport that crashes at its k-th request: the request is sent or not, and neither its response nor
// any later request passes.
type crashing struct {
	left atomic.Int32
	sent bool
	stop context.CancelFunc
}

func (c *crashing) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if strings.Count(r.URL.Path, "/") < 4 && !strings.HasPrefix(r.URL.Path, "/api/v1/") {
			return next.RoundTrip(r) // discovery
		}
		switch left := c.left.Add(-1); {
		case left > 0:
			return next.RoundTrip(r)
		case left == 0:
			if c.sent {
				if response, err := next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context()))); err == nil {
					_ = response.Body.Close()
				}
			}
			c.stop()
		}
		return nil, errCrashed
	})
}

// crash calls a function with an engine that crashes at its k-th request, and reports whether the engine crashed.
func (f *fixture) crash(k int, sent bool, work func(context.Context) error) bool {
	f.T.Helper()
	ctx, cancel := context.WithCancel(f.T.Context())
	defer cancel()
	c := &crashing{sent: sent, stop: cancel}
	c.left.Store(int32(k))
	config := rest.CopyConfig(f.Config)
	config.Wrap(c.wrap)
	f.engine = apply.New(newClient(f.T, config), apply.Options{Concurrency: 2})
	err := work(ctx)
	crashed := c.left.Load() <= 0
	if crashed {
		require.Error(f.T, err)
	} else {
		require.NoError(f.T, err)
	}
	f.restart()
	return crashed
}

func TestCrash_AtEveryRequest(t *testing.T) {
	for _, sent := range []bool{false, true} {
		t.Run(fmt.Sprintf("sent=%v", sent), func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				f := newMemoryFixture(t)
				for k := 1; ; k++ {
					if crashed := f.crashOnce(t, k, sent); !crashed {
						require.Greater(t, k, 4, "each object needs at least one request")
						return
					}
				}
			})
		})
	}
}

// crashOnce applies, changes and prunes a set, each with a crash at the k-th request.
func (f *fixture) crashOnce(t *testing.T, k int, sent bool) (crashed bool) {
	t.Helper()
	f.inventory = nil
	objects := []apply.Object{f.configMap("a", "{k: v}"), f.configMap("b", "{k: v}"),
		f.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 80}]}}"),
		f.configMap("c", "{k: v}", wave(40))}
	applySet := func(ctx context.Context) error {
		changes, err := f.engine.Apply(ctx, f.set(objects...), nil)
		if err == nil {
			f.inventory = changes.Inventory
		}
		return err
	}
	crashed = f.crash(k, sent, applySet)
	f.requireRecorded(t)
	for _, change := range f.apply(objects...) {
		require.True(t, change.Done(), "%d: %s %s", k, change.Object, change.Message)
	}
	f.requireCompleteInventory(t, objects)

	// An object is removed from the set, another object is changed, and all objects are pruned.
	objects[0] = f.configMap("a", "{k: changed}")
	objects = objects[:3]
	crashed = f.crash(k, sent, applySet) || crashed
	f.apply(objects...)
	crashed = f.crash(k, sent, func(ctx context.Context) error {
		pruned, err := f.engine.Prune(ctx, f.owner, f.inventory, v1alpha1.DeletePolicy{Propagation: "Background"})
		if err == nil {
			f.inventory = pruned.Inventory
		}
		return err
	}) || crashed
	f.requireRecorded(t)
	f.prune(v1alpha1.DeletePolicy{Propagation: "Background"})
	require.Empty(t, f.owned(t), "no object remains")
	return crashed
}

// owned returns the existing objects of the owner.
func (f *fixture) owned(t *testing.T) map[string]bool {
	t.Helper()
	owned := map[string]bool{}
	for _, kind := range []string{"ConfigMap", "Service"} {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion("v1")
		list.SetKind(kind + "List")
		require.NoError(t, f.Client.List(t.Context(), list, client.InNamespace(f.Namespace),
			client.HasLabels{v1alpha1.AppliedLabel}))
		for i := range list.Items {
			owned[kind+list.Items[i].GetName()+string(list.Items[i].GetUID())] = true
		}
	}
	return owned
}

// requireRecorded requires that all existing objects are recorded.
func (f *fixture) requireRecorded(t *testing.T) {
	t.Helper()
	recorded := map[string]bool{}
	for _, r := range f.inventory {
		recorded[r.Kind+r.Name] = true
	}
	for name := range f.owned(t) {
		require.True(t, recorded[name[:len(name)-36]], "%s exists and is not recorded", name)
	}
}

// requireCompleteInventory requires that exactly the existing objects are recorded, with their UIDs.
func (f *fixture) requireCompleteInventory(t *testing.T, objects []apply.Object) {
	t.Helper()
	recorded := map[string]bool{}
	for _, r := range f.inventory {
		recorded[r.Kind+r.Name+string(r.UID)] = true
	}
	require.Equal(t, f.owned(t), recorded)
	require.Len(t, recorded, len(objects))
}

func TestApply_RecordFails(t *testing.T) { testkit.Virtual(t, testApplyRecordFails) }

func testApplyRecordFails(t *testing.T) {
	f := newMemoryFixture(t)
	set := f.set(f.configMap("a", "{k: v}"))
	set.Record = func(context.Context, []v1alpha1.AppliedResource) error { return errCrashed }
	_, err := f.engine.Apply(t.Context(), set, nil)
	require.ErrorIs(t, err, errCrashed)
	require.Empty(t, f.owned(t))
}
