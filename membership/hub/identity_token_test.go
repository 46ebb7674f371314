package hub_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration/identity"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestIdentity_JoinsWithoutJoinToken checks that the subject in spec.identity joins with only its own credential, that
// no other subject can, and that the removal of the identity does not end the membership.
func TestIdentity_JoinsWithoutJoinToken(t *testing.T) {
	for _, test := range []struct {
		name string
		do   func(*testing.T, *testHub)
	}{
		{"ServiceAccount", testIdentityServiceAccount},
		{"WaitsForAcceptance", testIdentityWaits},
		{"OtherSubject", testIdentityOtherSubject},
		{"Withdrawn", testIdentityWithdrawn},
		{"NameTaken", testIdentityNameTaken},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { test.do(t, startHub(t, newMemory(t), hub.Options{})) })
		})
	}
}

// announce creates a MemberCluster with an identity.
func (h *testHub) announce(name string, accepted *bool, subject rbacv1.Subject) {
	h.T.Helper()
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.MemberClusterSpec{Accepted: accepted, Identity: &subject, HeartbeatPeriodSeconds: 1},
	})
}

// byIdentity returns an agent with its own credential and without a JoinToken.
func (h *testHub) byIdentity(own *rest.Config, name, member string) *testAgent {
	h.T.Helper()
	bootstrap, err := identity.NewSource(own, member, "")
	require.NoError(h.T, err)
	return h.newAgent(nil, agent.Options{
		Name: name, Method: identity.Method{}, Bootstrap: bootstrap, HubConfig: func(config *rest.Config) {
			config.CertData, config.KeyData = own.CertData, own.KeyData
			config.BearerToken = own.BearerToken
		},
	})
}

// refused waits until the hub has no offer for a subject to join as a member.
func (h *testHub) refused(own *rest.Config, member string) {
	h.T.Helper()
	bootstrap, err := identity.NewSource(own, member, "")
	require.NoError(h.T, err)
	h.Eventually("the subject has no bootstrap credential for "+member, func() error {
		_, err := bootstrap.Load(h.T.Context())
		return orError(apierrors.IsForbidden(err), "%v", err)
	})
}

// offered waits until the hub has an offer for a subject to join as a member.
func (h *testHub) offered(own *rest.Config, member string) {
	h.T.Helper()
	bootstrap, err := identity.NewSource(own, member, "")
	require.NoError(h.T, err)
	h.Eventually("the subject has a bootstrap credential for "+member, func() error {
		_, err := bootstrap.Load(h.T.Context())
		return err
	})
}

// untilNoOffer waits until the objects of the offer for a member are deleted.
func (h *testHub) untilNoOffer(member string) {
	h.T.Helper()
	key := client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: identity.TokenName(member)}
	for _, object := range []client.Object{&v1alpha1.JoinToken{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}} {
		h.Eventually("the offer for "+member+" is withdrawn", func() error {
			err := h.Client.Get(h.T.Context(), key, object)
			return orError(apierrors.IsNotFound(err), "%T %s: %v", object, key, err)
		})
	}
}

func user(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.UserKind, Name: name} }

func testIdentityServiceAccount(t *testing.T, h *testHub) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "edge"}}
	h.Create(account)
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, h.Client.SubResource("token").Create(t.Context(), account, request))
	own := rest.AnonymousClientConfig(h.withCertificate("without-permissions"))
	own.BearerToken = request.Status.Token

	h.announce("edge", new(true), rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "edge"})
	a := h.byIdentity(own, "edge", "edge").start()
	h.untilCondition("edge", v1alpha1.ConditionHealthy, metav1.ConditionTrue, v1alpha1.ReasonHeartbeating)
	require.Equal(t, v1alpha1.CredentialIdentity, h.member("edge").Spec.Credential)
	h.untilNoOffer("edge")
	h.refused(own, "edge")

	// An identity that is removed is not a request to end the membership: the agent keeps its access.
	before := h.member("edge")
	h.change("edge", func(c *v1alpha1.MemberCluster) { c.Spec.Identity = nil })
	removed := time.Now()
	h.Eventually("heartbeats continue", func() error {
		lease := &coordinationv1.Lease{}
		key := client.ObjectKey{Namespace: "member-edge", Name: membership.LeaseName}
		if err := h.Client.Get(t.Context(), key, lease); err != nil {
			return err
		}
		renewed := lease.Spec.RenewTime
		return orError(renewed != nil && renewed.After(removed.Add(2*time.Second)), "the last heartbeat was at %v", renewed)
	})
	after := h.member("edge")
	require.Equal(t, before.UID, after.UID)
	require.Equal(t, before.Spec.Claim, after.Spec.Claim)
	require.Equal(t, v1alpha1.PhaseJoined, after.Status.Phase)
	require.Equal(t, lifecycle.Joined, a.step().Phase)
	h.remove("edge")
	a.stop()
}

func testIdentityWaits(t *testing.T, h *testHub) {
	own := h.withCertificate("agent-of-waits")
	h.announce("waits", nil, user("agent-of-waits"))
	a := h.byIdentity(own, "waits", "waits").start()
	h.request("id-waits", v1alpha1.AnswerHeld, v1alpha1.ReasonWaitingForAcceptance)
	require.Nil(t, h.member("waits").Spec.Accepted, "an identity accepts no cluster")
	h.change("waits", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(true) })
	h.untilPhase("waits", v1alpha1.PhaseJoined)
	h.remove("waits")
	a.stop()
}

// testIdentityOtherSubject checks that neither a user who is not the subject of the member, nor the subject of another
// member, can claim the member.
func testIdentityOtherSubject(t *testing.T, h *testHub) {
	h.announce("victim", new(true), user("agent-of-victim"))
	h.offered(h.withCertificate("agent-of-victim"), "victim")
	stranger := h.withCertificate("stranger")
	h.refused(stranger, "victim")
	a := h.byIdentity(stranger, "victim", "victim").start()
	h.Eventually("the agent has no bootstrap credential", func() error {
		return orError(a.step().Phase == lifecycle.Registering, "%+v", a.step())
	})

	h.announce("mallory", new(true), user("mallory"))
	mallory := h.withCertificate("mallory")
	h.offered(mallory, "mallory")
	h.refused(mallory, "victim")
	b := h.byIdentity(mallory, "victim", "mallory")
	b.options.ClusterID = "id-mallory"
	b.start()
	h.request("id-mallory", v1alpha1.AnswerDenied, v1alpha1.ReasonTokenRefused)

	victim := h.member("victim")
	require.Empty(t, victim.Spec.Claim)
	require.Empty(t, victim.Spec.ClusterID)
	require.NotEqual(t, lifecycle.Joined, a.step().Phase)
	a.stop()
	b.stop()
	h.remove("victim")
	h.remove("mallory")
}

// testIdentityWithdrawn checks that only the current subject has an offer, and none after the identity is removed or
// the cluster is denied.
func testIdentityWithdrawn(t *testing.T, h *testHub) {
	first, second := h.withCertificate("first"), h.withCertificate("second")
	h.announce("changes", new(true), user("first"))
	h.offered(first, "changes")
	key := client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: identity.TokenName("changes")}
	before, after := &v1alpha1.JoinToken{}, &v1alpha1.JoinToken{}
	require.NoError(t, h.Client.Get(t.Context(), key, before))
	h.change("changes", func(c *v1alpha1.MemberCluster) { c.Spec.Identity = new(user("second")) })
	h.offered(second, "changes")
	h.refused(first, "changes")
	require.NoError(t, h.Client.Get(t.Context(), key, after))
	require.NotEqual(t, before.UID, after.UID, "the first subject may have read the Secret of its JoinToken")
	h.change("changes", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = new(false) })
	h.untilNoOffer("changes")
	h.change("changes", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = nil })
	h.offered(second, "changes")
	h.change("changes", func(c *v1alpha1.MemberCluster) { c.Spec.Identity = nil })
	h.untilNoOffer("changes")
	h.refused(second, "changes")
	h.remove("changes")
}

// testIdentityNameTaken checks that the subject cannot read a JoinToken or a Secret of another owner that has the name
// of the subject's offer, and that the hub changes and deletes no object of another owner.
func testIdentityNameTaken(t *testing.T, h *testHub) {
	own := h.withCertificate("agent-of-taken")
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: identity.TokenName("taken-binding")},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "none"},
	}
	h.Create(binding)
	h.token(identity.TokenName("taken-token"), v1alpha1.JoinTokenSpec{AutoAccept: true})
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: membership.RegistrationNamespace, Name: identity.TokenName("taken-secret"),
	}}
	h.Create(secret)
	names := []string{"taken-binding", "taken-token", "taken-secret", "taken-last"}
	for _, name := range names {
		h.announce(name, new(true), user("agent-of-taken"))
	}
	h.offered(own, "taken-last")
	for _, name := range names[:3] {
		h.refused(own, name)
	}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	require.Empty(t, binding.Subjects)
	token := &v1alpha1.JoinToken{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{
		Namespace: membership.RegistrationNamespace, Name: identity.TokenName("taken-token"),
	}, token))
	require.Empty(t, token.OwnerReferences)
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{}))

	// As soon as the name is free, the subject can join.
	require.NoError(t, h.Client.Delete(t.Context(), secret))
	h.change("taken-secret", func(c *v1alpha1.MemberCluster) { c.Spec.Accepted = nil })
	h.offered(own, "taken-secret")
	require.NoError(t, h.Client.Delete(t.Context(), binding))
	for _, name := range names {
		h.remove(name)
	}
}
