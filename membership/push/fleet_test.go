package push_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// account is a ServiceAccount of the member with all permissions, whose tokens can be revoked one by one.
type account struct {
	w       *world
	account *corev1.ServiceAccount
}

func (w *world) account() *account {
	w.t.Helper()
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pushed"}}
	require.NoError(w.t, client.IgnoreAlreadyExists(w.east.Create(w.t.Context(), a)))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}},
	}
	require.NoError(w.t, client.IgnoreAlreadyExists(w.east.Create(w.t.Context(), binding)))
	w.t.Cleanup(func() {
		for _, object := range []client.Object{binding, a} {
			require.NoError(w.t, client.IgnoreNotFound(w.east.Delete(context.Background(), object)))
		}
	})
	return &account{w, a}
}

// token returns a token that is valid until revoke is called. An API server accepts a revoked token for ten more
// seconds.
func (a *account) token(name string) (token string, revoke func()) {
	a.w.t.Helper()
	ctx := a.w.t.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.account.Namespace, Name: name}}
	require.NoError(a.w.t, a.w.east.Create(ctx, secret))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
	}}
	require.NoError(a.w.t, a.w.east.SubResource("token").Create(ctx, a.account, request))
	return request.Status.Token, func() { require.NoError(a.w.t, a.w.east.Delete(ctx, secret)) }
}

// waitUntilRevoked waits until the member rejects a token.
func (w *world) waitUntilRevoked(token string) {
	w.t.Helper()
	c, err := client.New(w.configBy(token), client.Options{Scheme: scheme})
	require.NoError(w.t, err)
	mustertest.Eventually(w.t, timeout, "a revoked token is rejected", func() error {
		if err := c.Get(w.t.Context(), client.ObjectKey{Name: "default"},
			&corev1.Namespace{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("want Unauthorized, got %w", err)
		}
		return nil
	})
}

func (w *world) configBy(token string) *rest.Config {
	return &rest.Config{Host: w.config.Host, TLSClientConfig: rest.TLSClientConfig{CAData: w.config.CAData},
		BearerToken: token}
}

// TestRunner_CalledByFleet runs the agent of a member through a fleet, from a Secret to the join and the leave, while
// the Secret is replaced repeatedly and Works change constantly.
func TestRunner_CalledByFleet(t *testing.T) {
	w := newWorld(t)
	const name = "fleet-east"
	ctx := t.Context()
	w.startManager(plane.ForTest(t).Config(), func(mgr manager.Manager) error {
		_, err := fleet.SetupWithManager(mgr,
			fleet.Options{Runners: []fleet.Runner{w.runner}, ProbeInterval: 500 * time.Millisecond})
		return err
	})

	a := w.account()
	first, revoke := a.token("token-0")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: name},
		StringData: map[string]string{kubeconfig.ServerKey: w.config.Host, kubeconfig.CAKey: string(w.config.CAData),
			kubeconfig.TokenKey: first},
	}
	require.NoError(t, w.hub.Create(ctx, secret))
	w.newMember(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true) })
	cluster := w.waitForPhase(name, v1alpha1.PhaseJoined)
	require.Equal(t, w.config.Host, cluster.Status.Endpoint.Server)
	w.send(name, "load")
	w.waitUntilApplied("load")
	before := w.hubConfig.Load()

	stop, last := w.changeRepeatedly(name, "load")
	old := []string{first}
	for i := range 3 {
		token, revokeNext := a.token("token-" + strconv.Itoa(i+1))
		secret.StringData = map[string]string{kubeconfig.TokenKey: token}
		require.NoError(t, w.hub.Update(ctx, secret))
		revoke()
		old, revoke = append(old, token), revokeNext
	}
	for _, token := range old[:len(old)-1] {
		w.waitUntilRevoked(token)
	}
	stop()
	mustertest.Eventually(t, timeout, "the last change is applied", func() error {
		config := &corev1.ConfigMap{}
		if err := w.east.Get(ctx, client.ObjectKey{Namespace: "default", Name: "load"}, config); err != nil {
			return err
		}
		if got := config.Data["n"]; got != last() {
			return fmt.Errorf("got %s, want %s", got, last())
		}
		return nil
	})
	require.Same(t, before, w.hubConfig.Load(), "the agent was not restarted")
	require.NoError(t,
		w.east.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "load"}}))
	w.waitUntilApplied("load") // the watch was opened again with the current credential

	w.remove(name)
	require.True(t,
		apierrors.IsNotFound(w.east.Get(ctx, client.ObjectKey{Namespace: "default", Name: "load"}, &corev1.ConfigMap{})))
	require.NoError(t, w.hub.Delete(ctx, secret))
	revoke()
	w.waitUntilClean()
}

// changeRepeatedly changes the ConfigMap of a Work repeatedly until stop is called. Then last returns its last content.
func (w *world) changeRepeatedly(member, name string) (stop func(), last func() string) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	n := 0
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			next := strconv.Itoa(n + 1)
			raw, err := json.Marshal(&corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string]string{"n": next},
			})
			if err != nil {
				panic(err)
			}
			work := &workv1alpha1.Work{}
			if err := w.hub.Get(ctx,
				client.ObjectKey{Namespace: membership.NamespaceFor(membership.DefaultNamespacePrefix, member), Name: name},
				work); err != nil {
				continue
			}
			work.Spec.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
			if w.hub.Update(ctx, work) == nil {
				n++
			}
			select {
			case <-ctx.Done():
			case <-time.After(4 * interval): // several changes for each credential
			}
		}
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	w.t.Cleanup(stop)
	return stop, func() string { return strconv.Itoa(n) }
}
