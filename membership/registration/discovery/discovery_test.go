package discovery

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/muster-sdk/muster/membership"
)

const (
	tokenID     = "abc123"
	tokenSecret = "0123456789abcdef"
	token       = tokenID + "." + tokenSecret
)

// authority is a CA that signs for 127.0.0.1.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return &authority{certificate, key}
}

func (a *authority) pin() string { return CACertHash(a.certificate) }

func (a *authority) serving(t testing.TB) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, a.key.Public(), a.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: a.key}
}

// serve runs a TLS server with a certificate of an authority.
func (a *authority) serve(t testing.TB, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{a.serving(t)}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// kubeconfigOf returns the kubeconfig of a hub whose CA contains all of these authorities.
func kubeconfigOf(t testing.TB, authorities ...*authority) string {
	t.Helper()
	var certificates []*x509.Certificate
	for _, a := range authorities {
		certificates = append(certificates, a.certificate)
	}
	data, err := clientcmd.Write(clientcmdapi.Config{Clusters: map[string]*clientcmdapi.Cluster{
		"": {Server: "https://10.0.0.1:6443", CertificateAuthorityData: encode(certificates)},
	}})
	require.NoError(t, err)
	return string(data)
}

// clusterInfoOf returns a cluster-info that is signed with a token.
func clusterInfoOf(t testing.TB, kubeconfig, id, secret string) []byte {
	t.Helper()
	signature, err := jws.ComputeDetachedSignature(kubeconfig, id, secret)
	require.NoError(t, err)
	body, err := json.Marshal(map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "data": map[string]string{
		"kubeconfig": kubeconfig, "jws-kubeconfig-" + id: signature,
	}})
	require.NoError(t, err)
	return body
}

func respond(bodies ...[]byte) http.HandlerFunc {
	var requests atomic.Int64
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(bodies[min(int(requests.Add(1)), len(bodies))-1])
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://127.0.0.1:1/elsewhere")
		w.WriteHeader(code)
	}
}

func TestDiscover(t *testing.T) {
	hub := newAuthority(t, "hub")
	info := clusterInfoOf(t, kubeconfigOf(t, hub), tokenID, tokenSecret)
	var requests atomic.Int64
	server := hub.serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		assert.Equal(t, "/base/api/v1/namespaces/kube-public/configmaps/cluster-info", r.URL.Path)
		assert.Empty(t, r.Header.Get("Authorization"), "the token must not be sent")
		assert.True(t, r.Close, "the connection is closed after the request")
		_, _ = w.Write(info)
	})
	got, err := Discover(t.Context(),
		Options{Server: server.URL + "/base", Token: token, CACertHashes: []string{strings.ToUpper(hub.pin())}})
	require.NoError(t, err)
	require.EqualValues(t, 2, requests.Load())
	require.Equal(t, server.URL+"/base", got.Server, "the address of the options")
	require.Equal(t, string(encode([]*x509.Certificate{hub.certificate})), string(got.CA))
	require.Equal(t, "bootstrap-token-abc123", got.TokenName)
	require.Equal(t, "muster-registration", got.Namespace)
	require.Equal(t, token, got.Token)
	require.Len(t, got.Key, 32)
	require.True(t, got.ExpirationTime.IsZero())
	_, err = got.Marshal()
	require.NoError(t, err, "an agent can use the Bootstrap")
	got, err = Discover(t.Context(),
		Options{Server: server.URL + "/base", Token: token, UnsafeSkipCAVerification: true, RegistrationNamespace: "fleet"})
	require.NoError(t, err)
	require.Equal(t, "fleet", got.Namespace)
	got, err = Discover(t.Context(), Options{
		Server: server.URL + "/base", Token: token, CACertHashes: []string{hub.pin()}, PublishedServer: true,
	})
	require.NoError(t, err)
	require.Equal(t, "https://10.0.0.1:6443", got.Server, "the address in cluster-info")
}

func TestDiscover_TrustsOnlyThePinnedCA(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	hub, impostor := newAuthority(t, "hub"), newAuthority(t, "impostor")
	signed := func(authorities ...*authority) []byte {
		return clusterInfoOf(t, kubeconfigOf(t, authorities...), tokenID, tokenSecret)
	}
	changed := func(old, replacement string) []byte {
		return []byte(strings.Replace(string(signed(hub)), old, replacement, 1))
	}
	huge := func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}
	for _, test := range []struct {
		reason string
		server *authority // of the serving certificate
		handle http.HandlerFunc
		want   error
		text   string // of the error
	}{
		{"the hub", hub, respond(signed(hub)), nil, ""},
		{"another server that does not know the token", impostor,
			respond(clusterInfoOf(t, kubeconfigOf(t, impostor), tokenID,
				"aaaaaaaaaaaaaaaa")), ErrWrongSignature, `token "abc123"`},
		{"another server that changes the signed kubeconfig", impostor, respond(changed("10.0.0.1", "10.0.0.2")),
			ErrWrongSignature, ""},
		{"another server that knows the token and publishes its CA", impostor, respond(signed(impostor)), ErrWrongPin,
			impostor.pin()},
		{"a relay with its own certificate", impostor, respond(signed(hub)), ErrUntrusted, "unknown authority"},
		{"a relay that publishes the hub's CA together with its own", impostor, respond(signed(hub, impostor)), ErrUntrusted,
			"unknown authority"},
		{"a hub with several CAs", hub, respond(signed(impostor, hub)), nil, ""},
		{"another response over the verified connection", hub, respond(signed(hub), signed(hub, impostor)), ErrUntrusted,
			"differs from the one over the connection that was not verified"},
		{"a cluster-info without a signature of the token", hub,
			respond(clusterInfoOf(t, kubeconfigOf(t, hub), "zzzzzz", tokenSecret)), ErrUnknownToken, `token "abc123"`},
		{"a hub without cluster-info", hub, status(http.StatusNotFound), ErrNotAHub, "publish"},
		{"a hub that forbids reads of cluster-info", hub, status(http.StatusForbidden), ErrNotAHub, "publish"},
		{"a hub without anonymous access", hub, status(http.StatusUnauthorized), ErrNotAHub, "publish"},
		{"a hub that is not ready", hub, status(http.StatusServiceUnavailable), ErrUnreachable, "503"},
		{"an overloaded hub", hub, status(http.StatusTooManyRequests), ErrUnreachable, "429"},
		{"a redirect", hub, status(http.StatusFound), ErrNotAHub, "302"},
		{"a web site", hub, respond([]byte("<html>hush</html>")), ErrNotAHub, "no Kubernetes API server"},
		{"another kind", hub, respond([]byte(`{"kind":"Secret","data":{"kubeconfig":"hush"}}`)), ErrNotAHub,
			"no Kubernetes API server"},
		{"no kubeconfig", hub, respond([]byte(`{"kind":"ConfigMap"}`)), ErrNotAHub, "no kubeconfig"},
		{"an invalid kubeconfig", hub, respond(clusterInfoOf(t, "hush", tokenID, tokenSecret)), ErrNotAHub,
			"does not contain exactly one cluster"},
		{"a kubeconfig without a CA", hub, respond(signed()), ErrNotAHub, "has no CA"},
		{"a response without an end", hub, huge, ErrNotAHub, "exceeds the size limit of a ConfigMap"},
		{"a server that closes the connection", hub, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			ErrUnreachable, "EOF"},
	} {
		server := test.server.serve(t, test.handle)
		got, err := Discover(t.Context(), Options{Server: server.URL, Token: token, CACertHashes: []string{hub.pin()}})
		server.Close()
		if test.want == nil {
			require.NoError(t, err, test.reason)
			require.Equal(t, string(encode([]*x509.Certificate{hub.certificate})), string(got.CA), test.reason)
			continue
		}
		require.ErrorIs(t, err, test.want, test.reason)
		require.ErrorContains(t, err, test.text, test.reason)
		require.ErrorContains(t, err, server.URL, test.reason)
		require.NotContains(t, err.Error(), tokenSecret, test.reason)
		require.NotContains(t, err.Error(), "hush", test.reason)
	}
}

func TestDiscover_TimeoutAndCancel(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	hub := newAuthority(t, "hub")
	server := hub.serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	defer server.Close()
	options := Options{Server: server.URL, Token: token, CACertHashes: []string{hub.pin()},
		Timeout: 100 * time.Millisecond}
	_, err := Discover(t.Context(), options)
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "no response within 100ms")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	options.Timeout = 0
	_, err = Discover(ctx, options)
	require.ErrorIs(t, err, context.Canceled)

	server.Close()
	_, err = Discover(t.Context(), options)
	require.ErrorIs(t, err, ErrUnreachable, "no server listens")
	require.ErrorContains(t, err, "connection refused")
}

func TestDiscover_UsesTheGivenTransport(t *testing.T) {
	hub := newAuthority(t, "hub")
	server := hub.serve(t, respond(clusterInfoOf(t, kubeconfigOf(t, hub), tokenID, tokenSecret)))
	var dialed, proxied atomic.Int64
	_, err := Discover(t.Context(), Options{
		Server: "https://127.0.0.1:1", Token: token, CACertHashes: []string{hub.pin()},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			require.Equal(t, "127.0.0.1:1", address)
			dialed.Add(1)
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		},
		Proxy: func(*http.Request) (*url.URL, error) {
			proxied.Add(1)
			return nil, nil
		},
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, dialed.Load())
	require.EqualValues(t, 2, proxied.Load())
}

func TestDiscover_InvalidOptions(t *testing.T) {
	pin := "sha256:" + strings.Repeat("0a", 32)
	good := func(change func(*Options)) Options {
		o := Options{Server: "https://127.0.0.1:1", Token: token, CACertHashes: []string{pin}}
		change(&o)
		return o
	}
	for _, test := range []struct {
		reason  string
		options Options
		field   string
	}{
		{"a server that is not a URL", good(func(o *Options) { o.Server = "hub:6443" }), "Options.Server"},
		{"a server with the http scheme", good(func(o *Options) { o.Server = "http://hub" }), "Options.Server"},
		{"a server with a password", good(func(o *Options) { o.Server = "https://me:hush@hub" }), "Options.Server"},
		{"an empty token", good(func(o *Options) { o.Token = "" }), "Options.Token"},
		{"an invalid token", good(func(o *Options) { o.Token = "abc123.hush" }), "Options.Token"},
		{"a pin without an algorithm", good(func(o *Options) { o.CACertHashes = []string{pin, strings.Repeat("0a", 32)} }),
			"Options.CACertHashes[1]"},
		{"a pin with another algorithm",
			good(func(o *Options) { o.CACertHashes = []string{"md5:" + strings.Repeat("0a", 16)} }),
			"Options.CACertHashes[0]"},
		{"a truncated pin", good(func(o *Options) { o.CACertHashes = []string{pin[:60]} }), "Options.CACertHashes[0]"},
		{"an empty pin", good(func(o *Options) { o.CACertHashes = []string{""} }), "Options.CACertHashes[0]"},
		{"pins together with UnsafeSkipCAVerification", good(func(o *Options) { o.UnsafeSkipCAVerification = true }),
			"Options.UnsafeSkipCAVerification"},
		{"a negative timeout", good(func(o *Options) { o.Timeout = -1 }), "Options.Timeout"},
		{"an invalid namespace", good(func(o *Options) { o.RegistrationNamespace = "../x" }),
			"Options.RegistrationNamespace"},
	} {
		_, err := Discover(t.Context(), test.options)
		invalid := new(membership.InvalidError)
		require.ErrorAs(t, err, &invalid, test.reason)
		require.Equal(t, test.field, invalid.Field, test.reason)
		require.NotContains(t, err.Error(), "hush", test.reason)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		require.NotContains(t, fmt.Sprintf(verb, good(func(*Options) {})), tokenSecret)
	}
	_, err := Discover(t.Context(), good(func(o *Options) { o.CACertHashes = nil }))
	require.ErrorIs(t, err, ErrNoPins, "pins or UnsafeSkipCAVerification are required")
}

func TestCACertHashes(t *testing.T) {
	one, two := newAuthority(t, "one"), newAuthority(t, "two")
	hashes, err := CACertHashes(encode([]*x509.Certificate{one.certificate, two.certificate, one.certificate}))
	require.NoError(t, err)
	require.Equal(t, []string{one.pin(), two.pin()}, hashes)
	_, err = CACertHashes([]byte("hello"))
	require.ErrorContains(t, err, "read the CA's certificates")
}

// FuzzClusterInfo checks that responses of an unknown server cause no panic and are not trusted.
func FuzzClusterInfo(f *testing.F) {
	hub := newAuthority(f, "hub")
	const another = "fedcba9876543210"
	f.Add(clusterInfoOf(f, kubeconfigOf(f, hub), tokenID, another))
	f.Add(clusterInfoOf(f, "clusters: [{name: a, cluster: null}]", tokenID, another))
	f.Add([]byte(`{"kind":"ConfigMap","data":{"kubeconfig":"clusters: [","jws-kubeconfig-abc123":".."}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		info, err := parse(body)
		if err != nil {
			require.ErrorIs(t, err, ErrNotAHub)
			return
		}
		require.Error(t, info.verify(tokenID, tokenSecret), "the signature is not valid for the token")
		certificates, err := info.certificates()
		if err != nil {
			require.ErrorIs(t, err, ErrNotAHub)
			return
		}
		require.NotEmpty(t, certificates)
	})
}
