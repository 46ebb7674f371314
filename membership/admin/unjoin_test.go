package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestUnjoin_Keep checks the leave of a member that can join again.
func TestUnjoin_Keep(t *testing.T) {
	testkit.Virtual(t, testUnjoinKeep)
}

func testUnjoinKeep(t *testing.T) {
	f := newFleet(t, newMemory(t))
	f.run()
	ctx := t.Context()
	f.create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "kept"},
		Spec: v1alpha1.MemberClusterSpec{Accepted: new(true)}})
	// Before the hub has created objects of the member, a leave ends at once and is not in the status.
	mustertest.Holds(f.t, timeLimit, "the member is ready to join", func() bool {
		kept := f.member("kept")
		return slices.Contains(kept.Finalizers, membership.Finalizer) &&
			meta.IsStatusConditionTrue(kept.Status.Conditions, v1alpha1.ConditionReadyToJoin)
	})
	for _, reason := range []string{"first leave", "second leave"} {
		leave, err := Unjoin(ctx, f.config, "kept", UnjoinOptions{Keep: true})
		require.NoError(t, err, reason)
		require.True(t, leave.Ended, reason)
		require.False(t, leave.Forced, reason)
		require.Equal(t, v1alpha1.PhaseLeft, f.member("kept").Status.Phase, reason)
	}
}

// TestUnjoin checks the forced leave of a member whose own agent does not run, and cleans the member afterwards.
func TestUnjoin(t *testing.T) {
	testkit.Virtual(t, testUnjoin)
}

func testUnjoin(t *testing.T) {
	f := newFleet(t, newMemory(t))
	stopHub := f.run()
	ctx := t.Context()
	bootstrap := f.token(v1alpha1.JoinTokenSpec{AutoAccept: true})
	require.NoError(t, Register(ctx, f.config, bootstrap, RegisterOptions{HubConfig: f.connect}))
	stopAgent := f.runAgent("south", nil)
	require.NoError(t, Register(ctx, f.config, bootstrap, RegisterOptions{HubConfig: f.connect, Wait: timeLimit}),
		"Register returns when the agent has joined")
	mustertest.Holds(f.t, timeLimit, "the member has joined",
		func() bool { return f.member("south").Status.Phase == v1alpha1.PhaseJoined })
	stopAgent()

	var timeout *TimeoutError
	mustertest.Holds(f.t, timeLimit, "Unjoin waits for the agent", func() bool { // after the hub has updated the status
		_, err := Unjoin(ctx, f.config, "south", UnjoinOptions{Timeout: time.Second})
		require.ErrorAs(t, err, &timeout)
		return strings.Contains(timeout.Reason, "waits for the member's agent")
	})
	require.Contains(t, timeout.Reason, "at the latest")

	leave, err := Unjoin(ctx, f.config, "south", UnjoinOptions{Force: true, Timeout: timeLimit})
	require.NoError(t, err)
	require.True(t, leave.Forced, "the status of the leave is forced")
	require.False(t, f.get(&v1alpha1.MemberCluster{}, "", "south"))

	// A hub that does not run forces no leave.
	f.create(&v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "west",
		Finalizers: []string{membership.Finalizer}}})
	stopHub()
	_, err = Unjoin(ctx, f.config, "west", UnjoinOptions{Force: true, Timeout: time.Second})
	require.ErrorAs(t, err, &timeout)
	require.NotEmpty(t, timeout.Reason)
	require.Equal(t, []string{membership.Finalizer}, f.member("west").Finalizers)

	// The member still has the objects of its agent. Register created them, so Clean deletes them.
	require.True(t, f.get(&corev1.Secret{}, agent.DefaultNamespace, agent.DefaultStoreSecret))
	gate := membership.GateFunc("works", remaining([]string{"work/shop"}, nil))
	cleaned := &steps{}
	require.NoError(t, Clean(ctx, f.config, CleanOptions{Cleaners: []membership.LeaveGate{gate},
		Progress: cleaned.record}))
	require.False(t, f.get(&corev1.Secret{}, agent.DefaultNamespace, agent.DefaultStoreSecret))
	mustertest.Eventually(f.t, timeLimit, "the namespace is deleted", func() error {
		namespace := &corev1.Namespace{}
		if !f.get(namespace, "", agent.DefaultNamespace) {
			return nil
		}
		return fmt.Errorf("namespace: deleted at %v, %+v; steps of Clean: %+v",
			namespace.DeletionTimestamp, namespace.Status, *cleaned)
	})
	require.NoError(t, Clean(ctx, f.config, CleanOptions{}), "a second Clean succeeds")
}

// TestUnjoin_UnreachableMember checks the leave of a member that the hub had access to and that does not exist any
// more.
func TestUnjoin_UnreachableMember(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	f.run()
	ctx := t.Context()
	for _, test := range []struct {
		reason  string
		options UnjoinOptions
		fails   bool
	}{
		{"remaining access is an error", UnjoinOptions{}, true},
		{"remaining access of a forced leave is only reported", UnjoinOptions{Force: true}, false},
	} {
		_, err := Join(ctx, f.config, f.config, JoinOptions{Name: "east", Timeout: -1})
		require.NoError(t, err)
		gone := rest.CopyConfig(f.config)
		gone.Host = "https://127.0.0.1:1"
		reported := &steps{}
		test.options.Member, test.options.Progress = gone, reported.record
		_, err = Unjoin(ctx, f.config, "east", test.options)
		if test.fails {
			var unreachable *UnreachableError
			require.ErrorAs(t, err, &unreachable, test.reason)
			require.Equal(t, Member, unreachable.Which)
			require.ErrorContains(t, err, "has left, but the hub still has access to the member")
		} else {
			require.NoError(t, err, test.reason)
			require.Contains(t, strings.Join(reported.details("remove the hub's access from the member"), "\n"),
				"the access stays")
		}
		require.False(t, f.get(&v1alpha1.MemberCluster{}, "", "east"))
		require.Equal(t, test.fails, f.get(&corev1.Secret{}, membership.ConnectionNamespace, "east-kubeconfig"),
			"the kubeconfig Secret stays while the member has objects to remove")
	}
}

// TestUnjoin_ObjectsOfOtherOwners checks that Unjoin does not change objects of another hub, or of a user, on a member.
func TestUnjoin_ObjectsOfOtherOwners(t *testing.T) {
	testkit.Virtual(t, testUnjoinObjectsOfOtherOwners)
}

func testUnjoinObjectsOfOtherOwners(t *testing.T) {
	f := newFleet(t, newMemory(t))
	ctx := t.Context()
	foreign := func(annotations map[string]string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: accessName, Annotations: annotations,
				Labels: map[string]string{membership.MemberLabel: "east"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}
	}
	for reason, annotations := range map[string]map[string]string{
		"access of another hub to a member of the same name": {hubAnnotation: "another"},
		"access without an owner":                            nil,
	} {
		binding := foreign(annotations)
		f.create(binding)
		_, err := Unjoin(ctx, f.config, "east", UnjoinOptions{Member: f.config})
		require.NoError(t, err, reason)
		require.True(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName), reason)
		f.discard(binding)
	}
	require.NoError(t, reporter(nil).makeNamespace(ctx, f.c, agent.DefaultNamespace))
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: "somebodys"}})
	reported := &steps{}
	require.NoError(t, Clean(ctx, f.config, CleanOptions{Progress: reported.record}))
	require.Contains(t, (*reported)[len(*reported)-1].Detail,
		"namespace muster-system stays: it contains ConfigMap somebodys")
	require.True(t, f.get(&corev1.ConfigMap{}, agent.DefaultNamespace, "somebodys"),
		"a used namespace stays")
	var space corev1.Namespace
	require.True(t, f.get(&space, "", agent.DefaultNamespace))
	require.Nil(t, space.DeletionTimestamp)
}

// TestUnprepare_InstalledObjects removes installed objects, unless another hub needs them or a permission is missing.
func TestUnprepare_InstalledObjects(t *testing.T) {
	testkit.Virtual(t, testUnprepareInstalledObjects)
}

func testUnprepareInstalledObjects(t *testing.T) {
	f := newFleet(t, newMemory(t))
	ctx := t.Context()
	const installed = "installed"
	prepare := func(ctx context.Context, c client.Client) error {
		return client.IgnoreAlreadyExists(c.Create(ctx,
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: installed}}))
	}
	unprepare := func(ctx context.Context, c client.Client) (string, error) {
		var config corev1.ConfigMap
		if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: installed}, &config); err != nil {
			return "", client.IgnoreNotFound(err)
		}
		if config.Data != nil {
			return "the ConfigMap has data", nil
		}
		return "", c.Delete(ctx, &config)
	}
	bootstrap := func() client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace,
			Name: agent.DefaultBootstrapSecret}}
	}
	foreign := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: accessName, Annotations: map[string]string{hubAnnotation: "another"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}})
	for _, test := range []struct {
		reason string
		before client.Object // exists on the member
		rules  []rbacv1.PolicyRule
		stays  string // the reported reason; empty: the objects are deleted
	}{
		{"an agent of another hub", bootstrap(), nil, "the installed objects stay: Secret " +
			"muster-system/muster-bootstrap belongs to an agent"},
		{"access of another hub", foreign, nil, "the installed objects stay: ClusterRoleBinding " +
			"muster-push belongs to another"},
		{
			"objects in use",
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: installed},
				Data: map[string]string{"a": "b"}}, nil,
			"the installed objects stay: the ConfigMap has data",
		},
		{
			"missing permission to delete the objects", nil, []rbacv1.PolicyRule{
				rule("", "secrets", "get"), rule("", "namespaces", "get"),
				rule(rbacv1.GroupName, "clusterrolebindings", "get", "delete"), rule("", "configmaps", "get"),
			},
			`cannot delete resource "configmaps"`,
		},
		{"no other hub needs the objects", nil, nil, ""},
		{"objects are already deleted", nil, nil, ""},
	} {
		member := f.config
		if test.rules != nil {
			member = f.user("unprepare", test.rules)
			mustertest.Holds(f.t, timeLimit, "the rules apply", func() bool {
				less, err := connect(Member, member)
				require.NoError(t, err)
				return apierrors.IsNotFound(less.Get(ctx, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{}))
			})
		}
		if test.before != nil {
			f.create(test.before)
		}
		if test.reason != "objects are already deleted" {
			require.NoError(t, prepare(ctx, f.c), test.reason)
		}
		reported := &steps{}
		_, err := Unjoin(ctx, f.config, "east", UnjoinOptions{Member: member, Unprepare: unprepare,
			Progress: reported.record})
		require.NoError(t, err, test.reason)
		details := reported.details(unprepareStep)
		require.NotEmpty(t, details, test.reason)
		if test.stays == "" {
			require.Empty(t, details[len(details)-1], test.reason)
		} else {
			require.Contains(t, details[len(details)-1], test.stays, test.reason)
		}
		require.Equal(t, test.stays != "", f.get(&corev1.ConfigMap{}, "default", installed), test.reason)
		if test.before != nil {
			f.discard(test.before)
		}
		f.discard(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: installed}})
	}

	// Clean does the same, but does not check for an agent: Clean has just removed the Secrets of the agent.
	for reason, data := range map[string]map[string]string{"objects not in use": nil, "objects in use": {"a": "b"}} {
		mustertest.Holds(f.t, timeLimit, "the former namespace of the agent is deleted", func() bool {
			var namespace corev1.Namespace
			return !f.get(&namespace, "", agent.DefaultNamespace) || namespace.DeletionTimestamp == nil
		})
		f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}, bootstrap(),
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: installed}, Data: data})
		reported := &steps{}
		require.NoError(t, Clean(ctx, f.config, CleanOptions{Unprepare: unprepare, Progress: reported.record}), reason)
		require.Equal(t, data != nil, f.get(&corev1.ConfigMap{}, "default", installed), reason)
		f.discard(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: installed}})
	}
}

// remaining returns the function of a gate with these results, one after the other. The last one repeats.
func remaining(results ...[]string) func(context.Context, membership.Member) ([]string, error) {
	return func(context.Context, membership.Member) ([]string, error) {
		current := results[0]
		if len(results) > 1 {
			results = results[1:]
		}
		return current, nil
	}
}
