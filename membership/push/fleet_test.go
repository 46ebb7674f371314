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
	h       *testHub
	account *corev1.ServiceAccount
}

func (h *testHub) account() *account {
	h.T.Helper()
	a := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pushed"}}
	require.NoError(h.T, client.IgnoreAlreadyExists(h.east.Create(h.T.Context(), a)))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: a.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: a.Namespace, Name: a.Name}},
	}
	require.NoError(h.T, client.IgnoreAlreadyExists(h.east.Create(h.T.Context(), binding)))
	h.T.Cleanup(func() {
		for _, object := range []client.Object{binding, a} {
			require.NoError(h.T, client.IgnoreNotFound(h.east.Delete(context.Background(), object)))
		}
	})
	return &account{h, a}
}

// token returns a token that is valid until revoke is called. An API server accepts a revoked token for ten more
// seconds.
func (a *account) token(name string) (token string, revoke func()) {
	a.h.T.Helper()
	ctx := a.h.T.Context()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: a.account.Namespace, Name: name}}
	require.NoError(a.h.T, a.h.east.Create(ctx, secret))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: name, UID: secret.UID},
	}}
	require.NoError(a.h.T, a.h.east.SubResource("token").Create(ctx, a.account, request))
	return request.Status.Token, func() { require.NoError(a.h.T, a.h.east.Delete(ctx, secret)) }
}

// waitUntilRevoked waits until the member rejects a token.
func (h *testHub) waitUntilRevoked(token string) {
	h.T.Helper()
	c, err := client.New(h.configBy(token), client.Options{Scheme: scheme})
	require.NoError(h.T, err)
	mustertest.Eventually(h.T, timeout, "a revoked token is rejected", func() error {
		if err := c.Get(h.T.Context(), client.ObjectKey{Name: "default"},
			&corev1.Namespace{}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("want Unauthorized, got %w", err)
		}
		return nil
	})
}

func (h *testHub) configBy(token string) *rest.Config {
	return &rest.Config{Host: h.memberConfig.Host, TLSClientConfig: rest.TLSClientConfig{CAData: h.memberConfig.CAData},
		BearerToken: token}
}

// TestRunner_CalledByFleet runs the agent of a member through a fleet, from a Secret to the join and the leave, while
// the Secret is replaced repeatedly and Works change constantly.
func TestRunner_CalledByFleet(t *testing.T) {
	h := newHub(t)
	const name = "fleet-east"
	ctx := t.Context()
	h.startManager(plane.ForTest(t).Config(), func(mgr manager.Manager) error {
		_, err := fleet.SetupWithManager(mgr,
			fleet.Options{Runners: []fleet.Runner{h.runner}, ProbeInterval: 500 * time.Millisecond})
		return err
	})

	a := h.account()
	first, revoke := a.token("token-0")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: name},
		StringData: map[string]string{kubeconfig.ServerKey: h.memberConfig.Host,
			kubeconfig.CAKey: string(h.memberConfig.CAData), kubeconfig.TokenKey: first},
	}
	h.Create(secret)
	h.newMember(name, func(s *v1alpha1.MemberClusterSpec) { s.Accepted = new(true) })
	cluster := h.waitForPhase(name, v1alpha1.PhaseJoined)
	require.Equal(t, h.memberConfig.Host, cluster.Status.Endpoint.Server)
	h.send(name, "load")
	h.waitUntilApplied("load")
	before := h.hubConfig.Load()

	stop, last := h.changeRepeatedly(name, "load")
	old := []string{first}
	for i := range 3 {
		token, revokeNext := a.token("token-" + strconv.Itoa(i+1))
		secret.StringData = map[string]string{kubeconfig.TokenKey: token}
		require.NoError(t, h.Client.Update(ctx, secret))
		revoke()
		old, revoke = append(old, token), revokeNext
	}
	for _, token := range old[:len(old)-1] {
		h.waitUntilRevoked(token)
	}
	stop()
	mustertest.Eventually(t, timeout, "the last change is applied", func() error {
		config := &corev1.ConfigMap{}
		if err := h.east.Get(ctx, client.ObjectKey{Namespace: "default", Name: "load"}, config); err != nil {
			return err
		}
		if got := config.Data["n"]; got != last() {
			return fmt.Errorf("got %s, want %s", got, last())
		}
		return nil
	})
	require.Same(t, before, h.hubConfig.Load(), "the agent was not restarted")
	require.NoError(t,
		h.east.Delete(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "load"}}))
	h.waitUntilApplied("load") // the watch was opened again with the current credential

	h.remove(name)
	require.True(t,
		apierrors.IsNotFound(h.east.Get(ctx, client.ObjectKey{Namespace: "default", Name: "load"}, &corev1.ConfigMap{})))
	require.NoError(t, h.Client.Delete(ctx, secret))
	revoke()
	h.waitUntilClean()
}

// changeRepeatedly changes the ConfigMap of a Work repeatedly until stop is called. Then last returns its last content.
func (h *testHub) changeRepeatedly(member, name string) (stop func(), last func() string) {
	h.T.Helper()
	ctx, cancel := context.WithCancel(h.T.Context())
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
			if err := h.Client.Get(ctx,
				client.ObjectKey{Namespace: membership.NamespaceFor(membership.DefaultNamespacePrefix, member), Name: name},
				work); err != nil {
				continue
			}
			work.Spec.Manifests = []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: raw}}}
			if h.Client.Update(ctx, work) == nil {
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
	h.T.Cleanup(stop)
	return stop, func() string { return strconv.Itoa(n) }
}
