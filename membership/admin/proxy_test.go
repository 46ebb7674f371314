package admin

import (
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
)

// proxy is a proxy that connects to a server for any host name.
type proxy struct {
	url  *url.URL
	last atomic.Pointer[http.Request]
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	at, err := url.Parse(server)
	require.NoError(t, err)
	p := &proxy{}
	p.url, err = url.Parse(testkit.ConnectProxy(t, func(r *http.Request) string {
		p.last.Store(r)
		return at.Host
	}))
	require.NoError(t, err)
	return p
}

// TestJoin_Proxy checks a member that is reachable only through a proxy.
func TestJoin_Proxy(t *testing.T) {
	f := newFleet(t, plane.ForTest(t))
	ctx := t.Context()
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "behind"}})
	p := newProxy(t, f.config.Host)
	behind := rest.CopyConfig(f.config)
	behind.Host, behind.ServerName, behind.Proxy = "https://east.invalid:6443", "127.0.0.1", http.ProxyURL(p.url)

	_, err := Join(ctx, f.config, behind, JoinOptions{
		Name: "east", MemberNamespace: "behind", Timeout: -1, ProxyHeaders: map[string]string{"X-Target": "east"},
	})
	require.NoError(t, err)
	require.Empty(t, p.last.Load().Header.Get("X-Target"), "ProxyHeaders apply only to connections of the hub")
	_, err = Unjoin(ctx, f.config, "east", UnjoinOptions{MemberNamespace: "behind"})
	require.NoError(t, err, "the kubeconfig of the hub uses the proxy")
	require.Equal(t, "east.invalid:6443", p.last.Load().Host)
	require.Equal(t, "east", p.last.Load().Header.Get("X-Target"))
	require.False(t, f.get(&rbacv1.ClusterRoleBinding{}, "", accessName))
}

func TestEndpoint_Proxy(t *testing.T) {
	named := func(proxy string) func(*http.Request) (*url.URL, error) {
		return func(r *http.Request) (*url.URL, error) {
			if r.URL.Host != "east" {
				return nil, nil
			}
			return url.Parse(proxy)
		}
	}
	header := map[string]string{"X-Target": "east"}
	for _, test := range []struct {
		reason  string
		config  rest.Config
		options JoinOptions
		want    string
		field   string // of an error
	}{
		{reason: "no proxy", config: rest.Config{Host: "east"}},
		{reason: "the hub uses the proxy of the config",
			config: rest.Config{Host: "east", Proxy: named("http://x:y@proxy:3128")}, want: "http://x:y@proxy:3128"},
		{reason: "the config has no proxy for this server",
			config: rest.Config{Host: "https://west", Proxy: named("http://proxy")}},
		{reason: "ProxyURL overrides the proxy of the config",
			config:  rest.Config{Host: "east", Proxy: named("http://proxy")},
			options: JoinOptions{ProxyURL: "socks5://other"}, want: "socks5://other"},
		{reason: "another server does not use the proxy of the config",
			config:  rest.Config{Host: "east", Proxy: named("http://proxy")},
			options: JoinOptions{Server: "https://east:6443"}},
		{reason: "another server with a ProxyURL", config: rest.Config{Host: "east"},
			options: JoinOptions{Server: "https://east:6443", ProxyURL: "http://other"}, want: "http://other"},
		{reason: "an unsupported scheme of ProxyURL", config: rest.Config{Host: "east"},
			options: JoinOptions{ProxyURL: "ftp://secret-words@other"}, field: "ProxyURL"},
		{reason: "ProxyHeaders without a proxy", config: rest.Config{Host: "east"},
			options: JoinOptions{ProxyHeaders: header}, field: "ProxyHeaders"},
		{reason: "an invalid header name", config: rest.Config{Host: "east"},
			options: JoinOptions{ProxyURL: "http://proxy", ProxyHeaders: map[string]string{"a b": "secret-words"}},
			field:   "ProxyHeaders"},
		{reason: "a server with the http scheme", config: rest.Config{Host: "http://secret-words"}, field: "Server"},
		{reason: "an invalid CA bundle", config: rest.Config{Host: "east"},
			options: JoinOptions{CA: []byte("secret-words")}, field: "CA"},
	} {
		e, err := endpointOf(&test.config, test.options)
		require.NoError(t, err, test.reason)
		err = e.valid()
		if test.field == "" {
			require.NoError(t, err, test.reason)
			require.Equal(t, test.want, e.proxy, test.reason)
			continue
		}
		var invalid *membership.InvalidError
		require.ErrorAs(t, err, &invalid, test.reason)
		require.Equal(t, test.field, invalid.Field, test.reason)
		require.NotContains(t, err.Error(), "secret-words", test.reason)
	}
}
