package install_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestInstallByFleet installs an agent through a fleet, from a Secret with a kubeconfig to the join and the leave. The
// kubeconfig is removed after the join, and created again for the leave.
func TestInstallByFleet(t *testing.T) {
	p := plane.ForTest(t)
	h := startHub(t, p, install.Options{Installer: manifests(t, "1")})
	ctx := t.Context()
	mustertest.StartManager(t, h.plane.Config(), manager.Options{Scheme: newScheme()}, func(mgr manager.Manager) error {
		_, err := fleet.SetupWithManager(mgr, fleet.Options{Runners: []fleet.Runner{h.runner}})
		return err
	})

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.ConnectionNamespace}}
	require.NoError(t, client.IgnoreAlreadyExists(h.client.Create(ctx, namespace)))
	data, err := os.ReadFile(p.Kubeconfig())
	require.NoError(t, err)
	secret := func() *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: h.namespace},
			Data:       map[string][]byte{kubeconfig.DefaultKey: data},
		}
	}
	h.member(func(m *v1alpha1.MemberCluster) {
		m.Spec.ClusterID, m.Spec.KubeConfigSecretRef = "", &v1alpha1.KubeConfigSecretRef{Name: h.namespace}
	})
	h.until(v1alpha1.ConditionReachable, v1alpha1.ReasonKubeConfigMissing)
	require.NoError(t, h.client.Create(ctx, secret()))
	h.until(v1alpha1.ConditionReachable, v1alpha1.ReasonReachable)
	cluster := h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	h.agent(cluster.Spec.ClusterID)
	h.until(v1alpha1.ConditionJoined, v1alpha1.ReasonAgentJoined)

	require.NoError(t, h.client.Delete(ctx, secret()))
	h.until(v1alpha1.ConditionReachable, v1alpha1.ReasonKubeConfigMissing)
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	h.until(v1alpha1.ConditionHealthy, v1alpha1.ReasonHeartbeating)

	require.NoError(t, h.client.Create(ctx, secret()))
	h.until(v1alpha1.ConditionReachable, v1alpha1.ReasonReachable)
	h.leave()
	err = h.client.Get(ctx, client.ObjectKey{Name: h.namespace}, &rbacv1.ClusterRole{})
	require.True(t, apierrors.IsNotFound(err), "the ClusterRole exists after the leave: %v", err)
	h.gone(&corev1.Namespace{}, "", h.namespace)
	require.NoError(t, h.client.Delete(ctx, secret()))
}
