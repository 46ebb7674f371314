package memberpolicy_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/tenancy/crds"
	"github.com/muster-sdk/muster/tenancy/memberpolicy"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "memberpolicy"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

func watcher(t *testing.T, member *rest.Config, required bool) *memberpolicy.Watcher {
	t.Helper()
	w, err := memberpolicy.NewWatcher(memberpolicy.Options{Member: member, Required: required})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	t.Cleanup(func() { cancel(); require.NoError(t, <-ended) })
	return w
}

// TestWatcher checks a member before and after it serves MemberPolicies, and agents with and without the permissions to
// read them.
func TestWatcher(t *testing.T) {
	p := plane.ForTest(t)
	c := mustertest.Client(t, p.Config(), mustertest.Scheme(v1alpha1.AddToScheme))
	shop := memberpolicy.Request{Hub: "hub", Object: object("", "ConfigMap", "shop", "a")}

	// A member that does not serve MemberPolicies has none, also for an agent without permissions.
	for _, member := range []*rest.Config{p.Config(), p.User("stranger")} {
		rules, err := watcher(t, member, false).Current(t.Context())
		require.NoError(t, err)
		require.Empty(t, rules.Reject(shop))
		rules, err = watcher(t, member, true).Current(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, rules.Reject(shop))
	}

	require.NoError(t, crds.InstallOnMember(t.Context(), c))
	unpermitted := watcher(t, p.User("stranger"), false)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"memberpolicies"}, Verbs: []string{"list", "watch"},
	}}}
	require.NoError(t, c.Create(t.Context(), role))
	require.NoError(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
	}))
	permitted := watcher(t, p.User("reader"), false)
	requireRules := func(accepted bool) {
		t.Helper()
		mustertest.Eventually(t, time.Minute, "the rules in force", func() error {
			rules, err := permitted.Current(t.Context())
			if err == nil && (rules.Reject(shop) == "") != accepted {
				return errors.New("the rules are not in force yet")
			}
			return err
		})
	}
	requireRules(true)
	policy := policy("p", v1alpha1.MemberPolicyRule{Kinds: kinds(deployments), Namespaces: []string{"shop"}})
	changed := permitted.Changed()
	require.NoError(t, c.Create(t.Context(), &policy))
	<-changed
	requireRules(false)
	policy.Spec.Rules[0].Kinds[0] = everyKind
	require.NoError(t, c.Update(t.Context(), &policy))
	requireRules(true)
	policy.Spec.Rules = nil
	require.NoError(t, c.Update(t.Context(), &policy))
	requireRules(false)
	require.NoError(t, c.Delete(t.Context(), &policy))
	requireRules(true)

	_, err := unpermitted.Current(t.Context())
	require.True(t, apierrors.IsForbidden(err),
		"an agent that may not read the policies must not assume that there are none: %v", err)
}

// TestMemberPolicy_Invalid checks that the API server rejects rules that accept nothing or are misspelled.
func TestMemberPolicy_Invalid(t *testing.T) {
	c := mustertest.Client(t, plane.ForTest(t).Config(), mustertest.Scheme(v1alpha1.AddToScheme), crds.InstallOnMember)
	in := func(namespace string) v1alpha1.MemberPolicyRule {
		return v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind), Namespaces: []string{namespace}}
	}
	for _, test := range []struct {
		name string
		rule v1alpha1.MemberPolicyRule
		want string
	}{
		{"neither namespaces nor clusterScoped", v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind)},
			"namespaces or clusterScoped must be set"},
		{"no kinds", v1alpha1.MemberPolicyRule{ClusterScoped: true}, "spec.rules[0].kinds"},
		{"a namespace in capitals", in("Shop"), "spec.rules[0].namespaces[0]"},
		{"a namespace with a star in the middle", in("a*b"), "spec.rules[0].namespaces[0]"},
	} {
		invalid := policy("invalid", test.rule)
		err := c.Create(t.Context(), &invalid)
		require.True(t, apierrors.IsInvalid(err), "%s: %v", test.name, err)
		require.ErrorContains(t, err, test.want)
	}
	for _, namespace := range []string{"*", "team-*", "a", "a-1"} {
		valid := policy("valid", in(namespace))
		require.NoError(t, c.Create(t.Context(), &valid))
		require.NoError(t, c.Delete(t.Context(), &valid))
	}
}
