package csr

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/internal/regtest"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/apiserver"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var hub = localplane.Shared{Options: localplane.Options{Name: "csr"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &hub)) }

// newIssuer returns an issuer that has exactly the permissions of its RBAC markers.
func newIssuer(t *testing.T) (*Issuer, client.Client) {
	plane := hub.ForTest(t)
	admin := regtest.Client(t, plane.Config())
	regtest.Grant(t, admin, "hub")
	return &Issuer{Client: regtest.Client(t, plane.User("hub"))}, admin
}

func newMember(t *testing.T) (membership.Member, *registration.ClaimKey, v1alpha1.CredentialRequest) {
	claim := newClaim(t)
	requested, _, err := Method{}.Request(claim, nil)
	require.NoError(t, err)
	return membership.Member{Name: "east", UID: "uid", Namespace: "member-east",
		Claim: claim.Fingerprint()}, claim, requested
}

func issue(t *testing.T, issuer *Issuer, member membership.Member,
	requested v1alpha1.CredentialRequest) v1alpha1.Credential {
	var credential v1alpha1.Credential
	require.Eventually(t, func() bool {
		var err error
		if credential, err = issuer.Issue(t.Context(), member, requested); err != nil {
			require.ErrorIs(t, err, membership.ErrPending)
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	return credential
}

func requestsOf(t *testing.T, admin client.Client) []certificatesv1.CertificateSigningRequest {
	var list certificatesv1.CertificateSigningRequestList
	require.NoError(t, admin.List(t.Context(), &list))
	return list.Items
}

func TestIssue_CertificateAuthenticatesClaim(t *testing.T) {
	issuer, admin := newIssuer(t)
	issuer.Lifetime = time.Hour
	member, claim, _ := newMember(t)
	requested, private, err := Method{}.Request(claim, nil)
	require.NoError(t, err)

	credential := issue(t, issuer, member, requested)
	require.Empty(t, requestsOf(t, admin), "the CertificateSigningRequest is deleted after success")
	require.WithinDuration(t, time.Now(), credential.IssuedAt.Time, time.Minute)
	require.WithinDuration(t, time.Now().Add(time.Hour), credential.ExpirationTime.Time, 10*time.Minute,
		"kube-controller-manager backdates certificates by five minutes")

	material, err := Method{}.Open(claim, private, credential)
	require.NoError(t, err)
	config, err := material.Config(rest.AnonymousClientConfig(hub.ForTest(t).Config()), claim)
	require.NoError(t, err)
	agent := regtest.Client(t, config)
	review := &authenticationv1.SelfSubjectReview{}
	require.NoError(t, agent.Create(t.Context(), review))
	require.Equal(t, "muster:member:"+claim.Fingerprint(), review.Status.UserInfo.Username)
	require.Equal(t, []string{"system:authenticated"}, review.Status.UserInfo.Groups, "a member is in no group")

	subject, err := issuer.Subject(member)
	require.NoError(t, err)
	read := func() error {
		return agent.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kube-root-ca.crt"}, &corev1.ConfigMap{})
	}
	require.ErrorContains(t, read(), "forbidden")
	regtest.Create(t, admin, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "east"}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	})
	require.Eventually(t, func() bool { return read() == nil }, time.Minute, 50*time.Millisecond,
		"the subject is the user of the certificate")
}

func TestIssue_InvalidRequestsCreateNoObjects(t *testing.T) {
	issuer, admin := newIssuer(t)
	member, claim, _ := newMember(t)
	for reason, data := range invalidRequests(t, claim) {
		_, err := issuer.Issue(t.Context(), member,
			v1alpha1.CredentialRequest{Type: v1alpha1.CredentialCertificate, CertificateRequest: data})
		require.ErrorAsf(t, err, new(*membership.InvalidError), "%s: %v", reason, err)
	}
	require.Empty(t, requestsOf(t, admin))
}

// TestIssue_ContinuesAfterRestart checks that an issuer continues with an existing object of an issuer that was killed.
func TestIssue_ContinuesAfterRestart(t *testing.T) {
	issuer, admin := newIssuer(t)
	member, _, requested := newMember(t)
	for reason, before := range map[string]func(*certificatesv1.CertificateSigningRequest){
		"before the request was created": func(*certificatesv1.CertificateSigningRequest) {},
		"after the request was created": func(csr *certificatesv1.CertificateSigningRequest) {
			require.NoError(t, issuer.Client.Create(t.Context(), csr))
		},
		"after the request was approved": func(csr *certificatesv1.CertificateSigningRequest) {
			require.NoError(t, issuer.Client.Create(t.Context(), csr))
			require.ErrorIs(t, issuer.approve(t.Context(), csr, member), membership.ErrPending)
		},
		"after the certificate was issued": func(csr *certificatesv1.CertificateSigningRequest) {
			require.NoError(t, issuer.Client.Create(t.Context(), csr))
			require.ErrorIs(t, issuer.approve(t.Context(), csr, member), membership.ErrPending)
			require.Eventually(t, func() bool {
				return admin.Get(t.Context(), client.ObjectKeyFromObject(csr), csr) == nil && len(csr.Status.Certificate) > 0
			}, time.Minute, 20*time.Millisecond)
		},
		"after the request was deleted": func(*certificatesv1.CertificateSigningRequest) {
			issue(t, issuer, member, requested)
		},
	} {
		before(issuer.signingRequest(member, requested))
		credential := issue(t, issuer, member, requested)
		require.NotEmpty(t, credential.Certificate, reason)
		require.Empty(t, requestsOf(t, admin), reason)
	}
}

// TestIssue_DiscardsOldCertificates checks that a certificate that was never delivered is not returned when it has
// expired or is about to.
func TestIssue_DiscardsOldCertificates(t *testing.T) {
	issuer, admin := newIssuer(t)
	issuer.Lifetime = time.Hour
	member, _, requested := newMember(t)
	for _, age := range []time.Duration{31 * time.Minute, 2 * time.Hour} {
		old := issuer.signingRequest(member, requested)
		require.NoError(t, issuer.Client.Create(t.Context(), old))
		require.ErrorIs(t, issuer.approve(t.Context(), old, member), membership.ErrPending)
		require.Eventually(t, func() bool {
			return admin.Get(t.Context(), client.ObjectKeyFromObject(old), old) == nil && len(old.Status.Certificate) > 0
		}, time.Minute, 20*time.Millisecond)
		issuer.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(age))
		_, err := issuer.Issue(t.Context(), member, requested)
		require.ErrorIs(t, err, membership.ErrPending)
		require.Empty(t, requestsOf(t, admin))
		issuer.Clock = nil
		require.NotEqual(t, old.Status.Certificate, issue(t, issuer, member, requested).Certificate)
	}
}

func TestIssue_ReportsTheConflictingObject(t *testing.T) {
	issuer, admin := newIssuer(t)
	member, _, requested := newMember(t)
	condition := func(kind certificatesv1.RequestConditionType) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Policy",
			Message: "not on Sundays"}
	}
	for _, test := range []struct {
		reason string
		file   func(csr *certificatesv1.CertificateSigningRequest)
		want   string
	}{
		{"another approver denied the request", func(csr *certificatesv1.CertificateSigningRequest) {
			regtest.Create(t, admin, csr)
			csr.Status.Conditions = append(csr.Status.Conditions, condition(certificatesv1.CertificateDenied))
			require.NoError(t, admin.SubResource("approval").Update(t.Context(), csr))
		}, "denied by another approver (Policy: not on Sundays)"},
		{"the signer failed", func(csr *certificatesv1.CertificateSigningRequest) {
			regtest.Create(t, admin, csr)
			csr.Status.Conditions = append(csr.Status.Conditions, condition(certificatesv1.CertificateFailed))
			require.NoError(t, admin.SubResource("status").Update(t.Context(), csr))
		}, "the signer of the request failed (Policy: not on Sundays)"},
		{"another client created a request with the same name and another user",
			func(csr *certificatesv1.CertificateSigningRequest) {
				csr.Spec.Request = request(t, newClaim(t).Signer(), certificateRequest("kubernetes-admin"))
				regtest.Create(t, admin, csr)
			}, "another client created a different request"},
		{"another client created a request with the same name and another signer",
			func(csr *certificatesv1.CertificateSigningRequest) {
				csr.Spec.SignerName = "example.com/anything-goes"
				regtest.Create(t, admin, csr)
			}, "another client created a different request"},
		{"another client created a request with the same name and no expiration",
			func(csr *certificatesv1.CertificateSigningRequest) {
				csr.Spec.ExpirationSeconds = nil
				regtest.Create(t, admin, csr)
			}, "another client created a different request"},
	} {
		csr := issuer.signingRequest(member, requested)
		test.file(csr)
		_, err := issuer.Issue(t.Context(), member, requested)
		require.ErrorContains(t, err, test.want, test.reason)
		require.ErrorContains(t, err, csr.Name, test.reason)
		require.NotErrorIs(t, err, membership.ErrPending, test.reason)
		left := &certificatesv1.CertificateSigningRequest{}
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(csr), left))
		for _, condition := range left.Status.Conditions {
			require.NotEqual(t, certificatesv1.CertificateApproved, condition.Type, test.reason)
		}
		require.NoError(t, issuer.Clean(t.Context(), member), "Clean deletes the request of a leaving member")
		require.Empty(t, requestsOf(t, admin), test.reason)
	}
}

// TestIssue_NoSigner checks the error of an API server whose controllers do not run, among them the signer.
func TestIssue_NoSigner(t *testing.T) {
	server, err := apiserver.New(apiserver.Options{ManualControllers: true})
	require.NoError(t, err)
	t.Cleanup(server.Close)

	clock := clocktesting.NewFakePassiveClock(time.Now())
	issuer := &Issuer{Client: regtest.Client(t, server.Admin()), Clock: clock}
	member, _, requested := newMember(t)
	for range 3 {
		_, err = issuer.Issue(context.Background(), member, requested)
		require.ErrorIs(t, err, membership.ErrPending)
	}
	clock.SetTime(clock.Now().Add(timeout + time.Second))
	_, err = issuer.Issue(context.Background(), member, requested)
	require.ErrorIs(t, err, ErrNoSigner)
	require.NotErrorIs(t, err, membership.ErrPending)
	require.ErrorContains(t, err, "token method", "the next step")
	require.NoError(t, issuer.Clean(context.Background(), member))
	require.Empty(t, requestsOf(t, issuer.Client))
}
