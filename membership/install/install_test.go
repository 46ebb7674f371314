package install_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestInstallAndLeave installs the agent of a member, from the MemberCluster to the join and the leave.
func TestInstallAndLeave(t *testing.T) {
	bySite := membership.AcceptorFunc(func(_ context.Context,
		request *v1alpha1.JoinRequest) (membership.Acceptance, error) {
		if request.Spec.Labels["site"] == "ours" {
			return membership.Acceptance{Decision: membership.Accept}, nil
		}
		return membership.Acceptance{Decision: membership.Deny, Reason: "None of ours."}, nil
	})
	h := startHub(t, plane.ForTest(t), install.Options{Installer: manifests(t, "1")},
		func(o *hub.Options) { o.Acceptor = bySite })
	ctx := t.Context()
	cluster := h.member(func(m *v1alpha1.MemberCluster) { m.Spec.Accepted, m.Spec.ClusterID = nil, "" })
	toMember := &counter{}
	h.connect(cluster, toMember.wrap(h.plane.Config()))

	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonNotAccepted)
	h.until(v1alpha1.ConditionAccepted, v1alpha1.ReasonDenied)
	require.Zero(t, toMember.all(), "a denied member receives no request")

	h.change(func(m *v1alpha1.MemberCluster) { m.Labels = map[string]string{"site": "ours"} })
	cluster = h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	kubeSystem := &corev1.Namespace{}
	require.NoError(t, h.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, kubeSystem))
	require.Equal(t, string(kubeSystem.UID), cluster.Spec.ClusterID, "the cluster ID of the member is recorded")
	require.NotNil(t, cluster.Status.Install.InstalledAt)
	get(h, &corev1.ServiceAccount{}, "agent")
	token := h.token(cluster)
	require.Equal(t, cluster.Spec.ClusterID, token.Spec.ClusterID)
	require.Equal(t, int32(1), *token.Spec.MaxUses)
	require.False(t, token.Spec.AutoAccept, "the token accepts no cluster automatically")
	require.Equal(t, cluster.UID, token.OwnerReferences[0].UID,
		"the token is deleted with the MemberCluster, also without a hub")

	h.agent(cluster.Spec.ClusterID)
	h.until(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined)
	h.gone(&v1alpha1.JoinToken{}, token.Namespace, token.Name)

	// A hub that restarts sends no request to the member, and writes nothing.
	seen := toMember.all()
	next := startHubAgain(h, install.Options{Installer: manifests(t, "1")})
	stop := next.connect(cluster, toMember.wrap(h.plane.Config()))
	next.change(func(m *v1alpha1.MemberCluster) { m.Labels = map[string]string{"look": "again"} })
	next.quiet()
	require.Equal(t, seen, toMember.all())
	require.Equal(t, cluster.Status.Install, get(next, &v1alpha1.MemberCluster{}, next.namespace).Status.Install)

	// The connection is lost during the leave, and restored.
	stop()
	require.NoError(t, next.client.Delete(ctx, cluster))
	mustertest.Eventually(next.t, timeout, "the leave waits", func() error {
		if leave := get(next, &v1alpha1.MemberCluster{}, cluster.Name).Status.Leave; leave == nil ||
			leave.Waiting != install.Name {
			return fmt.Errorf("status.leave is %+v", leave)
		}
		return nil
	})
	next.connect(cluster, h.plane.Config())
	next.gone(&v1alpha1.MemberCluster{}, "", cluster.Name)
	err := next.client.Get(ctx, client.ObjectKey{Name: next.namespace}, &rbacv1.ClusterRole{})
	require.True(t, apierrors.IsNotFound(err), "the ClusterRole exists after the leave: %v", err)
	next.gone(&corev1.Namespace{}, "", next.namespace)
}

// startHubAgain ends a hub and starts another one.
func startHubAgain(h *testHub, options install.Options, change ...func(*hub.Options)) *testHub {
	h.t.Helper()
	h.stop()
	return startHub(h.t, h.plane, options, change...)
}

func (h *testHub) token(cluster *v1alpha1.MemberCluster) *v1alpha1.JoinToken {
	h.t.Helper()
	token := &v1alpha1.JoinToken{}
	key := client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: "install-" + string(cluster.UID)}
	require.NoError(h.t, h.client.Get(h.t.Context(), key, token))
	return token
}

// quiet waits until the hub has observed all changes: it creates a member with another mode, and waits until the hub
// has reconciled it.
func (h *testHub) quiet() {
	h.t.Helper()
	other := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{GenerateName: h.namespace + "-"}}
	require.NoError(h.t, h.client.Create(h.t.Context(), other))
	mustertest.Eventually(h.t, timeout, "the hub has reconciled the other member", func() error {
		if err := h.client.Get(h.t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
			return err
		}
		if other.Status.Phase != v1alpha1.PhasePending {
			return errors.New("the phase is not Pending")
		}
		return nil
	})
	require.NoError(h.t, h.client.Delete(h.t.Context(), other))
	h.gone(other, "", other.Name)
}

// TestReinstall checks the reasons for another installation, and that the member keeps its identity.
func TestReinstall(t *testing.T) {
	testkit.Virtual(t, testReinstall)
}

func testReinstall(t *testing.T) {
	extra := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "testreinstall", Name: "extra"}}
	h := startHub(t, newMemory(t), install.Options{Installer: manifests(t, "1", extra)})
	cluster := h.member(unchanged)
	stop := h.connect(cluster, h.plane.Config())
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	get(h, &corev1.ConfigMap{}, "extra")
	h.agent(cluster.Spec.ClusterID, keepBootstrap)
	before := h.until(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined)
	record := get(h, &corev1.Secret{}, agent.DefaultStoreSecret)
	given := get(h, &corev1.Secret{}, agent.DefaultBootstrapSecret)

	h.change(func(m *v1alpha1.MemberCluster) {
		m.Annotations = map[string]string{membership.InstallRequestAnnotation: "first"}
	})
	mustertest.Eventually(h.t, timeout, "the request is answered", func() error {
		if at := get(h, &v1alpha1.MemberCluster{}, cluster.Name).Status.Install.RequestedAt; at != "first" {
			return fmt.Errorf("%q", at)
		}
		return nil
	})
	require.NotEqual(t, given.Data, get(h, &corev1.Secret{}, agent.DefaultBootstrapSecret).Data,
		"the bootstrap credential is replaced")

	// A hub with another bundle, whose manifests have one object less.
	stop()
	_, authority := endpoint(h.plane)
	next := startHubAgain(h,
		install.Options{Installer: manifests(t, "2"), CA: bytes.Join([][]byte{authority, authority}, []byte("\n"))})
	next.connect(cluster, next.plane.Config())
	mustertest.Eventually(next.t, timeout, "the agent is installed again", func() error {
		if now := get(next, &v1alpha1.MemberCluster{}, cluster.Name).Status.Install.Hash; now == before.Status.Install.Hash {
			return errors.New("the hash has not changed")
		}
		return nil
	})
	bootstrap, err := registration.ParseBootstrap(get(next, &corev1.Secret{},
		agent.DefaultBootstrapSecret).Data[registration.BootstrapKey])
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(bootstrap.CA, []byte("BEGIN CERTIFICATE")),
		"the bootstrap credential has the new bundle")
	next.gone(&corev1.ConfigMap{}, next.namespace, "extra")

	after := next.until(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined)
	require.Equal(t, before.Spec.Claim, after.Spec.Claim, "the agent is the same one")
	require.Equal(t, record.UID, get(next, &corev1.Secret{}, agent.DefaultStoreSecret).UID)
	next.leave()
	next.gone(&corev1.Namespace{}, "", next.namespace)
}

// TestJoinModeChanged checks that a change of the join mode ends the installation, and that the agent stays on the
// member, also after a leave.
func TestJoinModeChanged(t *testing.T) {
	testkit.Virtual(t, testJoinModeChanged)
}

func testJoinModeChanged(t *testing.T) {
	h := startHub(t, newMemory(t), install.Options{Installer: manifests(t, "1")})
	cluster := h.member(unchanged)
	stop := h.connect(cluster, h.plane.Config())
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	token := h.token(cluster)

	h.change(func(m *v1alpha1.MemberCluster) { m.Spec.JoinMode = v1alpha1.JoinPull })
	stop() // like the fleet
	h.connect(get(h, &v1alpha1.MemberCluster{}, cluster.Name), h.plane.Config())
	h.gone(&v1alpha1.JoinToken{}, token.Namespace, token.Name)
	mustertest.Eventually(h.t, timeout, "the status has no installation", func() error {
		status := get(h, &v1alpha1.MemberCluster{}, cluster.Name).Status
		if status.Install != nil || meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionInstalled) != nil {
			return errors.New("the status has an installation")
		}
		return nil
	})
	get(h, &corev1.ServiceAccount{}, "agent") // the agent may be joined
	h.quiet()
	h.leave()
	get(h, &corev1.ServiceAccount{}, "agent")
	// The hub leaves the installation on the member, so another one in the same namespace would fail.
	require.NoError(t, h.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	h.gone(&corev1.Namespace{}, "", h.namespace)
}

// TestFailedInstallation checks that a failed installation is reported and retried, also by another hub.
func TestFailedInstallation(t *testing.T) {
	testkit.Virtual(t, testFailedInstallation)
}

func testFailedInstallation(t *testing.T) {
	var broken atomic.Bool
	broken.Store(true)
	var bootstraps atomic.Int64
	inner := manifests(t, "1")
	failing := install.Func(func(ctx context.Context, target install.Target) error {
		bootstraps.Add(1)
		if broken.Load() {
			return fmt.Errorf("the registry is closed to %v", target)
		}
		return inner.Install(ctx, target)
	})
	h := startHub(t, newMemory(t), install.Options{Installer: failing})
	cluster := h.member(unchanged)
	stop := h.connect(cluster, h.plane.Config())
	cluster = h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstallFailed)
	require.Contains(t, message(cluster), "the registry is closed")
	secret := &corev1.Secret{}
	token := h.token(cluster)
	require.NoError(t, h.client.Get(t.Context(), client.ObjectKeyFromObject(token), secret))
	bootstrap, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	require.NoError(t, err)
	require.NotContains(t, message(cluster), bootstrap.Token, "the message of an installer contains no secret")
	stop()
	broken.Store(false)
	h.connect(cluster, h.plane.Config())
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	require.Equal(t, token.UID, h.token(cluster).UID, "the existing JoinToken is used again")
	require.GreaterOrEqual(t, bootstraps.Load(), int64(2))
	h.leave()
	h.gone(&v1alpha1.JoinToken{}, token.Namespace, token.Name)
	get(h, &corev1.ServiceAccount{}, "agent") // this installer removes nothing
	require.NoError(t, inner.Uninstall(t.Context(), install.Target{Cluster: cluster, Config: h.plane.Config()}))
	h.gone(&corev1.Namespace{}, "", h.namespace)
}

// TestClusterOfAnotherMember checks that the cluster of another member is not changed.
func TestClusterOfAnotherMember(t *testing.T) {
	testkit.Virtual(t, testClusterOfAnotherMember)
}

func testClusterOfAnotherMember(t *testing.T) {
	h := startHub(t, newMemory(t), install.Options{Installer: manifests(t, "1")})
	ctx := t.Context()
	first := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "first"},
		Spec: v1alpha1.MemberClusterSpec{ClusterID: "id-testclusterofanothermember"}}
	require.NoError(t, h.client.Create(ctx, first))
	cluster := h.member(unchanged)
	h.connect(cluster, h.plane.Config())
	require.Contains(t, message(h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstallFailed)),
		"which MemberCluster first has already")
	require.NoError(t, h.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: agent.DefaultBootstrapSecret},
		Data: map[string][]byte{"a": []byte("b")}}
	require.NoError(t, h.client.Create(ctx, theirs))

	require.NoError(t, h.client.Delete(ctx, first))
	mustertest.Eventually(h.t, timeout, "the condition reports another installation", func() error {
		if got := message(get(h, &v1alpha1.MemberCluster{}, cluster.Name)); !bytes.Contains([]byte(got),
			[]byte("belongs to another installation")) {
			return errors.New(got)
		}
		return nil
	})
	h.gone(&corev1.ServiceAccount{}, h.namespace, "agent")

	require.NoError(t, h.client.Delete(ctx, theirs))
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	h.leave() // the agent has never joined
	h.gone(&corev1.ServiceAccount{}, h.namespace, "agent")
	h.gone(&corev1.Secret{}, h.namespace, agent.DefaultBootstrapSecret)
	require.Empty(t, get(h, &corev1.Namespace{}, h.namespace).DeletionTimestamp,
		"the namespace existed before the installation")
	require.NoError(t, h.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
}

// TestAccessRevoked checks that the hub's access to the member can be revoked after the join: the agent continues, and
// the leave does not wait for the removal of the installed objects.
func TestAccessRevoked(t *testing.T) {
	testkit.Virtual(t, testAccessRevoked)
}

func testAccessRevoked(t *testing.T) {
	h := startHub(t, newMemory(t), install.Options{Installer: manifests(t, "1")})
	ctx := t.Context()
	access := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: h.namespace + "-access"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "installer"}},
	}
	cluster := h.member(unchanged)
	h.connect(cluster, h.plane.User("installer"))
	got := message(h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstallFailed))
	require.Contains(t, got, "to the subject of the kubeconfig in the Secret kubeconfig", "the message has the next step")

	require.NoError(t, h.client.Create(ctx, access))
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	h.agent(cluster.Spec.ClusterID)
	h.until(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined)
	require.NoError(t, h.client.Delete(ctx, access))

	h.until(v1alpha1.ConditionHealthy, v1alpha1.ReasonHeartbeating)
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	h.leave()
	get(h, &corev1.ServiceAccount{}, "agent")
	mustertest.Eventually(h.t, timeout, "an Event reports the remaining objects", func() error {
		var events eventsv1.EventList
		if err := h.client.List(ctx, &events); err != nil {
			return err
		}
		for _, event := range events.Items {
			if event.Reason == "AgentNotRemoved" && event.Regarding.Name == cluster.Name {
				return nil
			}
		}
		return errors.New("no such Event")
	})
	require.NoError(t, h.client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	require.NoError(t, h.client.Delete(ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
}

// TestForcedLeave checks that an agent that does not run during a forced leave keeps the objects that it needs to
// clean up later.
func TestForcedLeave(t *testing.T) {
	testkit.Virtual(t, testForcedLeave)
}

func testForcedLeave(t *testing.T) {
	h := startHub(t, newMemory(t), install.Options{Installer: manifests(t, "1")})
	cluster := h.member(func(m *v1alpha1.MemberCluster) { m.Spec.Leave.DeadlineSeconds = 2 })
	h.connect(cluster, h.plane.Config())
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	stop := h.agent(cluster.Spec.ClusterID)
	h.until(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined)
	stop()
	h.leave()
	get(h, &corev1.ServiceAccount{}, "agent")
	get(h, &corev1.Secret{}, agent.DefaultStoreSecret)
	require.NoError(t, h.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
	require.NoError(t, h.client.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: h.namespace}}))
}
