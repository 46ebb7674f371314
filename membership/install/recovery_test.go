package install_test

import (
	"cmp"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestCredentialExpired checks a member that was off for so long that the agent's credential and its bootstrap
// credential have expired. It joins again with the same identity.
func TestCredentialExpired(t *testing.T) {
	testkit.Virtual(t, testCredentialExpired)
}

func testCredentialExpired(t *testing.T) {
	const month = 30 * 24 * time.Hour // new tokens must be valid at the time of the shifted clock
	clock := &mustertest.Clock{}
	options := install.Options{Installer: manifests(t, "1"), TokenTTL: month, Clock: clock}
	h := startHub(t, newMemory(t), options)
	cluster := h.member(unchanged)
	stop := h.connect(cluster, h.plane.Config())
	h.until(v1alpha1.ConditionInstalled, v1alpha1.ReasonInstalled)
	off := h.agent(cluster.Spec.ClusterID)
	before := h.until(v1alpha1.ConditionHealthy, v1alpha1.ReasonHeartbeating)
	end := before.Status.CredentialExpirationTime
	require.NotNil(t, end, "the status has the expiration time without a renewal")
	h.gone(&v1alpha1.JoinToken{}, membership.RegistrationNamespace, "install-"+string(cluster.UID))
	given := h.removed()

	off()
	h.until(v1alpha1.ConditionHealthy, v1alpha1.ReasonHeartbeatLost)
	// The credential is revoked now. By the hub's clock, it expires in a week.
	h.endTokens(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: before.Status.Namespace,
		Name: membership.AgentName}})
	reconcile := func(h *testHub, label string) {
		h.change(func(m *v1alpha1.MemberCluster) { m.Labels = map[string]string{"reconcile": label} })
		h.quiet()
	}
	reconcile(h, "before")
	require.Equal(t, given, get(h, &corev1.Secret{}, agent.DefaultBootstrapSecret).Data,
		"the agent may connect again with its credential")

	// Another hub runs when the credential has expired.
	stop()
	clock.Move(time.Until(end.Time) + time.Hour)
	next := startHubAgain(h, options)
	next.connect(cluster, next.plane.Config())
	mustertest.Eventually(next.t, timeout, "the agent is installed again", func() error {
		if is := get(next, &v1alpha1.MemberCluster{}, cluster.Name).Status.Install; is.Recovery == nil ||
			is.Recovery.Attempts != 1 {
			return fmt.Errorf("%+v", is)
		}
		return nil
	})
	again := get(next, &corev1.Secret{}, agent.DefaultBootstrapSecret)
	require.NotEqual(t, given, again.Data)
	reconcile(next, "after")
	require.Equal(t, again.Data, get(next, &corev1.Secret{}, agent.DefaultBootstrapSecret).Data,
		"the agent has time to join")

	next.agent(cluster.Spec.ClusterID)
	back := next.until(v1alpha1.ConditionHealthy, v1alpha1.ReasonHeartbeating)
	require.Equal(t, before.Spec.Claim, back.Spec.Claim, "the agent is the same one")
	require.Equal(t, before.Spec.ClusterID, back.Spec.ClusterID)
	mustertest.Eventually(next.t, timeout, "the status has the new expiration time", func() error {
		if now := get(next, &v1alpha1.MemberCluster{}, cluster.Name).Status.CredentialExpirationTime; !end.Before(now) {
			return errors.New("the status has the former expiration time")
		}
		return nil
	})
	left := next.removed()
	reconcile(next, "again")
	require.Equal(t, left, get(next, &corev1.Secret{}, agent.DefaultBootstrapSecret).Data,
		"a member with heartbeats has no recovery")

	next.leave()
	next.gone(&corev1.Namespace{}, "", next.namespace)
}

// endTokens deletes a ServiceAccount and waits until the API server refuses its tokens.
func (h *testHub) endTokens(account *corev1.ServiceAccount) {
	h.t.Helper()
	request := &authenticationv1.TokenRequest{}
	require.NoError(h.t, h.client.SubResource("token").Create(h.t.Context(), account, request))
	config := h.plane.User("")
	config.BearerToken = request.Status.Token
	user, err := kubernetes.NewForConfig(config)
	require.NoError(h.t, err)
	whoAmI := func() error {
		_, err := user.AuthenticationV1().SelfSubjectReviews().Create(h.t.Context(), &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		return err
	}
	require.NoError(h.t, whoAmI())
	require.NoError(h.t, h.client.Delete(h.t.Context(), account))
	mustertest.Eventually(h.t, timeout, "the API server refuses the token", func() error {
		if err := whoAmI(); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the API server returned %w", cmp.Or(err, errors.New("without an error")))
		}
		return nil
	})
}
