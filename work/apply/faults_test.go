package apply_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestApply_APIServerKilled kills the API server of the plane that all tests share, so it does not run in parallel.
func TestApply_APIServerKilled(t *testing.T) {
	f := newFixture(t)
	shared := plane.ForTest(t)
	config := shared.Config()
	var patches atomic.Int32
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && patches.Add(1) == 50 {
				if err := shared.KillAPIServer(); err != nil {
					return nil, err
				}
			}
			return next.RoundTrip(r)
		})
	})
	f.engine = apply.New(newClient(t, config), apply.Options{})
	objects := f.many(200, "v")

	var created, failed int
	for _, change := range f.apply(objects...) {
		switch change.Action {
		case apply.Created:
			created++
		default:
			failed++
			require.Equal(t, v1alpha1.ReasonFailed, change.Reason)
			require.Error(t, change.Err)
		}
	}
	require.Positive(t, created)
	require.Positive(t, failed)
	require.Len(t, f.inventory, 200)
	require.NoError(t, shared.StartAPIServer(t.Context()))
	for _, change := range f.apply(objects...) {
		require.True(t, change.Done(), "%s: %s", change.Object, change.Message)
	}
	f.requireCompleteInventory(t, objects)
}

func TestTimeout_APIServerHangs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	proxy, err := localplane.NewProxy(plane.ForTest(t).Config().Host)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	c := newClient(t, proxy.Config(plane.ForTest(t).Config()))
	f.engine = apply.New(c, apply.Options{Timeout: 300 * time.Millisecond})
	objects := f.many(2, "v")
	f.apply(objects...)
	proxy.Stall()
	for _, change := range f.apply(objects...) {
		require.Equal(t, apply.Failed, change.Action)
		require.Equal(t, "The request to the API server of the member timed out.", change.Message)
	}
	changes, err := f.engine.Prune(t.Context(), f.owner, f.inventory, v1alpha1.DeletePolicy{})
	require.NoError(t, err)
	require.Len(t, changes.Inventory, 2, "an object that cannot be read stays recorded")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = f.engine.Apply(ctx, f.set(objects...), nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "apply wave 10")
	_, err = f.engine.Prune(ctx, f.owner, f.inventory, v1alpha1.DeletePolicy{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// allow grants verbs on the ConfigMaps of a namespace to a user.
func (f *fixture) allow(subject string, verbs string) {
	f.T.Helper()
	f.create("{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: some, namespace: NS}, rules: " +
		"[{apiGroups: [''], resources: [configmaps], verbs: " + verbs + "}]}")
	f.create("{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: some, namespace: NS}, " +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: some}, subjects: [" + subject + "]}")
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, verbs string
		fresh, drift  string // reasons; empty: done
	}{
		"all":     {"the permissions of doc.go are sufficient", "[get, list, patch, create, delete]", "", ""},
		"no-list": {"list is optional", "[get, patch, create, delete]", "", ""},
		"no-create": {"server-side apply of a missing object needs create", "[get, list, patch, delete]",
			v1alpha1.ReasonForbidden, ""},
		"no-patch": {"all writes are patches", "[get, list, create]", v1alpha1.ReasonForbidden, v1alpha1.ReasonForbidden},
		"no-get": {"a new object needs no read, an existing object does", "[patch, create]", "",
			v1alpha1.ReasonForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			existing := f.many(4, "v")
			f.apply(existing...)
			f.patch(existing[0].Manifest, "{data: {k: edited}}")
			user := "user-" + f.Namespace
			f.allow("{kind: User, name: "+user+"}", tc.verbs)
			f.engine = apply.New(newClient(t, plane.ForTest(t).User(user)), apply.Options{})
			objects := append(existing, f.configMap("fresh", "{k: v}"),
				f.object("{apiVersion: v1, kind: Service, metadata: {name: s, namespace: NS}, spec: {ports: [{port: 80}]}}"))
			var changes []apply.Change
			require.Eventually(t, func() bool { // the authorizer observes the binding by a watch
				changes = f.apply(objects...)
				return changes[0].Reason == v1alpha1.ReasonApplied || tc.drift != ""
			}, deadline, 50*time.Millisecond, tc.reason)
			for i, want := range map[int]string{0: tc.drift, 4: tc.fresh, 5: v1alpha1.ReasonForbidden} {
				if want == "" {
					require.True(t, changes[i].Done(), "%s: %s", tc.reason, changes[i].Message)
					continue
				}
				require.Equal(t, want, changes[i].Reason, "%s: %s", tc.reason, changes[i].Message)
				require.Contains(t, changes[i].Message, user)
				require.Error(t, changes[i].Err)
			}
		})
	}
}

func TestExecutor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.allow("{kind: ServiceAccount, name: executor, namespace: NS}", "[get, list, patch, create]")
	config := plane.ForTest(t).Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("system:serviceaccount:%s:executor", f.Namespace),
		Groups: []string{"system:authenticated"}}
	f.engine = apply.New(newClient(t, config), apply.Options{})
	var changes []apply.Change
	require.Eventually(t, func() bool {
		changes = f.apply(f.configMap("a", "{k: v}"),
			f.object("{apiVersion: v1, kind: Secret, metadata: {name: x, namespace: NS}}")) // of the same wave
		return changes[0].Done()
	}, deadline, 50*time.Millisecond)
	require.Equal(t, v1alpha1.ReasonForbidden, changes[1].Reason)

	pruned := f.pruneOnce(v1alpha1.DeletePolicy{})
	for _, change := range pruned {
		if change.Object.Kind == "Secret" {
			require.Equal(t, apply.Released, change.Action, "an object that was never applied and cannot be read does not block")
			continue
		}
		require.Equal(t, v1alpha1.ReasonForbidden, change.Reason, "an object that cannot be deleted stays recorded")
	}
	require.Len(t, f.inventory, 1)
}

func TestGate(t *testing.T) { testkit.Virtual(t, testGate) }

func testGate(t *testing.T) {
	f := newMemoryFixture(t)
	bad := f.object("{apiVersion: v1, kind: Service, metadata: {name: s}}")
	objects := []apply.Object{f.configMap("a", "{k: v}", wave(1)), f.configMap("b", "{k: v}", wave(2)),
		f.configMap("c", "{k: v}", wave(3)), bad}
	var waves []string
	gate := func(_ context.Context, wave []apply.Change) string {
		waves = append(waves, wave[0].Object.Name)
		if wave[0].Object.Name == "b" {
			return "b is not ready"
		}
		return ""
	}
	changes, err := f.engine.Apply(t.Context(), f.set(objects...), gate)
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, waves)
	require.False(t, changes.Done())
	require.Equal(t, apply.Skipped, changes.Changes[2].Action)
	require.Equal(t, v1alpha1.ReasonPending, changes.Changes[2].Reason)
	require.Equal(t, "b is not ready", changes.Changes[2].Message)
	require.Equal(t, v1alpha1.ReasonInvalid, changes.Changes[3].Reason, "an invalid manifest is reported at once")
	require.ErrorContains(t, changes.Err(), "metadata.namespace")
	require.True(t, f.isGone(objects[2].Manifest))
}

func TestPrune_NamespaceLast(t *testing.T) { testkit.Virtual(t, testPruneNamespaceLast) }

func testPruneNamespaceLast(t *testing.T) {
	f := newMemoryFixture(t)
	inner := f.object("{apiVersion: v1, kind: Namespace, metadata: {name: NS-inner}}")
	config := f.configMap("a", "{k: v}")
	config.Manifest.SetNamespace(inner.Manifest.GetName())
	f.apply(config, inner)
	f.prune(v1alpha1.DeletePolicy{})
	require.True(t, f.isGone(inner.Manifest) && f.isGone(config.Manifest))
	require.NoError(t, f.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: objectMeta(inner.Manifest.GetName())}))
}
