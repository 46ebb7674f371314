package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestJoin registers a member, waits until it has joined, and removes it with all objects. Another package runs the
// hub's agents; this test runs an agent with the kubeconfig that Join has stored.
func TestJoin(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	f.run()
	ctx, reported := t.Context(), &steps{}
	options := JoinOptions{Name: "east", Labels: map[string]string{"region": "eu"}, Timeout: 2 * time.Second,
		Progress: reported.record}

	_, err := Join(ctx, f.config, f.config, options)
	var timeout *TimeoutError
	require.ErrorAs(t, err, &timeout)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Contains(t, timeout.Reason, v1alpha1.ReasonWaitingForAgent, "the reason of the hub's condition")

	mc := f.member("east")
	want := v1alpha1.MemberClusterSpec{
		Accepted: new(true), State: v1alpha1.StateJoin, ClusterID: f.id(), HeartbeatPeriodSeconds: 60,
		JoinMode: v1alpha1.JoinPush,
		KubeConfigSecretRef: &v1alpha1.KubeConfigSecretRef{Namespace: membership.ConnectionNamespace,
			Name: "east-kubeconfig", Key: "value"},
		Leave: v1alpha1.LeavePolicy{Resources: v1alpha1.DeleteResources, DeadlineSeconds: 900},
	}
	require.Empty(t, cmp.Diff(want, mc.Spec))
	require.Equal(t, "eu", mc.Labels["region"])
	var secret corev1.Secret
	require.True(t, f.get(&secret, membership.ConnectionNamespace, "east-kubeconfig"))
	require.Equal(t, mc.UID, secret.OwnerReferences[0].UID, "the Secret is deleted with the MemberCluster")
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	require.NoError(t, err)
	memberCluster, err := connect(Member, config)
	require.NoError(t, err)
	id, err := memberCluster.id(ctx)
	require.NoError(t, err)
	require.Equal(t, f.id(), id, "the kubeconfig connects to the member")

	// A second Join writes nothing.
	versions := func() (all []string) {
		for _, object := range []client.Object{
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: "east-kubeconfig"}},
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: accessName}},
			&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: accessName}},
			&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}},
		} {
			require.True(t, f.get(object, object.GetNamespace(), object.GetName()))
			all = append(all, object.GetResourceVersion())
		}
		return all
	}
	before := versions()
	options.Timeout = -1
	_, err = Join(ctx, f.config, f.config, options)
	require.NoError(t, err)
	require.Equal(t, before, versions())
	require.Equal(t, "the member was registered already", (*reported)[len(*reported)-1].Detail)

	// A second name for the same cluster is an error.
	other := options
	other.Name = "west"
	_, err = Join(ctx, f.config, f.config, other)
	require.ErrorIs(t, err, ErrClusterTaken)

	bootstrap := f.token(v1alpha1.JoinTokenSpec{AutoAccept: true})
	member := *f
	member.config = config
	stop := member.runAgent("east", bootstrap)
	options.Timeout = timeLimit
	mc, err = Join(ctx, f.config, f.config, options)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.PhaseJoined, mc.Status.Phase)

	leave, err := Unjoin(ctx, f.config, "east", UnjoinOptions{Progress: reported.record})
	require.NoError(t, err)
	require.NotNil(t, leave)
	require.False(t, leave.Forced)
	// The leave ends on the hub before the agent has deleted its Secrets.
	mustertest.Holds(f.t, timeLimit, "the agent deletes its Secrets", func() bool {
		var secrets corev1.SecretList
		require.NoError(t, f.c.List(ctx, &secrets, client.InNamespace(agent.DefaultNamespace)))
		return !slices.ContainsFunc(secrets.Items, func(s corev1.Secret) bool { return s.Name != tokenSecret })
	})
	stop()
	require.False(t, f.get(&v1alpha1.MemberCluster{}, "", "east"))
	require.False(t, f.get(&corev1.Secret{}, membership.ConnectionNamespace, "east-kubeconfig"))
	require.False(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName))
	mustertest.Holds(f.t, timeLimit, "the ServiceAccount and its token are deleted", func() bool {
		return !f.get(&corev1.ServiceAccount{}, agent.DefaultNamespace, accessName) &&
			!f.get(&corev1.Secret{}, agent.DefaultNamespace, tokenSecret)
	})
	// The namespace stays if the first Unjoin found a Secret of the agent in it. Another one deletes it.
	leave, err = Unjoin(ctx, f.config, "east", UnjoinOptions{Member: f.config})
	require.NoError(t, err, "Unjoin of a member that does not exist succeeds")
	require.Nil(t, leave)
	mustertest.Holds(f.t, timeLimit, "the unused namespace is deleted",
		func() bool { return !f.get(&corev1.Namespace{}, "", agent.DefaultNamespace) })
}

// TestJoin_Concurrent checks two users who register one cluster concurrently, with different names, after the checks of
// both have succeeded.
func TestJoin_Concurrent(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	var joins []*join
	for _, name := range []string{"first", "second"} { // ordered by name if created in the same second
		mc := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1alpha1.MemberClusterSpec{ClusterID: "both"}}
		f.create(mc)
		joins = append(joins, &join{JoinOptions: JoinOptions{Name: name, ClusterID: "both"}, hub: f.c, cluster: mc})
	}
	require.ErrorIs(t, joins[1].alone(t.Context()), ErrClusterTaken)
	require.False(t, f.get(&v1alpha1.MemberCluster{}, "", "second"),
		"the second call deletes the MemberCluster that it created")
	require.NoError(t, joins[0].alone(t.Context()))
	require.True(t, f.get(&v1alpha1.MemberCluster{}, "", "first"))

	f.create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "third"},
		Spec: v1alpha1.MemberClusterSpec{ClusterID: "both"}})
	noDelete, err := connect(Hub, failing(f.config, http.MethodDelete, "memberclusters"))
	require.NoError(t, err)
	err = (&join{JoinOptions: JoinOptions{Name: "third", ClusterID: "both"}, hub: noDelete,
		cluster: f.member("third")}).alone(t.Context())
	require.ErrorIs(t, err, ErrClusterTaken, "the error is the same if the deletion fails")
	require.ErrorContains(t, err, "delete MemberCluster third", "the failed deletion is reported")
}

// TestJoin_LimitedRules grants the hub limited permissions, for a limited time.
func TestJoin_LimitedRules(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	options := JoinOptions{
		Name: "east", Timeout: -1, TokenLifetime: time.Hour,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}},
	}
	_, err := Join(ctx, f.config, f.config, options)
	require.NoError(t, err)
	require.False(t, f.get(&corev1.Secret{}, agent.DefaultNamespace, tokenSecret), "a token with a lifetime has no Secret")
	secret, err := connection(ctx, f.c, membership.ConnectionNamespace, "east")
	require.NoError(t, err)
	limited, end, err := follow(secret)
	require.NoError(t, err)
	defer end()
	_, err = limited.id(ctx)
	require.NoError(t, err)
	require.Error(t, limited.List(ctx, &corev1.SecretList{}), "the hub has only the permissions of the rules")

	options.Rules[0].Verbs = []string{"get", "list"}
	_, err = Join(ctx, f.config, f.config, options)
	require.NoError(t, err)
	mustertest.Holds(f.t, timeLimit, "the changed rules apply",
		func() bool { return limited.List(ctx, &corev1.NamespaceList{}) == nil })

	options.Rules = nil
	_, err = Join(ctx, f.config, f.config, options)
	require.ErrorContains(t, err, "unjoin the member first")

	_, err = Unjoin(ctx, f.config, "east", UnjoinOptions{Member: f.config, Timeout: timeLimit})
	require.NoError(t, err)
	mustertest.Holds(f.t, timeLimit, "the ClusterRole is deleted",
		func() bool { return !f.get(&rbacv1.ClusterRole{}, "", accessName) })
}

func TestJoin_InvalidOptions(t *testing.T) {
	for _, test := range []struct {
		reason  string
		options JoinOptions
		field   string
	}{
		{"no name", JoinOptions{}, "Name"},
		{"an invalid name", JoinOptions{Name: "East!"}, "Name"},
		{"both a ClusterRole and Rules",
			JoinOptions{Name: "east", ClusterRole: "edit", Rules: []rbacv1.PolicyRule{}}, "Rules"},
		{"a token lifetime below the minimum of API servers", JoinOptions{Name: "east", TokenLifetime: time.Minute},
			"TokenLifetime"},
	} {
		_, err := Join(t.Context(), &rest.Config{}, &rest.Config{}, test.options)
		var invalid *membership.InvalidError
		require.ErrorAs(t, err, &invalid, test.reason)
		require.Equal(t, test.field, invalid.Field, test.reason)
	}
}

func TestJoin_Preflight(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	unprivileged := f.plane.User("unprivileged")
	gone := rest.CopyConfig(f.config)
	gone.Host = "https://127.0.0.1:1"
	noHub := rest.CopyConfig(f.config)
	noHub.Wrap(without("membership.muster.dev"))
	insecure := rest.CopyConfig(f.config)
	insecure.TLSClientConfig = rest.TLSClientConfig{Insecure: true, CertData: f.config.CertData, KeyData: f.config.KeyData}
	unknown := rest.CopyConfig(f.config)
	unknown.TLSClientConfig, unknown.BearerToken = rest.TLSClientConfig{CAData: f.config.CAData}, "no such token"

	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "preflight"}}
	connections := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.ConnectionNamespace}}
	named := func(spec v1alpha1.MemberClusterSpec, finalizers ...string) *v1alpha1.MemberCluster {
		return &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", Finalizers: finalizers}, Spec: spec}
	}
	claim := strings.Repeat("0a", 32)
	for _, test := range []struct {
		reason      string
		hub, member *rest.Config
		existing    []client.Object
		deleted     bool
		is          error
		as          any
		checks      []string
		text        string // of the error
	}{
		{reason: "hub and member unreachable, both reported", hub: gone, member: gone, as: new(*UnreachableError),
			checks: []string{"reach the hub", "reach the member"}, text: "https://127.0.0.1:1"},
		{reason: "credential of the hub not accepted", hub: unknown,
			checks: []string{"reach the hub"}, text: "does not accept the credential"},
		{reason: "hub without CRDs", hub: noHub, checks: []string{"CRDs on the hub"},
			text: "it is not a hub"},
		{reason: "no permissions on the hub", hub: unprivileged, checks: []string{"reach the hub"},
			text: "namespaces"},
		{reason: "insecure member config", member: insecure, checks: []string{"the member's address"},
			text: "does not verify"},
		{reason: "name of another cluster",
			existing: []client.Object{named(v1alpha1.MemberClusterSpec{ClusterID: "other"})}, is: ErrNameTaken,
			checks: []string{"name"}, text: "other"},
		{reason: "name of a MemberCluster in deletion",
			existing: []client.Object{named(v1alpha1.MemberClusterSpec{ClusterID: f.id()}, "example.com/keep")}, deleted: true,
			is: ErrNameTaken, checks: []string{"name"}},
		{reason: "cluster with an agent that runs on it",
			existing: []client.Object{named(v1alpha1.MemberClusterSpec{ClusterID: f.id(), Claim: claim})}, is: ErrClusterTaken,
			checks: []string{"cluster ID"}},
		{reason: "cluster is a member with another name", is: ErrClusterTaken, checks: []string{"cluster ID"},
			text: "west", existing: []client.Object{
				&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"},
					Spec: v1alpha1.MemberClusterSpec{ClusterID: f.id()}}}},
		{reason: "agent of another hub on the member", is: ErrClusterTaken, checks: []string{"the member"},
			existing: []client.Object{space.DeepCopy(),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: space.Name, Name: agent.DefaultStoreSecret}}}},
		{reason: "access of another hub on the member", is: ErrClusterTaken, checks: []string{"the member"},
			existing: []client.Object{
				&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: accessName},
					RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}}}},
		{reason: "kubeconfig Secret of another owner", is: ErrNameTaken, checks: []string{"name"},
			existing: []client.Object{connections.DeepCopy(),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: connections.Name, Name: "east-kubeconfig"}}}},
		{reason: "kubeconfig Secret for another cluster", is: ErrNameTaken, checks: []string{"name"},
			text: "still has access to cluster other", existing: []client.Object{connections.DeepCopy(),
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: connections.Name, Name: "east-kubeconfig",
					Labels:      map[string]string{membership.MemberLabel: "east"},
					Annotations: map[string]string{clusterAnnotation: "other"}}}}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			f := *f
			f.t = t
			f.create(test.existing...)
			t.Cleanup(func() {
				for _, object := range test.existing {
					if _, stays := object.(*corev1.Namespace); !stays {
						f.discard(object)
					}
				}
			})
			if test.deleted {
				require.NoError(t, f.c.Delete(t.Context(), test.existing[0].DeepCopyObject().(client.Object)))
			}
			hub, member := f.config, f.config
			if test.hub != nil {
				hub = test.hub
			}
			if test.member != nil {
				member = test.member
			}
			_, err := Join(t.Context(), hub, member, JoinOptions{Name: "east", MemberNamespace: space.Name, Timeout: -1})
			var failed *PreflightError
			require.ErrorAs(t, err, &failed)
			var checks []string
			for _, finding := range failed.Findings {
				checks = append(checks, finding.Check)
				require.NotEmpty(t, finding.Fix)
			}
			require.Equal(t, test.checks, checks, err)
			require.ErrorContains(t, err, test.text)
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
			if test.as != nil {
				require.ErrorAs(t, err, test.as)
			}
			if len(test.existing) == 0 {
				require.False(t, f.get(&v1alpha1.MemberCluster{}, "", "east"), "a failed preflight check creates nothing")
				require.False(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName), "a failed preflight check creates nothing")
			}
		})
	}
}

// TestJoin_Rights calls Join as users with the documented permissions, and with one less each.
func TestJoin_Rights(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	hubRules := []rbacv1.PolicyRule{
		rule("membership.muster.dev", "memberclusters", "get", "list", "create", "patch", "delete"),
		rule("", "namespaces", "get", "create"), rule("", "secrets", "get", "create", "update"),
	}
	memberRules := []rbacv1.PolicyRule{
		rule("", "namespaces", "get", "create"), rule("", "serviceaccounts", "get", "create"),
		rule("", "secrets", "get", "create"),
		rule("rbac.authorization.k8s.io", "clusterrolebindings", "get", "create"),
		rule("rbac.authorization.k8s.io", "clusterroles", "bind"),
	}
	hub, member := f.user("hub-admin", hubRules), f.user("member-admin", memberRules)
	mustertest.Holds(f.t, timeLimit, "Join succeeds with the documented rules", func() bool {
		_, err := Join(t.Context(), hub, member, JoinOptions{Name: "east", Timeout: -1})
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	var failed *PreflightError
	for name, test := range map[string]struct {
		rules   []rbacv1.PolicyRule
		missing string
	}{
		"hub-less-secrets": {hubRules[:2],
			"the user has no permission to get,create,update secrets in namespace muster-connections"},
		"hub-less-delete": {append(hubRules[1:],
			rule("membership.muster.dev", "memberclusters", "get", "list", "create", "patch")),
			"the user has no permission to delete memberclusters.membership.muster.dev"},
	} {
		less := f.user(name, test.rules)
		mustertest.Holds(f.t, timeLimit, "the missing permission is reported: "+test.missing, func() bool {
			_, err := Join(t.Context(), less, member, JoinOptions{Name: "east", Timeout: -1})
			return errors.As(err, &failed) && failed.Findings[0].Problem == test.missing
		})
	}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// user returns the config of a user who has only the rules.
func (f *fleet) user(name string, rules []rbacv1.PolicyRule) *rest.Config {
	f.t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "test-" + name}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: role.ObjectMeta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}
	for _, object := range []client.Object{role, binding} {
		f.create(object)
		f.t.Cleanup(func() { _ = f.c.Delete(context.Background(), object) })
	}
	return f.plane.User(name)
}

// without returns a transport that hides an API group.
func without(group string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasPrefix(r.URL.Path, "/apis/"+group) {
				return &http.Response{StatusCode: http.StatusNotFound, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
			}
			return next.RoundTrip(r)
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
