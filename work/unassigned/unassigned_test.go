package unassigned_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/unassigned"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "unassigned"}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// hub is a control plane with the controller, which has only the permissions of the folder rbac.
type hub struct {
	*testkit.Hub
}

func newHub(t *testing.T) *hub {
	t.Helper()
	p := plane.ForTest(t)
	scheme := mustertest.Scheme(v1alpha1.AddToScheme)
	h := &hub{testkit.NewHub(t, p.Config(), scheme, crds.InstallOnHub)}
	user, role := "reporter", mustertest.ClusterRole(t, "rbac/role.yaml")
	role.Name = user
	require.NoError(t, mustertest.Grant(t.Context(), h.Client, user, role))
	mustertest.StartManager(t, p.User(user), manager.Options{Scheme: scheme}, func(mgr manager.Manager) error {
		return unassigned.SetupWithManager(mgr, unassigned.Options{})
	})
	return h
}

func (h *hub) namespace(name, member string) {
	h.T.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if member != "" {
		namespace.Labels = map[string]string{membership.MemberLabel: member}
	}
	h.Create(namespace)
}

func (h *hub) work(namespace, name string, finalizers ...string) *v1alpha1.Work {
	h.T.Helper()
	work := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers}}
	require.NoError(h.T, yaml.UnmarshalStrict(
		[]byte("manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: b}}]"), &work.Spec))
	h.Create(work)
	return work
}

// awaitApplied waits until condition Applied of a Work has a reason and a message.
func (h *hub) awaitApplied(work *v1alpha1.Work, reason, message string) {
	h.T.Helper()
	h.Eventually("Work "+work.Name+" has reason "+reason, func() error {
		if err := h.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		applied := meta.FindStatusCondition(work.Status.Conditions, v1alpha1.ConditionApplied)
		if applied == nil {
			return errors.New("no condition")
		}
		if applied.Reason != reason || !strings.Contains(applied.Message, message) {
			return fmt.Errorf("%s: %s", applied.Reason, applied.Message)
		}
		return nil
	})
}

// TestUnassigned checks that a Work in a namespace of no member gets a status with reason NoMember, that no status is
// written in the namespace of a member, and that the status follows the label of the namespace.
func TestUnassigned(t *testing.T) {
	h := newHub(t)
	h.namespace("shop", "")
	h.namespace("member-east", "east")
	h.namespace("member-west", "")

	assigned := h.work("member-east", "web")
	unassignedWork := h.work("shop", "web")
	h.awaitApplied(unassignedWork, v1alpha1.ReasonNoMember, "Namespace shop belongs to no member cluster")
	require.Equal(t, "0/1", unassignedWork.Status.Ready)
	require.Contains(t, unassignedWork.Status.Message, "status.namespace of the MemberClusters")
	require.Zero(t, unassignedWork.Status.ObservedGeneration, "only an agent observes a Work")
	require.True(t, meta.IsStatusConditionTrue(unassignedWork.Status.Conditions, v1alpha1.ConditionDegraded))

	t.Run("namespace becomes a member namespace", func(t *testing.T) {
		early := h.work("member-west", "web")
		h.awaitApplied(early, v1alpha1.ReasonNoMember, "Namespace member-west belongs to no member")
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-west"}}
		mustertest.Change(t, h.Client, namespace, func(n *corev1.Namespace) {
			n.Labels = map[string]string{membership.MemberLabel: "west"}
		})
		h.awaitApplied(early, v1alpha1.ReasonPending, "The agent of member west has not reported on the Work yet")
		mustertest.Change(t, h.Client, namespace, func(n *corev1.Namespace) { delete(n.Labels, membership.MemberLabel) })
		h.awaitApplied(early, v1alpha1.ReasonNoMember, "Namespace member-west belongs to no member")
	})
	t.Run("deleted Work with the finalizer of the agent", func(t *testing.T) {
		blocked := h.work("shop", "held", v1alpha1.Finalizer)
		require.NoError(t, h.Client.Delete(t.Context(), blocked))
		h.awaitApplied(blocked, v1alpha1.ReasonNoMember, "remove the finalizer "+v1alpha1.Finalizer)
	})
	t.Run("new generation of a Work", func(t *testing.T) {
		mustertest.Change(t, h.Client, unassignedWork, func(work *v1alpha1.Work) {
			work.Spec.Manifests = append(work.Spec.Manifests, work.Spec.Manifests[0])
		})
		h.Holds("the status has the number of manifests of the new generation", func() bool {
			return h.Client.Get(t.Context(), client.ObjectKeyFromObject(unassignedWork),
				unassignedWork) == nil && unassignedWork.Status.Ready == "0/2"
		})
	})
	// The controller has one worker, so it has reconciled this Work before all others.
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(assigned), assigned))
	require.Empty(t, assigned.Status, "only the agent writes the status of a Work of a member")
}
