package admin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// requireRights calls a function as users without one of its permissions each, in the order in which the function uses
// them, and as a user with all of them. Each call continues from the state of the previous one.
func (f *fleet) requireRights(name string, all []right, call func(user *rest.Config) error) {
	f.t.Helper()
	for i, missing := range all {
		user := f.user(fmt.Sprintf("%s-less-%d", name, i), rulesOf(slices.Delete(slices.Clone(all), i, i+1)))
		text := fmt.Sprintf("cannot %s resource %q", missing.verbs, missing.resource)
		var last error
		mustertest.Holds(f.t, timeLimit, "an error without the right to "+missing.String(), func() bool {
			last = call(user)
			return last == nil || strings.Contains(last.Error(), text)
		})
		require.Error(f.t, last, "want an error without the right to %s", missing)
	}
	user := f.user(name, rulesOf(all))
	var last error
	require.Eventually(f.t, func() bool { last = call(user); return last == nil }, timeLimit, poll, "%s: %v", name, last)
}

func rulesOf(rights []right) (rules []rbacv1.PolicyRule) {
	for _, r := range rights {
		rules = append(rules, rule(r.group, r.resource, r.verbs))
	}
	return rules
}

func TestDecideRights(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}},
		&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}})
	request := &v1alpha1.JoinRequest{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "request"},
		Spec: v1alpha1.JoinRequestSpec{ClusterID: "x", Name: "east", ClaimKey: []byte("x"), Signature: []byte("x"),
			Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialToken}},
	}
	f.create(request)
	request.Status = v1alpha1.JoinRequestStatus{Answer: v1alpha1.AnswerHeld, MemberName: "east"}
	require.NoError(t, f.c.Status().Update(t.Context(), request))
	group := v1alpha1.GroupVersion.Group
	f.requireRights("decide", []right{
		{group: group, resource: "memberclusters", verbs: "get"}, {group: group, resource: "joinrequests", verbs: "list"},
		{group: group, resource: "memberclusters", verbs: "patch"},
	}, func(user *rest.Config) error {
		if _, err := Deny(t.Context(), user, "request", DecideOptions{}); err != nil {
			return err
		}
		_, err := Accept(t.Context(), user, "request", DecideOptions{})
		return err
	})
	require.True(t, *f.member("east").Spec.Accepted)
}

func TestUnjoinRights(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	const namespace = "unjoin-rights"
	join := func() {
		_, err := Join(ctx, f.config, f.config, JoinOptions{Name: "east", MemberNamespace: namespace, Timeout: -1})
		require.NoError(t, err)
	}
	join()
	minimal := []right{ // on one cluster, which is hub and member
		{resource: "namespaces", verbs: "get"},
		{group: v1alpha1.GroupVersion.Group, resource: "memberclusters", verbs: "get"},
		{resource: "secrets", verbs: "get"},
		{resource: "secrets", verbs: "patch"},
		{group: v1alpha1.GroupVersion.Group, resource: "memberclusters", verbs: "delete"},
		{group: rbacv1.GroupName, resource: "clusterrolebindings", verbs: "get"},
		{group: rbacv1.GroupName, resource: "clusterrolebindings", verbs: "delete"},
		{resource: "secrets", verbs: "delete"},
	}
	unjoin := func(user *rest.Config) error {
		_, err := Unjoin(ctx, user, "east", UnjoinOptions{Member: user, MemberNamespace: namespace})
		return err
	}
	f.requireRights("unjoin", minimal, unjoin)
	require.False(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName))
	require.True(t, f.get(&corev1.Namespace{}, "", namespace),
		"without the right to list its content, the namespace stays")

	join()
	full := rulesOf(minimal)
	full = append(full, rule("", "namespaces", "patch", "delete"))
	for _, list := range []string{"secrets", "serviceaccounts", "configmaps", "pods"} {
		full = append(full, rule("", list, "list"))
	}
	user := f.user("unjoin-whole", full)
	mustertest.Holds(f.t, timeLimit, "Unjoin succeeds with the documented rights",
		func() bool { return unjoin(user) == nil })
	mustertest.Holds(f.t, timeLimit, "the namespace is deleted",
		func() bool { return !f.get(&corev1.Namespace{}, "", namespace) })
}

// TestRegisterRights checks that the documented permissions of Register on a member are sufficient, also to wait, and
// that without any of them nothing is changed.
func TestRegisterRights(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	f.run()
	const namespace = "register-rights"
	bootstrap := f.token(v1alpha1.JoinTokenSpec{})
	rights := []right{
		{resource: "namespaces", verbs: "get"}, {resource: "namespaces", verbs: "create"},
		{resource: "secrets", verbs: "get"}, {resource: "secrets", verbs: "create"}, {resource: "secrets", verbs: "update"},
		{group: rbacv1.GroupName, resource: "clusterrolebindings", verbs: "get"},
	}
	register := func(user *rest.Config) error {
		return Register(t.Context(), user, bootstrap, RegisterOptions{Namespace: namespace, Wait: time.Second})
	}
	var failed *PreflightError
	for i, missing := range rights {
		user := f.user(fmt.Sprintf("register-less-%d", i), rulesOf(slices.Delete(slices.Clone(rights), i, i+1)))
		var last error
		mustertest.Holds(f.t, timeLimit, "an error without the right to "+missing.String(), func() bool {
			last = register(user)
			return errors.As(last, &failed) && len(failed.Findings) == 1 &&
				(strings.Contains(last.Error(), "no permission to "+missing.verbs+" "+missing.resource) ||
					strings.Contains(last.Error(), "cannot "+missing.verbs))
		})
	}
	require.False(t, f.get(&corev1.Namespace{}, "", namespace), "a failed preflight check changes nothing")
	user := f.user("register", rulesOf(rights))
	t.Cleanup(func() { f.discard(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}) })
	var timeout *TimeoutError
	mustertest.Holds(f.t, timeLimit, "Register waits for the agent",
		func() bool { return errors.As(register(user), &timeout) })
	require.Contains(t, timeout.Reason, "no agent has started")
}
