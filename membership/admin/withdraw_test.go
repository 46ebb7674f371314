package admin

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestUnjoin_Again ends an Unjoin early, after each of its requests, deletes the MemberCluster with all its objects,
// and calls Unjoin again. No hub runs, so the MemberCluster is deleted immediately.
func TestUnjoin_Again(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "again"}}
	f.create(space)
	gone := rest.CopyConfig(f.config)
	gone.Host = "https://127.0.0.1:1"
	const doing = "remove the hub's access from the member"
	for _, test := range []struct {
		reason   string
		hub      *rest.Config
		first    UnjoinOptions
		broken   bool // whether the credential of the hub is invalid
		fails    func(error) bool
		second   UnjoinOptions
		reported string // by the second
	}{
		{reason: "first call does not wait", first: UnjoinOptions{Timeout: -1}},
		{reason: "first call times out", first: UnjoinOptions{Timeout: 1}, fails: isA[*TimeoutError]},
		{reason: "member unreachable in the first call", first: UnjoinOptions{Member: gone}, fails: isA[*UnreachableError]},
		{reason: "member unreachable in both calls, forced", first: UnjoinOptions{Member: gone},
			fails:  isA[*UnreachableError],
			second: UnjoinOptions{Member: gone, Force: true}, reported: "the access stays: "},
		{reason: "hub fails after the access was removed", hub: failing(f.config, http.MethodDelete, "secrets"),
			fails: isA[*UnreachableError], reported: "the access was removed already"},
		{reason: "invalid credential of the hub, kubeconfig in the second call", broken: true,
			fails:  apierrors.IsUnauthorized,
			second: UnjoinOptions{Member: f.config}},
		{reason: "invalid credential of the hub, forced", broken: true, fails: apierrors.IsUnauthorized,
			second: UnjoinOptions{Force: true}, reported: "the access stays: "},
	} {
		t.Run(test.reason, func(t *testing.T) {
			f := *f
			f.t = t
			mc, err := Join(ctx, f.config, f.config, JoinOptions{Name: "east", MemberNamespace: space.Name, Timeout: -1})
			require.NoError(t, err)
			owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace,
				Name: "belongs",
				OwnerReferences: []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "MemberCluster",
					Name: mc.Name, UID: mc.UID}}}}
			f.create(owned)
			var secret corev1.Secret
			require.True(t, f.get(&secret, membership.ConnectionNamespace, "east-kubeconfig"))
			if test.broken {
				secret.Data[kubeConfigKey] = bytes.Replace(secret.Data[kubeConfigKey], []byte("token: "), []byte("token: x"), 1)
				require.NoError(t, f.c.Update(ctx, &secret))
			}
			hub := test.hub
			if hub == nil {
				hub = f.config
			}
			test.first.MemberNamespace, test.second.MemberNamespace = space.Name, space.Name
			_, err = Unjoin(ctx, hub, "east", test.first)
			if test.fails == nil {
				require.NoError(t, err)
			} else {
				require.True(t, test.fails(err), err)
			}
			mustertest.Holds(f.t, timeLimit, "objects owned by the MemberCluster are deleted",
				func() bool { return !f.get(owned, owned.Namespace, owned.Name) })
			require.True(t, f.get(&secret, membership.ConnectionNamespace, "east-kubeconfig"),
				"the kubeconfig Secret of the member stays")

			reported := &steps{}
			test.second.Progress = reported.record
			_, err = Unjoin(ctx, f.config, "east", test.second)
			require.NoError(t, err)
			details := strings.Join(reported.details(doing), "\n")
			require.Contains(t, details, test.reported)
			stays := test.second.Force
			require.Equal(t, stays, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName), details)
			require.False(t, f.get(&secret, membership.ConnectionNamespace, "east-kubeconfig"))
			if stays {
				require.NoError(t, Clean(ctx, f.config, CleanOptions{Namespace: space.Name}))
			}
		})
	}

	reported := &steps{}
	_, err := Unjoin(ctx, f.config, "east", UnjoinOptions{Progress: reported.record})
	require.NoError(t, err, "Unjoin of a member that does not exist succeeds")
	require.Contains(t, reported.details(doing),
		"the hub has no kubeconfig Secret of Join; use the member's own kubeconfig "+
			"to remove the objects of Join from the member",
		"but remaining objects are reported after a deletion by other means")
}

// TestUnjoin_Concurrent checks two concurrent calls.
func TestUnjoin_Concurrent(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "together"}}
	f.create(space)
	for range 3 {
		_, err := Join(ctx, f.config, f.config, JoinOptions{Name: "east", MemberNamespace: space.Name, Timeout: -1})
		require.NoError(t, err)
		ended := make(chan error)
		for range 2 {
			go func() {
				_, err := Unjoin(ctx, f.config, "east", UnjoinOptions{MemberNamespace: space.Name})
				ended <- err
			}()
		}
		require.NoError(t, errors.Join(<-ended, <-ended))
		require.False(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName))
		require.False(t, f.get(&corev1.Secret{}, membership.ConnectionNamespace, "east-kubeconfig"))
	}
}

// TestUnjoin_JoinedAgain checks that Unjoin keeps access that a Join has granted again during the Unjoin.
func TestUnjoin_JoinedAgain(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "rejoined"}})
	options := JoinOptions{Name: "east", MemberNamespace: "rejoined", Timeout: -1}
	_, err := Join(ctx, f.config, f.config, options)
	require.NoError(t, err)
	u := &unjoin{UnjoinOptions: UnjoinOptions{MemberNamespace: "rejoined",
		ConnectionNamespace: membership.ConnectionNamespace}, name: "east", hub: f.c}
	_, err = u.begin(ctx)
	require.NoError(t, err)
	require.NoError(t, u.mark(ctx))
	_, err = Join(ctx, f.config, f.config, options)
	require.NoError(t, err)
	require.NoError(t, u.cleanUp(ctx))
	require.True(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName))
	var secret corev1.Secret
	require.True(t, f.get(&secret, membership.ConnectionNamespace, "east-kubeconfig"))
	require.NotContains(t, secret.Annotations, endingAnnotation)
}

// TestUnjoin_Force checks that only the deadline of the forced leave is shortened.
func TestUnjoin_Force(t *testing.T) {
	testkit.Virtual(t, testUnjoinForce)
}

func testUnjoinForce(t *testing.T) {
	f := newFleet(t, newMemory(t))
	ctx := t.Context()
	f.create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "stays",
		Finalizers: []string{"example.com/keep"}}})
	_, err := Unjoin(ctx, f.config, "stays", UnjoinOptions{Keep: true, Force: true, Timeout: 1})
	var invalid *membership.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, "Force", invalid.Field)
	require.Equal(t, v1alpha1.StateJoin, f.member("stays").Spec.State, "invalid options change nothing")

	_, err = Unjoin(ctx, failing(f.config, http.MethodDelete, "memberclusters"), "stays", UnjoinOptions{Force: true})
	require.Error(t, err)
	require.Equal(t, int32(900), f.member("stays").Spec.Leave.DeadlineSeconds,
		"the deadline of a leave that was not requested is unchanged")
	for _, reason := range []string{"first forced leave", "second forced leave"} {
		_, err = Unjoin(ctx, f.config, "stays", UnjoinOptions{Force: true, Timeout: -1})
		require.NoError(t, err, reason)
		require.Equal(t, int32(1), f.member("stays").Spec.Leave.DeadlineSeconds, reason)
	}
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// failing returns a config with which some requests fail.
func failing(config *rest.Config, method, resource string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Method == method && strings.Contains(r.URL.Path, "/"+resource+"/") {
				return nil, context.DeadlineExceeded
			}
			return next.RoundTrip(r)
		})
	})
	return config
}
