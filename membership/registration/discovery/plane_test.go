package discovery_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/cluster-bootstrap/token/jws"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	"github.com/muster-sdk/muster/membership/registration/internal/regtest"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// plane is the hub. The definitions are installed before the garbage collector starts, because it discovers later ones
// only twice a minute.
var plane = localplane.Shared{Options: localplane.Options{
	Name: "discovery", Prepare: mustertest.Prepare(regtest.Scheme(), crds.Install)}}

func TestMain(m *testing.M) { mustertest.Main(m, &plane) }

// run runs a manager, which setup configures, until the test ends.
func run(t *testing.T, config *rest.Config, setup func(manager.Manager) error) {
	t.Helper()
	mustertest.StartManager(t, config, manager.Options{Scheme: regtest.Scheme(), Logger: logr.Discard()}, setup)
}

// publisher returns a client of a user who has exactly the permissions that Publish documents.
func publisher(t *testing.T, p *localplane.Plane, admin client.Client) client.Client {
	t.Helper()
	const name = "publisher"
	at := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: name}
	verbs := []string{"get", "create"}
	regtest.Create(t, admin, &rbacv1.Role{ObjectMeta: at, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: verbs},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: verbs},
	}}, &rbacv1.RoleBinding{
		ObjectMeta: at, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	})
	return regtest.Client(t, p.User(name))
}

// unpublish deletes cluster-info after a test.
func unpublish(t *testing.T, admin client.Client) {
	t.Cleanup(func() {
		at := metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "kubeadm:bootstrap-signer-clusterinfo"}
		for _, object := range []client.Object{
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"}},
			&rbacv1.Role{ObjectMeta: at}, &rbacv1.RoleBinding{ObjectMeta: at},
		} {
			require.NoError(t, client.IgnoreNotFound(admin.Delete(context.Background(), object)))
		}
	})
}

// TestDiscover_TokenToMember checks the path from a token to a member on an empty hub, including all errors.
func TestDiscover_TokenToMember(t *testing.T) {
	p := plane.ForTest(t)
	config := p.Config()
	admin := regtest.Client(t, config)
	pins, err := discovery.CACertHashes(config.CAData)
	require.NoError(t, err)
	discover := func(change func(*discovery.Options)) (*registration.Bootstrap, error) {
		options := discovery.Options{Server: config.Host, Token: "abc123.0123456789abcdef", CACertHashes: pins}
		change(&options)
		return discovery.Discover(t.Context(), options)
	}

	_, err = discover(func(*discovery.Options) {})
	require.ErrorIs(t, err, discovery.ErrNotAHub, "cluster-info is not published")
	unpublish(t, admin)
	user := publisher(t, p, admin)
	published, err := discovery.Published(t.Context(), user)
	require.NoError(t, err)
	require.Nil(t, published)
	require.False(t, published.Signed("abc123"))
	require.NoError(t, discovery.Publish(t.Context(), user, config.Host, config.CAData))
	published, err = discovery.Published(t.Context(), user)
	require.NoError(t, err)
	require.Equal(t, &discovery.Publication{Server: config.Host, CA: config.CAData, CACertHashes: pins}, published)
	require.NoError(t, discovery.Publish(t.Context(), user, published.Server, published.CA),
		"the published content can be published again")
	_, err = discovery.Published(t.Context(), regtest.Client(t, p.User("nobody")))
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	info := &corev1.ConfigMap{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: "kube-public", Name: "cluster-info"}, info))
	require.NoError(t, discovery.Publish(t.Context(), user, config.Host, config.CAData),
		"Publish with the same content succeeds")
	err = discovery.Publish(t.Context(), user, "https://elsewhere", config.CAData)
	require.ErrorIs(t, err, discovery.ErrPublished)
	require.ErrorContains(t, err, "ConfigMap kube-public/cluster-info")
	kept := info.DeepCopy()
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(info), kept))
	require.Equal(t, info.Data["kubeconfig"], kept.Data["kubeconfig"])
	_, err = discover(func(*discovery.Options) {})
	require.ErrorIs(t, err, discovery.ErrUnknownToken, "the token does not exist")

	run(t, config, func(mgr manager.Manager) error {
		return hub.SetupWithManager(mgr,
			hub.Options{BootstrapTokens: true})
	})
	name := "bootstrap-token-abc123"
	token := &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: name},
		Spec:       v1alpha1.JoinTokenSpec{Type: v1alpha1.JoinTokenBootstrapToken, AutoAccept: true, MaxUses: new(int32(1))},
	}
	mustertest.Holds(t, time.Minute, "the hub accepts JoinTokens",
		func() bool { return admin.Create(t.Context(), token) == nil })
	mustertest.Holds(t, time.Minute, "the token is ready", func() bool {
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(token), token))
		return meta.IsStatusConditionTrue(token.Status.Conditions, v1alpha1.ConditionReady)
	})
	secret := &corev1.Secret{}
	require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(token), secret))
	file, err := registration.ParseBootstrap(secret.Data[registration.BootstrapKey])
	require.NoError(t, err)
	withToken := func(o *discovery.Options) { o.Token = file.Token }

	var found *registration.Bootstrap
	mustertest.Holds(t, time.Minute, "the hub signs with the token", func() bool {
		var err error
		found, err = discover(withToken)
		if err != nil {
			require.ErrorIs(t, err, discovery.ErrUnknownToken)
		}
		return err == nil
	})
	published, err = discovery.Published(t.Context(), user)
	require.NoError(t, err)
	require.True(t, published.Signed("abc123"), "%v", published.SignedWith)
	require.False(t, published.Signed("zzzzzz"))
	// cluster-info has no identity of the hub: an agent receives it in the response to its JoinRequest.
	file.ExpirationTime, file.HubID = found.ExpirationTime, ""
	fromFile, err := file.Marshal()
	require.NoError(t, err)
	fromToken, err := found.Marshal()
	require.NoError(t, err)
	require.Equal(t, string(fromFile), string(fromToken), "discovery with the token returns the content of join.yaml")

	t.Run("untrusted servers and wrong tokens", func(t *testing.T) { testImpostors(t, config, file.Token, pins) })

	run(t, config, func(mgr manager.Manager) error {
		return agent.SetupWithManager(mgr, agent.Options{
			Name: "east", ClusterID: "east-id", Store: &testkit.MemoryStore{},
			Bootstrap: agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return found, nil }),
		})
	})
	member := &v1alpha1.MemberCluster{}
	mustertest.Holds(t, time.Minute, "the member has joined", func() bool {
		err := admin.Get(t.Context(), client.ObjectKey{Name: "east"}, member)
		return err == nil && meta.IsStatusConditionTrue(member.Status.Conditions, v1alpha1.ConditionJoined)
	})

	mustertest.Holds(t, time.Minute, "cluster-info has no signature of a token that is used up", func() bool {
		_, err := discover(withToken)
		if err != nil {
			require.ErrorIs(t, err, discovery.ErrUnknownToken)
		}
		return err != nil
	})
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	late := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{
		ClusterID: "west-id", Name: "west", Credential: v1alpha1.CredentialRequest{Type: v1alpha1.CredentialIdentity},
	}}
	require.NoError(t, registration.Sign(late, claim, found))
	require.NoError(t, regtest.Client(t, found.RESTConfig()).Create(t.Context(), late),
		"the credential is valid for ten more minutes")
	mustertest.Holds(t, time.Minute, "the request of another cluster is denied", func() bool {
		require.NoError(t, admin.Get(t.Context(), client.ObjectKeyFromObject(late), late))
		return late.Status.Answer == v1alpha1.AnswerDenied
	})
	require.Contains(t, late.Status.Conditions[0].Message, "is used up")

	require.NoError(t, admin.Delete(t.Context(), token))
	mustertest.Holds(t, time.Minute, "the credential is deleted with its JoinToken", func() bool {
		return apierrors.IsUnauthorized(regtest.Client(t, found.RESTConfig()).Get(t.Context(),
			client.ObjectKeyFromObject(late), late))
	})
}

// testImpostors checks the discovery of servers that are not the hub, and with wrong tokens.
func testImpostors(t *testing.T, config *rest.Config, token string, pins []string) {
	hubTransport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	serve := func(change func(*corev1.ConfigMap)) *httptest.Server {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			relayed, err := http.NewRequestWithContext(r.Context(), http.MethodGet, config.Host+r.URL.Path, nil)
			if err != nil {
				return
			}
			response, err := hubTransport.RoundTrip(relayed)
			if err != nil {
				return
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			info := &corev1.ConfigMap{}
			if err != nil || json.Unmarshal(body, info) != nil {
				return
			}
			change(info)
			_ = json.NewEncoder(w).Encode(info)
		}))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		t.Cleanup(server.Close)
		return server
	}
	id, secret := token[:6], token[7:]
	relay := serve(func(*corev1.ConfigMap) {})
	pinOfRelay := discovery.CACertHash(relay.Certificate())
	forger := serve(func(info *corev1.ConfigMap) { info.Data["kubeconfig"] += "\n# mine" })
	impostor := serve(func(info *corev1.ConfigMap) {
		kubeconfig := fmt.Sprintf(`{"clusters": [{"cluster": {"certificate-authority-data": %q}}]}`,
			base64.StdEncoding.EncodeToString(
				pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: relay.Certificate().Raw})))
		signature, err := jws.ComputeDetachedSignature(kubeconfig, id, secret)
		if err == nil {
			info.Data = map[string]string{"kubeconfig": kubeconfig, "jws-kubeconfig-" + id: signature}
		}
	})
	for _, test := range []struct {
		reason string
		change func(*discovery.Options)
		want   error
	}{
		{"a pin of another CA", func(o *discovery.Options) { o.CACertHashes = []string{pinOfRelay} }, discovery.ErrWrongPin},
		{"a token of another ID", func(o *discovery.Options) { o.Token = "zzzzzz." + secret }, discovery.ErrUnknownToken},
		{"a token with another secret", func(o *discovery.Options) { o.Token = id + ".aaaaaaaaaaaaaaaa" },
			discovery.ErrWrongSignature},
		{"a relay", func(o *discovery.Options) { o.Server = relay.URL }, discovery.ErrUntrusted},
		{"a relay that changes the signed kubeconfig", func(o *discovery.Options) { o.Server = forger.URL },
			discovery.ErrWrongSignature},
		{"a server that knows the token and signs its own CA", func(o *discovery.Options) { o.Server = impostor.URL },
			discovery.ErrWrongPin},
		{"no server", func(o *discovery.Options) { o.Server = "https://127.0.0.1:1" }, discovery.ErrUnreachable},
	} {
		options := discovery.Options{Server: config.Host, Token: token, CACertHashes: pins}
		test.change(&options)
		_, err := discovery.Discover(t.Context(), options)
		require.ErrorIs(t, err, test.want, test.reason)
		require.NotContains(t, err.Error(), secret, test.reason)
	}
	options := discovery.Options{Server: impostor.URL, Token: token, UnsafeSkipCAVerification: true}
	_, err = discovery.Discover(t.Context(), options)
	require.NoError(t, err, "without pins, a server that knows the token is trusted")
}

// TestPublished_UnusableContent checks published content that cannot be used for discovery.
func TestPublished_UnusableContent(t *testing.T) {
	admin := regtest.Client(t, plane.ForTest(t).Config())
	unpublish(t, admin)
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: "cluster-info"}}
	regtest.Create(t, admin, info)
	for _, kubeconfig := range []string{"", "x", `{"clusters": []}`,
		`{"clusters": [{"name": "", "cluster": {"server": "https://hub"}}]}`} {
		// A controller of Kubernetes also writes the ConfigMap.
		info.Data, info.ResourceVersion = map[string]string{"kubeconfig": kubeconfig}, ""
		require.NoError(t, admin.Update(t.Context(), info))
		_, err := discovery.Published(t.Context(), admin)
		require.ErrorIs(t, err, discovery.ErrNotAHub, kubeconfig)
	}
}

// TestDiscover_ExpiredToken checks that a token of kubeadm expires, which the controllers of Kubernetes enforce.
func TestDiscover_ExpiredToken(t *testing.T) {
	config := plane.ForTest(t).Config()
	admin := regtest.Client(t, config)
	unpublish(t, admin)
	require.NoError(t, discovery.Publish(t.Context(), admin, config.Host, config.CAData))
	pins, err := discovery.CACertHashes(config.CAData)
	require.NoError(t, err)
	options := discovery.Options{Server: config.Host, Token: "expire.0123456789abcdef", CACertHashes: pins}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-expire"},
		Type:       "bootstrap.kubernetes.io/token",
		StringData: map[string]string{
			"token-id": "expire", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
			"usage-bootstrap-signing": "true",
			"expiration":              time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		},
	}
	regtest.Create(t, admin, secret)
	mustertest.Holds(t, time.Minute, "discovery succeeds before the expiration", func() bool {
		_, err := discovery.Discover(t.Context(), options)
		return err == nil
	})
	secret.StringData = map[string]string{"expiration": time.Now().Add(-time.Second).UTC().Format(time.RFC3339)}
	require.NoError(t, admin.Update(t.Context(), secret))
	mustertest.Holds(t, time.Minute, "discovery fails after the expiration", func() bool {
		_, err := discovery.Discover(t.Context(), options)
		if err != nil {
			require.ErrorIs(t, err, discovery.ErrUnknownToken)
		}
		return err != nil
	})
}
