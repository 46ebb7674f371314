package apiserver_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/mustertest/apiserver"
)

func clients(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	out, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return out
}

func grant(t testing.TB, s *apiserver.Server, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	admin := clients(t, s.Admin()).RbacV1()
	_, err := admin.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user},
		Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = admin.RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: "User", Name: user}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestRBAC_OnlyGrantedVerbsAndNoEscalation(t *testing.T) {
	s := start(t, apiserver.Options{})
	grant(t, s, "dev", rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"},
		Verbs: []string{"get"}},
		rbacv1.PolicyRule{APIGroups: []string{"rbac.authorization.k8s.io"}, Resources: []string{"roles"},
			Verbs: []string{"create"}})
	dev := clients(t, s.Config("dev"))
	_, err := dev.CoreV1().ConfigMaps("default").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = dev.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	_, err = dev.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	role := func(verb string) error {
		_, err := dev.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: verb},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{verb}}}}, metav1.CreateOptions{})
		return err
	}
	require.NoError(t, role("get"))
	require.ErrorContains(t, role("delete"), "is attempting to grant RBAC permissions not currently held")
}

func TestServiceAccountToken_ExpiresByTheClock(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	s := start(t, apiserver.Options{Clock: clock})
	request, err := clients(t, s.Admin()).CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default",
		&authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := s.Config("")
	config.BearerToken = request.Status.Token
	c := clients(t, config)
	review, err := c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "system:serviceaccount:default:default", review.Status.UserInfo.Username)
	clock.Step(601 * time.Second)
	_, err = c.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
		metav1.CreateOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "%v", err)
}

// TestBootstrapToken_Authenticates checks that the token of a Secret authenticates while the Secret is valid.
func TestBootstrapToken_Authenticates(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Now())
	s := start(t, apiserver.Options{Clock: clock})
	secrets := clients(t, s.Admin()).CoreV1().Secrets("kube-system")
	config := s.Config("")
	config.BearerToken = "abcdef.0123456789abcdef"
	reviews := clients(t, config).AuthenticationV1().SelfSubjectReviews()
	unauthorized := func(reason string) {
		t.Helper()
		_, err := reviews.Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		require.True(t, apierrors.IsUnauthorized(err), "%s: %v", reason, err)
	}
	unauthorized("no Secret")
	valid := map[string]string{"token-id": "abcdef", "token-secret": "0123456789abcdef",
		"usage-bootstrap-authentication": "true", "auth-extra-groups": "system:bootstrappers:robots",
		"expiration": clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	secret := func(key, value string) *corev1.Secret {
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"},
			Type: "bootstrap.kubernetes.io/token", StringData: maps.Clone(valid)}
		if key != "" {
			object.StringData[key] = value
		}
		return object
	}
	_, err := secrets.Create(t.Context(), secret("", ""), metav1.CreateOptions{})
	require.NoError(t, err)
	for key, value := range map[string]string{"token-id": "fedcba", "token-secret": "fedcba9876543210",
		"usage-bootstrap-authentication": "false", "auth-extra-groups": "system:masters", "expiration": "tomorrow"} {
		_, err := secrets.Update(t.Context(), secret(key, value), metav1.UpdateOptions{})
		require.NoError(t, err)
		unauthorized(key)
	}
	_, err = secrets.Update(t.Context(), secret("", ""), metav1.UpdateOptions{})
	require.NoError(t, err)
	review, err := reviews.Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "system:bootstrap:abcdef", review.Status.UserInfo.Username)
	require.ElementsMatch(t, []string{"system:authenticated", "system:bootstrappers", "system:bootstrappers:robots"},
		review.Status.UserInfo.Groups)
	clock.Step(time.Hour)
	unauthorized("expired")
}

func TestCertificate_ApprovedRequestIsSignedAndAuthenticates(t *testing.T) {
	s := start(t, apiserver.Options{})
	admin := clients(t, s.Admin()).CertificatesV1().CertificateSigningRequests()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "robot",
		Organization: []string{"robots"}}}, key)
	require.NoError(t, err)
	csr, err := admin.Create(t.Context(),
		&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "robot"},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
				SignerName: certificatesv1.KubeAPIServerClientSignerName,
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			}}, metav1.CreateOptions{})
	require.NoError(t, err)
	s.Settle()
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved,
		Status: corev1.ConditionTrue, Reason: "Test"}}
	_, err = admin.UpdateApproval(t.Context(), "robot", csr, metav1.UpdateOptions{})
	require.NoError(t, err)
	s.Settle()
	csr, err = admin.Get(t.Context(), "robot", metav1.GetOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, csr.Status.Certificate, "%v", csr.Status)
	private, err := keyutil.MarshalPrivateKeyToPEM(key)
	require.NoError(t, err)
	config := &rest.Config{Host: s.URL(), Dial: s.DialContext, TLSClientConfig: rest.TLSClientConfig{
		CAData: s.CertificateAuthority(), CertData: csr.Status.Certificate, KeyData: private}}
	review, err := clients(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, "robot", review.Status.UserInfo.Username)
	require.Contains(t, review.Status.UserInfo.Groups, "robots")
}

func TestQuota_LimitsObjectCounts(t *testing.T) {
	s := start(t, apiserver.Options{})
	c := clients(t, s.Admin()).CoreV1()
	_, err := c.ResourceQuotas("default").Create(t.Context(),
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"},
			Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": apiresource.MustParse("1")}}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	s.Settle()
	secret := func(name string) error {
		_, err := c.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}},
			metav1.CreateOptions{})
		return err
	}
	require.NoError(t, secret("a"))
	require.ErrorContains(t, secret("b"),
		"exceeded quota: q, requested: count/secrets=1, used: count/secrets=1, limited: count/secrets=1")
	require.NoError(t, c.Secrets("default").Delete(t.Context(), "a", metav1.DeleteOptions{}))
	s.Settle()
	require.NoError(t, secret("b"))
}

// TestQuota_RejectedRequestIsNotCounted checks that a request which exceeds one quota is not counted by another one,
// and that a quota whose status has no usage counts from zero.
func TestQuota_RejectedRequestIsNotCounted(t *testing.T) {
	s := start(t, apiserver.Options{})
	c := clients(t, s.Admin()).CoreV1()
	for name, hard := range map[string]string{"a": "5", "b": "0"} {
		_, err := c.ResourceQuotas("default").Create(t.Context(),
			&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/secrets": apiresource.MustParse(hard)}}},
			metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s.Settle()
	quota := func(name string) *corev1.ResourceQuota {
		q, err := c.ResourceQuotas("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return q
	}
	before := quota("a")
	_, err := c.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{})
	require.ErrorContains(t, err, "exceeded quota: b")
	require.Equal(t, before.ResourceVersion, quota("a").ResourceVersion)

	require.NoError(t, c.ResourceQuotas("default").Delete(t.Context(), "b", metav1.DeleteOptions{}))
	s.Settle()
	before.Status.Used = nil
	_, err = c.ResourceQuotas("default").UpdateStatus(t.Context(), before, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = c.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestFaults_BeforeAndAfterTheEffect(t *testing.T) {
	lost := errors.New("lost")
	var fault *apiserver.Fault
	s := start(t, apiserver.Options{Faults: apiserver.FaultsFunc(func(info apiserver.RequestInfo) *apiserver.Fault {
		if info.Verb != "create" {
			return nil
		}
		return fault
	})})
	c := clients(t, s.Admin()).CoreV1().ConfigMaps("default")
	create := func(name string) error {
		_, err := c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	fault = &apiserver.Fault{DropBefore: lost}
	require.ErrorIs(t, create("a"), lost)
	_, err := c.Get(t.Context(), "a", metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	fault = &apiserver.Fault{DropAfter: lost}
	require.ErrorIs(t, create("b"), lost)
	_, err = c.Get(t.Context(), "b", metav1.GetOptions{})
	require.NoError(t, err)
}

func TestCRD_RemovalDeletesInstances(t *testing.T) {
	s := start(t, apiserver.Options{})
	widgets := installWidgetDefinition(t, s)
	_, err := widgets.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NoError(t,
		clients(t, s.Admin()).RESTClient().Delete().AbsPath(
			"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com").Do(t.Context()).Error())
	s.Settle()
	_, err = widgets.List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
}
