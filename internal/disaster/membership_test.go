package disaster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// TestMembership checks that one member survives the loss of its objects on the hub, until a user requests its leave.
func TestMembership(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 150)
	w := newSystem(t, hub.Options{}, "east")
	w.deploy()
	w.step("NamespaceDeletedByHand", w.namespaceDeletedByHand)
	w.step("RecreatedWithAnotherUID", w.recreatedWithAnotherUID)
	w.step("DefinitionsRemoved", w.membershipDefinitionsRemoved)
	w.step("UnknownToRestoredHub", w.unknownToRestoredHub)
	w.step("UserRequestsLeave", w.userRequestsLeave)
}

// namespaceDeletedByHand checks that the hub creates the member's namespace and its Works again, and that the member
// does not change.
func (w *system) namespaceDeletedByHand(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	before := m.uids(t)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-east"}}
	require.NoError(t, w.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
	uid := namespace.UID
	// The deletion lasts for some time, as in any cluster, so that the agent can observe that the namespace is being
	// deleted.
	metav1.SetMetaDataAnnotation(&namespace.ObjectMeta, localplane.NamespaceDelayAnnotation, "5s")
	require.NoError(t, w.client.Update(ctx, namespace))
	require.NoError(t, w.client.Delete(ctx, namespace))
	w.eventually("the namespace is restored", func() error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			return err
		}
		if namespace.UID == uid || namespace.DeletionTimestamp != nil {
			return fmt.Errorf("namespace %s is %s, conditions %v", namespace.Name, namespace.Status.Phase,
				namespace.Status.Conditions)
		}
		return nil
	})
	m.requireUnchangedFor(t, before, quiet)
	m.install(t, w.token(m.name)) // Its token belonged to a ServiceAccount in the namespace.
	w.waitUntilJoined(m.name)
	w.apply() // Only the user can create the hand-written Work again.
	w.update()
	m.requireUnchanged(t, before)
}

// recreatedWithAnotherUID checks that a MemberCluster which a backup tool deletes and creates again from
// YAML, without its status, is adopted by the agent that has its claim.
func (w *system) recreatedWithAnotherUID(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	before := m.uids(t)

	w.stopHub()
	cluster := w.removeMember(m.name)
	w.removeNamespace("member-east")
	restored := &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: cluster.Labels}, Spec: cluster.Spec,
	}
	require.NoError(t, w.client.Create(ctx, restored))
	require.NotEqual(t, cluster.UID, restored.UID)
	w.startHub()
	m.install(t, w.token(m.name))

	w.waitUntilJoinedAs(restored)
	m.requireUnchangedFor(t, before, quiet)
	w.apply()
	w.update()
	m.requireUnchanged(t, before)
}

// membershipDefinitionsRemoved checks that a member keeps everything when the definition of Memberships or of
// MemberClusters is removed from the hub, and is joined again when the definition and the MemberCluster are back.
func (w *system) membershipDefinitionsRemoved(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	before := m.uids(t)

	removeDefinition(t, w.client, "memberships.membership.muster.dev")
	m.requireUnchangedFor(t, before, quiet)
	require.NoError(t, assembly.InstallHubDefinitions(ctx, w.client))
	w.eventually("the member is joined again", func() error { return w.conditions(m.name, metav1.ConditionTrue) })
	w.update()
	m.requireUnchanged(t, before)

	cluster := &membershipv1alpha1.MemberCluster{}
	require.NoError(t, w.client.Get(ctx, client.ObjectKey{Name: m.name}, cluster))
	removeDefinition(t, w.client, "memberclusters.membership.muster.dev")
	m.requireUnchangedFor(t, before, quiet)
	require.NoError(t, assembly.InstallHubDefinitions(ctx, w.client))
	m.requireUnchangedFor(t, before, quiet)
	m.install(t, w.token(m.name))
	again := &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: cluster.Labels}, Spec: cluster.Spec,
	}
	w.eventually("the MemberCluster is accepted again", func() error {
		if err := w.client.Create(ctx, again.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
		// The agent was faster, and has created the MemberCluster by a JoinRequest.
		return w.client.Patch(ctx, again.DeepCopy(), client.RawPatch(types.MergePatchType,
			[]byte(`{"spec":{"accepted":true}}`)))
	})
	w.eventually("the member is joined again", func() error { return w.conditions(m.name, metav1.ConditionTrue) })
	w.update()
	m.requireUnchanged(t, before)
}

// unknownToRestoredHub checks that a member which the hub does not know keeps everything, waits for an
// administrator, and is re-adopted when it is accepted.
func (w *system) unknownToRestoredHub(t *testing.T) {
	m := w.members[0]
	before := m.uids(t)

	w.stopHub()
	w.removeMember(m.name)
	w.removeNamespace("member-east")
	w.startHub()
	m.requireUnchangedFor(t, before, 2*quiet)

	m.install(t, w.token(m.name))
	w.accept(m)
	w.waitUntilJoined(m.name)
	w.apply()
	w.update()
	m.requireUnchanged(t, before)
}

// otherHubsCredential checks that another hub's join.yaml changes nothing on a member whose own hub
// rejects it.
func (w *system) otherHubsCredential(t *testing.T, other *system) {
	m := w.members[0]
	before := m.uids(t)
	credential := other.token(m.name)

	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	mustertest.Change(t, w.client, cluster, func(c *membershipv1alpha1.MemberCluster) { c.Spec.Accepted = new(false) })
	m.install(t, credential)
	m.requireUnchangedFor(t, before, 3*quiet)

	mustertest.Change(t, w.client, cluster, func(c *membershipv1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	m.install(t, w.token(m.name))
	w.waitUntilJoined(m.name)
	w.update()
	m.requireUnchanged(t, before)
}

// clonedWithItsSecrets checks a cluster that is cloned completely, with its ID and the Secrets of its
// agent: both clusters are one member. The MemberCluster names both agents, hub and agents stop writing, and nothing is
// deleted on either cluster, also when the clone ends.
func (w *system) clonedWithItsSecrets(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	before := m.uids(t)
	clone := w.newMember(m.name)
	clone.id = m.clusterID(t)
	var secrets corev1.SecretList
	require.NoError(t, m.client.List(ctx, &secrets, client.InNamespace(agent.DefaultNamespace)))
	require.NotEmpty(t, secrets.Items)
	for i := range secrets.Items {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: secrets.Items[i].Name},
			Data:       secrets.Items[i].Data,
		}
		require.NoError(t, clone.client.Create(ctx, secret))
	}
	unique := func() *metav1.Condition {
		cluster := &membershipv1alpha1.MemberCluster{}
		require.NoError(t, w.client.Get(ctx, client.ObjectKey{Name: m.name}, cluster))
		return meta.FindStatusCondition(cluster.Status.Conditions, membershipv1alpha1.ConditionClusterIDUnique)
	}
	require.Nil(t, unique())

	w.start(clone)
	w.eventually("the MemberCluster names both agents", func() error {
		if c := unique(); c == nil || c.Reason != membershipv1alpha1.ReasonAgentCloned || !strings.Contains(c.Message, ", ") {
			return fmt.Errorf("condition is %+v", c)
		}
		return nil
	})
	w.waitUntilWritesEnd(time.Minute)
	w.update()
	m.requireUnchanged(t, before)
	copied := clone.uids(t)
	require.Contains(t, copied, "ConfigMap shop/config", "the clone is a member with the same Works")
	clone.stop()
	w.eventually("the MemberCluster names one agent", func() error {
		if c := unique(); c != nil {
			return fmt.Errorf("condition is %+v", c)
		}
		return nil
	})
	w.update()
	m.requireUnchanged(t, before)
	clone.requireUnchanged(t, copied)
}

// userRequestsLeave checks the opposite: a member whose MemberCluster a user deletes is cleaned up.
func (w *system) userRequestsLeave(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	require.NoError(t, w.client.Delete(ctx, cluster))
	w.eventually("the member has left, and its workloads are deleted", func() error {
		if err := w.client.Get(ctx, client.ObjectKeyFromObject(cluster), cluster); !apierrors.IsNotFound(err) {
			return fmt.Errorf("MemberCluster %s exists in phase %s (%w)", m.name, cluster.Status.Phase, err)
		}
		for _, key := range []client.ObjectKey{{Namespace: "shop", Name: "config"}, {Namespace: "default", Name: "by-hand"}} {
			if err := m.client.Get(ctx, key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("ConfigMap %s exists on the member (%w)", key, err)
			}
		}
		return nil
	})
}

// removeMember removes a MemberCluster without its finalizers, as if it had never existed, and returns the removed
// object. The hub must not run.
func (w *system) removeMember(name string) *membershipv1alpha1.MemberCluster {
	w.t.Helper()
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	before := cluster.DeepCopy()
	cluster.Finalizers = nil
	require.NoError(w.t, w.client.Patch(w.t.Context(), cluster, client.MergeFrom(before)))
	require.NoError(w.t, w.client.Delete(w.t.Context(), cluster))
	return before
}

// removeNamespace removes a namespace of the hub with all its objects, also those with finalizers. The hub must not
// run.
func (w *system) removeNamespace(name string) {
	w.t.Helper()
	ctx := w.t.Context()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(w.t, w.client.Delete(ctx, namespace))
	w.eventually("namespace "+name+" is deleted", func() error {
		for _, list := range finalized() {
			if err := w.client.List(ctx, list, client.InNamespace(name)); err != nil {
				return err
			}
			for _, o := range items(list) {
				before := o.DeepCopyObject().(client.Object)
				o.SetFinalizers(nil)
				if err := w.client.Patch(ctx, o, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
		}
		err := w.client.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("conditions %v", namespace.Status.Conditions))
	})
}

// accept accepts a member that waits for an administrator, with or without an existing MemberCluster. An API server
// that was restarted can deny this for half a minute, until it has found the kind that an admission policy refers to.
func (w *system) accept(m *member) {
	w.t.Helper()
	cluster := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	cluster.Spec.Accepted, cluster.Spec.HeartbeatPeriodSeconds = new(true), period
	cluster.Spec.ClusterID = m.clusterID(w.t)
	w.eventually("MemberCluster "+m.name+" is accepted", func() error {
		err := w.client.Create(w.t.Context(), cluster.DeepCopy())
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		existing := &membershipv1alpha1.MemberCluster{}
		if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(cluster), existing); err != nil {
			return err
		}
		accepted := existing.DeepCopy()
		accepted.Spec.Accepted = new(true)
		return w.client.Patch(w.t.Context(), accepted, client.MergeFrom(existing))
	})
}

// clusterID returns the cluster ID that the agent uses by default.
func (m *member) clusterID(t testing.TB) string {
	t.Helper()
	kubeSystem := &corev1.Namespace{}
	require.NoError(t, m.client.Get(t.Context(), client.ObjectKey{Name: metav1.NamespaceSystem}, kubeSystem))
	return string(kubeSystem.UID)
}
