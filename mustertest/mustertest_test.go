package mustertest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/mustertest"
)

func TestAttributesOf(t *testing.T) {
	for _, test := range []struct {
		reason, request string
		want            mustertest.Attributes
	}{
		{"list", "GET /api/v1/pods", mustertest.Attributes{Verb: "list", Resource: "pods"}},
		{"list in a namespace", "GET /apis/work.muster.dev/v1alpha1/namespaces/a/works?limit=500",
			mustertest.Attributes{Verb: "list", Group: "work.muster.dev", Resource: "works", Namespace: "a"}},
		{"watch=true", "GET /apis/work.muster.dev/v1alpha1/works?watch=true", mustertest.Attributes{Verb: "watch",
			Group: "work.muster.dev", Resource: "works"}},
		{"watch=1", "GET /api/v1/pods?watch=1", mustertest.Attributes{Verb: "watch", Resource: "pods"}},
		{"get", "GET /apis/apps/v1/namespaces/a/deployments/b", mustertest.Attributes{Verb: "get", Group: "apps",
			Resource: "deployments", Namespace: "a", Name: "b"}},
		{"subresource", "PATCH /apis/work.muster.dev/v1alpha1/namespaces/a/works/b/status",
			mustertest.Attributes{Verb: "patch", Group: "work.muster.dev", Resource: "works/status", Namespace: "a", Name: "b"}},
		{"create", "POST /api/v1/namespaces/a/events", mustertest.Attributes{Verb: "create", Resource: "events",
			Namespace: "a"}},
		{"update", "PUT /api/v1/nodes/b", mustertest.Attributes{Verb: "update", Resource: "nodes", Name: "b"}},
		{"delete", "DELETE /api/v1/nodes/b", mustertest.Attributes{Verb: "delete", Resource: "nodes", Name: "b"}},
		{"deletecollection", "DELETE /api/v1/namespaces/a/pods",
			mustertest.Attributes{Verb: "deletecollection", Resource: "pods", Namespace: "a"}},
		{"list of namespaces", "GET /api/v1/namespaces", mustertest.Attributes{Verb: "list", Resource: "namespaces"}},
		{"the namespace of a Namespace is its name, as in RBAC", "DELETE /api/v1/namespaces/a",
			mustertest.Attributes{Verb: "delete", Resource: "namespaces", Namespace: "a", Name: "a"}},
		{"the namespace of a subresource of a Namespace is its name", "PUT /api/v1/namespaces/a/finalize",
			mustertest.Attributes{Verb: "update", Resource: "namespaces/finalize", Namespace: "a", Name: "a"}},
		{"discovery", "GET /apis", mustertest.Attributes{}},
		{"discovery of a version", "GET /apis/apps/v1", mustertest.Attributes{}},
		{"discovery of the core", "GET /api/v1", mustertest.Attributes{}},
		{"a path outside of the APIs", "GET /openapi/v3", mustertest.Attributes{}},
		{"the root", "GET /", mustertest.Attributes{}},
	} {
		require.Equal(t, test.want, mustertest.AttributesOf(requestOf(t, test.request)), "%s: %s", test.reason, test.request)
	}
}

func TestRequestCounter_CountsWrites(t *testing.T) {
	var served server
	w := &mustertest.RequestCounter{}
	transport := w.Wrap(&served)
	require.Empty(t, w.Writes(), "no request was sent")
	for _, request := range []string{
		"GET /api/v1/pods", "GET /api/v1/pods", "POST /api/v1/namespaces/a/pods", "PATCH /api/v1/namespaces/a/pods/b/status",
		"POST /api/v1/namespaces/a/events",
	} {
		require.True(t, send(t, transport, request))
	}
	require.EqualValues(t, 5, served)
	require.Equal(t, 2, w.Count("GET pods"))
	require.Equal(t, map[string]int{"POST pods": 1, "PATCH pods/status": 1}, w.Writes(),
		"reads and Events are not counted as writes")
	w.Reset()
	require.Zero(t, w.Count("GET pods"))
	require.Empty(t, w.Writes())
}

func TestCrash(t *testing.T) {
	const get, patch, event = "GET /api/v1/pods", "PATCH /api/v1/nodes/a/status", "POST /api/v1/namespaces/a/events"
	for _, test := range []struct {
		reason string
		at     int
		loss   mustertest.Loss
		served server
	}{
		{"a write whose response is lost has an effect", 2, mustertest.ResponseLost, 5},
		{"a write whose request is lost has no effect", 2, mustertest.RequestLost, 4},
		{"a client without a crash sends all requests", 0, mustertest.RequestLost, 8},
	} {
		var served server
		c := mustertest.NewCrash(test.at, test.loss)
		transport := c.Wrap(&served)
		for _, request := range []string{get, patch, event, get} {
			require.True(t, send(t, transport, request), test.reason)
		}
		require.Empty(t, c.Request(), test.reason)
		for _, request := range []string{patch, get, event, patch} {
			require.Equal(t, test.at == 0, send(t, transport, request), "%s: %s", test.reason, request)
		}
		require.Equal(t, test.served, served, test.reason)
		require.Equal(t, test.at, c.At())
		if test.at == 0 {
			require.Equal(t, 3, c.Writes(), test.reason)
			continue
		}
		<-c.Done()
		require.Equal(t, "PATCH nodes/status", c.Request(), test.reason)
		require.Equal(t, 2, c.Writes(), test.reason)
	}
}

func TestEventually_TimeoutAndSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started, calls := time.Now(), 0
		failures := failuresOf(t, func(t testing.TB) {
			mustertest.Eventually(t, time.Minute, "the shop is open", func() error {
				calls++
				return errors.New("the shop is closed")
			})
		})
		require.Less(t, calls, 500, "Eventually polls less often than every 100 ms")
		require.Equal(t, []string{"expected within 1m0s: the shop is open: the shop is closed"}, failures)
		require.Less(t, time.Since(started), time.Minute+time.Second)

		started = time.Now()
		failures = failuresOf(t, func(t testing.TB) {
			mustertest.Eventually(t, time.Minute, "the shop is open", func() error {
				if time.Since(started) < 10*time.Second {
					return errors.New("the shop is closed")
				}
				return nil
			})
		})
		require.Empty(t, failures)
		require.Less(t, time.Since(started), 10*time.Second+200*time.Millisecond)
	})
}

func TestQuiet_WaitsAfterTheLastChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		failures := failuresOf(t, func(t testing.TB) {
			mustertest.Quiet(t, time.Second, func() int { return int(min(time.Since(started), 5*time.Second)) })
		})
		require.Empty(t, failures)
		require.Greater(t, time.Since(started), 6*time.Second, "a second after the last change")

		started = time.Now()
		failures = failuresOf(t, func(t testing.TB) {
			mustertest.Quiet(t, time.Second, func() bool { return time.Since(started)%time.Second < time.Second/2 })
		})
		require.Len(t, failures, 1)
		require.Contains(t, failures[0], "expected within 1m0s: no change for 1s")
	})
}

func TestRun_EndOfFunctions(t *testing.T) {
	untilEnd := func(ctx context.Context) error { <-ctx.Done(); return nil }
	for _, test := range []struct {
		reason string
		starts []func(context.Context) error
		want   []string
	}{
		{"all functions end with their context", []func(context.Context) error{untilEnd, untilEnd}, nil},
		{"a function ends with an error", []func(context.Context) error{untilEnd, func(context.Context) error {
			return errors.New("no power")
		}}, []string{"the shop ended with an error: no power"}},
		{"a function does not end in time", []func(context.Context) error{func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Hour)
			return nil
		}}, []string{"the shop did not end within 2m0s"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			failures := failuresOf(t, func(t testing.TB) {
				stop := mustertest.Run(t, "the shop", test.starts...)
				stop()
				stop() // The end of the test calls stop again.
			})
			require.Equal(t, test.want, failures, test.reason)
			<-time.After(2 * time.Hour) // The function that does not end in time ends after an hour.
		})
		synctest.Test(t, func(t *testing.T) {
			require.Equal(t, test.want, failuresOf(t, func(t testing.TB) { mustertest.Run(t, "the shop", test.starts...) }),
				"%s, at the end of the test", test.reason)
			<-time.After(2 * time.Hour)
		})
	}
}

func TestGrantFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "role.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	admin := fake.NewClientBuilder().WithScheme(mustertest.Scheme()).Build()
	write("---\nkind: ClusterRole\nmetadata: {name: shop}\n---\nkind: Role\nmetadata: {name: shop, namespace: " +
		"stock}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n")
	for range 2 {
		require.NoError(t, mustertest.GrantFiles(t.Context(), admin, "keeper", file))
	}
	var role rbacv1.Role
	require.NoError(t, admin.Get(t.Context(), named("stock", "shop"), &role))
	require.Equal(t, []string{"pods"}, role.Rules[0].Resources)
	keeper := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "keeper"}}
	var binding rbacv1.RoleBinding
	require.NoError(t, admin.Get(t.Context(), named("stock", "keeper-shop"), &binding))
	require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "shop"}, binding.RoleRef)
	require.Equal(t, keeper, binding.Subjects)
	var clusterBinding rbacv1.ClusterRoleBinding
	require.NoError(t, admin.Get(t.Context(), named("", "keeper-shop"), &clusterBinding))
	require.Equal(t, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "shop"}, clusterBinding.RoleRef)
	require.Equal(t, keeper, clusterBinding.Subjects)

	for text, want := range map[string]string{
		"kind: Secret":                          `contains a "Secret"`,
		"kind: Role\nruls: []":                  "ruls",
		"kind: [":                               "role.yaml",
		"kind: ClusterRole\n---\nkind: Pod\n":   `contains a "Pod"`,
		"---\nkind: ClusterRole\n---\nkind: []": "role.yaml",
	} {
		write(text)
		require.ErrorContains(t, mustertest.GrantFiles(t.Context(), admin, "keeper", file), want)
	}
	require.ErrorIs(t, mustertest.GrantFiles(t.Context(), admin, "keeper", "nowhere.yaml"), os.ErrNotExist)
}

func named(namespace, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: name}
}

func TestClock_Move(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c mustertest.Clock
		started := c.Now()
		require.Equal(t, time.Now(), started)
		c.Move(time.Hour)
		require.Equal(t, time.Hour, c.Since(started))
		c.Move(-2 * time.Hour)
		require.Equal(t, -time.Hour, c.Since(started))
	})
}
