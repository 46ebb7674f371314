package hub_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestSmoke(t *testing.T) {
	p := plane.ForTest(t)
	ctx := context.Background()
	startHub(t, p.Config(), hub.Options{})
	c := newClient(t, p.Config())
	require.Eventually(t, func() bool {
		return c.Create(ctx, &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: "muster-registration", Name: "t"}, Spec: v1alpha1.JoinTokenSpec{AutoAccept: true}}) == nil
	}, patience, interval)
	var secret corev1.Secret
	require.Eventually(t, func() bool {
		err := c.Get(ctx, client.ObjectKey{Namespace: "muster-registration", Name: "t"}, &secret)
		return err == nil && len(secret.Data["join.yaml"]) > 0
	}, patience, interval)
	boot, err := registration.ParseBootstrap(secret.Data["join.yaml"])
	require.NoError(t, err)
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	cred, private, err := token.Method{}.Request(claim, nil)
	require.NoError(t, err)
	jr := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{ClusterID: "abc", Name: "east", Credential: cred}}
	require.NoError(t, registration.Sign(jr, claim, boot))
	bc := newClient(t, boot.RESTConfig())
	start := time.Now()
	require.Eventually(t, func() bool { return bc.Create(ctx, jr) == nil }, patience, interval)
	require.Eventually(t, func() bool {
		require.NoError(t, bc.Get(ctx, client.ObjectKeyFromObject(jr), jr))
		return jr.Status.Answer == v1alpha1.AnswerIssued
	}, patience, interval)
	t.Log("issued after", time.Since(start), jr.Status)
	m, err := token.Method{}.Open(claim, private, *jr.Status.Credential)
	require.NoError(t, err)
	config, err := m.Config(boot.RESTConfig(), claim)
	require.NoError(t, err)
	ac := newClient(t, config)
	var self v1alpha1.Membership
	require.NoError(t, ac.Get(ctx, client.ObjectKey{Namespace: jr.Status.Namespace, Name: "self"}, &self))
	self.Status.Claim = claim.Fingerprint()
	self.Status.Conditions = []metav1.Condition{{Type: "Joined", Status: "True", Reason: "AgentJoined", LastTransitionTime: metav1.Now()}}
	require.NoError(t, ac.Status().Update(ctx, &self))
	var mc v1alpha1.MemberCluster
	require.Eventually(t, func() bool {
		require.NoError(t, c.Get(ctx, client.ObjectKey{Name: "east"}, &mc))
		return mc.Status.Phase == v1alpha1.PhaseJoined
	}, patience, interval)
	t.Logf("%+v", mc.Status)
	require.NoError(t, c.Delete(ctx, &mc))
	require.Eventually(t, func() bool {
		if ac.Get(ctx, client.ObjectKey{Namespace: jr.Status.Namespace, Name: "self"}, &self) == nil && self.Spec.Clean {
			self.Status.Conditions[0].Status = "False"
			self.Status.Conditions[0].Reason = "CleanedUp"
			_ = ac.Status().Update(ctx, &self)
		}
		return c.Get(ctx, client.ObjectKey{Name: "east"}, &mc) != nil
	}, patience, interval)
}
