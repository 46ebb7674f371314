package localplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// The following tests check properties that a plane shares with a cluster. All use the shared plane, each in a separate
// namespace.

func TestDeploymentBecomesAvailable(t *testing.T) {
	client := clientFor(t, shared.ForTest(t).Config())
	deployAndWait(t, client, newNamespace(t, client))
}

func TestJobCompletes(t *testing.T) {
	client := clientFor(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, client)
	spec := podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := client.BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: spec}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		job, err := client.BatchV1().Jobs(namespace).Get(t.Context(), "once", metav1.GetOptions{})
		return err == nil && job.Status.Succeeded == 1
	}, eventually, tick)
}

// TestNodesRenewTheirLeases checks that nodes renew their Leases. Without renewed Leases, the node controller marks
// nodes as unhealthy after 50 seconds, and their pods become not ready.
func TestNodesRenewTheirLeases(t *testing.T) {
	client := clientFor(t, shared.ForTest(t).Config())
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, nodes.Items)
	require.Eventually(t, func() bool {
		leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
		return err == nil && len(leases.Items) == len(nodes.Items) && leases.Items[0].Spec.RenewTime != nil
	}, eventually, tick)
}

func TestNodes_HaveTheRequestedCapacity(t *testing.T) {
	p := shared.ForTest(t)
	nodes, err := clientFor(t, p.Config()).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, nodes.Items, 2)
	for _, node := range nodes.Items {
		require.True(t, isReady(&node), "Start waits until nodes are ready")
		require.Empty(t, node.Spec.Taints)
		for name, want := range capacity {
			require.Zero(t, want.Cmp(node.Status.Capacity[name]), "capacity of %s", name)
			require.Zero(t, want.Cmp(node.Status.Allocatable[name]), "allocatable of %s", name)
		}
	}

	tainted := newNode("tainted", capacity)
	tainted.Spec.Taints = []corev1.Taint{{Key: "example.com/keep-out", Effect: corev1.TaintEffectNoSchedule}}
	client, err := newPlaneClient(p.Config())
	require.NoError(t, err)
	defer client.close()
	_, err = client.CoreV1().Nodes().Create(t.Context(), tainted, metav1.CreateOptions{})
	require.NoError(t, err)
	defer func() {
		require.NoError(t, client.CoreV1().Nodes().Delete(context.Background(), tainted.Name, metav1.DeleteOptions{}))
	}()
	require.NoError(t, client.hasReadyNodes(2)(t.Context()))
	require.ErrorContains(t, client.hasReadyNodes(3)(t.Context()), "2 of 3 nodes", "a tainted node does not accept pods")
}

func TestNamespaceTerminates(t *testing.T) {
	client := clientFor(t, shared.ForTest(t).Config())
	namespace := newNamespace(t, client)
	_, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "content"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, client.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, eventually, tick)
}

func TestGarbageIsCollected(t *testing.T) {
	client := clientFor(t, shared.ForTest(t).Config())
	configMaps := client.CoreV1().ConfigMaps(newNamespace(t, client))
	owner, err := configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = configMaps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:            "owned",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: owner.Name, UID: owner.UID}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, configMaps.Delete(t.Context(), owner.Name, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		_, err := configMaps.Get(t.Context(), "owned", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, eventually, tick)
}

func TestSignedRequestAuthenticates(t *testing.T) {
	p := shared.ForTest(t)
	client := clientFor(t, p.Config())
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: "agent", Organization: []string{"agents"}}}, key)
	require.NoError(t, err)

	requests := client.CertificatesV1().CertificateSigningRequests()
	csr, err := requests.Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	})
	csr, err = requests.UpdateApproval(t.Context(), csr.Name, csr, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		csr, err = requests.Get(t.Context(), csr.Name, metav1.GetOptions{})
		return err == nil && len(csr.Status.Certificate) > 0
	}, eventually, tick)

	keyPEM, err := encodeKey(key)
	require.NoError(t, err)
	cfg := p.Config()
	cfg.CertData, cfg.KeyData = csr.Status.Certificate, keyPEM
	user := whoAmI(t, cfg)
	require.Equal(t, "agent", user.Username)
	require.Contains(t, user.Groups, "agents")
}

func TestTokenEndsWithItsServiceAccount(t *testing.T) {
	t.Parallel()
	p := shared.ForTest(t)
	client := clientFor(t, p.Config())
	accounts := client.CoreV1().ServiceAccounts(newNamespace(t, client))
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	seconds := int64(600)
	token, err := accounts.CreateToken(t.Context(), account.Name,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	require.NoError(t, err)

	cfg := rest.AnonymousClientConfig(p.Config())
	cfg.BearerToken = token.Status.Token
	require.Equal(t, "system:serviceaccount:"+account.Namespace+":agent", whoAmI(t, cfg).Username)

	require.NoError(t, accounts.Delete(t.Context(), account.Name, metav1.DeleteOptions{}))
	agent := clientFor(t, cfg)
	require.Eventually(t, func() bool { // The API server caches the review of a token for ten seconds.
		_, err := agent.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		return apierrors.IsUnauthorized(err)
	}, eventually, tick)
}

func TestRBAC_BindingOfAGroup(t *testing.T) {
	p := shared.ForTest(t)
	admin := clientFor(t, p.Config())
	namespace := newNamespace(t, admin)
	cfg := p.User("jane", "devs")
	jane := clientFor(t, cfg)
	require.Equal(t, "jane", whoAmI(t, cfg).Username)

	_, err := jane.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "without a binding: %v", err)

	_, err = admin.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "devs"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "devs"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := jane.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		return err == nil
	}, eventually, tick, "with a binding of the group")
	_, err = jane.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "in another namespace: %v", err)
}

func whoAmI(t *testing.T, cfg *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	review, err := clientFor(t, cfg).AuthenticationV1().SelfSubjectReviews().
		Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.UserInfo
}

func newNamespace(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return namespace.Name
}

func deployAndWait(t *testing.T, client kubernetes.Interface, namespace string) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	_, err := client.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		deployment, err := client.AppsV1().Deployments(namespace).Get(t.Context(), "web", metav1.GetOptions{})
		return err == nil && deployment.Status.AvailableReplicas == replicas
	}, eventually, tick)
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "example.com/never-pulled"}}}
}

// TestSweep checks that Sweep returns a created object until it is deleted, and omits the objects that Kubernetes
// creates for it.
func TestSweep(t *testing.T) {
	config := shared.ForTest(t).Config()
	client := clientFor(t, config)
	before, err := Sweep(t.Context(), config)
	require.NoError(t, err)
	require.Contains(t, before, "Namespace.v1 default")
	namespace := newNamespace(t, client)
	_, err = client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: "garbage", OwnerReferences: []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Thing", Name: "gone",
			UID: "gone"}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	after, err := Sweep(t.Context(), config)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"Namespace.v1 " + namespace, "ConfigMap.v1 " + namespace + "/settings"},
		after.Difference(before).UnsortedList())
}
