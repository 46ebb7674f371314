package kubeconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const secret = "s3cr3t-do-not-show"

// object is a part of a kubeconfig.
type object = map[string]any

// with returns the base with additional or replaced keys; nil removes a key.
func with(base, more object) object {
	all := maps.Clone(base)
	for key, value := range more {
		if value == nil {
			delete(all, key)
		} else {
			all[key] = value
		}
	}
	return all
}

func kubeconfig(t testing.TB, cluster, user object) []byte {
	t.Helper()
	data, err := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "here",
		"contexts": []object{{"name": "here", "context": object{"cluster": "c", "user": "u"}},
			{"name": "there", "context": object{"cluster": "c", "user": "other"}}},
		"clusters": []object{{"name": "c",
			"cluster": with(object{"server": "https://member.example.com:6443/prefix"}, cluster)}},
		"users": []object{
			{"name": "u", "user": with(object{"token": secret}, user)},
			{"name": "other", "user": object{"exec": object{"apiVersion": "client.authentication.k8s.io/v1", "command": "rm"}}},
		},
	})
	require.NoError(t, err)
	return data
}

func TestParse(t *testing.T) {
	ca, pair := certificates(t)
	certificate, key := pair[0], pair[1]
	whole := func(cluster, user object) map[string][]byte {
		return map[string][]byte{DefaultKey: kubeconfig(t, cluster, user)}
	}
	keys := func(more map[string]string) map[string][]byte {
		data := map[string][]byte{ServerKey: []byte("https://member.example.com\n"), TokenKey: []byte(secret + "\n")}
		for key, value := range more {
			if data[key] = []byte(value); value == "-" {
				delete(data, key)
			}
		}
		return data
	}
	raw := func(text string) map[string][]byte { return map[string][]byte{DefaultKey: []byte(text)} }
	exec := object{"exec": object{"apiVersion": "client.authentication.k8s.io/v1", "command": secret}}
	for _, tc := range []struct {
		reason  string
		data    map[string][]byte
		options Options
		field   string // of the error; "": none
	}{
		{"kubeconfig with a token, and an invalid context that is not the current one",
			whole(nil, nil), Options{}, ""},
		{"kubeconfig takes precedence over other keys", withKey(whole(nil, nil), ServerKey, "nonsense"), Options{}, ""},
		{"kubeconfig with a client certificate",
			whole(object{"certificate-authority-data": ca},
				object{"token": nil, "client-certificate-data": certificate, "client-key-data": key}), Options{}, ""},
		{"kubeconfig with a proxy and proxy headers",
			withKey(whole(object{"proxy-url": "http://user:" + secret + "@proxy:3128"}, nil),
				ProxyHeadersKey, `{"X-Target": "east"}`), Options{}, ""},

		{"no data", nil, Options{}, "value"},
		{"kubeconfig that is not YAML", raw(secret + ": ["), Options{}, "value"},
		{"object of another kind", raw("apiVersion: v1\nkind: Pod\nmetadata: {name: " + secret + "}"), Options{}, "value"},
		{"empty kubeconfig next to other keys", withKey(keys(nil), DefaultKey, ""), Options{},
			"value.current-context"},
		{"no current context", raw("apiVersion: v1\nkind: Config\n"), Options{}, "value.current-context"},
		{"missing context", raw("apiVersion: v1\nkind: Config\ncurrent-context: x\n"), Options{},
			"value.contexts"},
		{"missing cluster", raw("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, " +
			"context: {cluster: c, user: u}}]\n"), Options{}, "value.clusters"},
		{"missing user", raw("apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: " +
			"{cluster: c, user: u}}]\nclusters: [{name: c, cluster: {server: 'https://x'}}]\n"), Options{}, "value.users"},
		{"kubeconfig larger than a Secret", raw(strings.Repeat("#", maxSize+1)), Options{}, "value"},

		{"exec plugin", whole(nil, exec), Options{}, "value.user.exec"},
		{"exec plugin together with a token", whole(nil, with(exec, object{"token": secret})), Options{}, "value.user.exec"},
		{"exec plugin with AllowExec", whole(nil, exec), Options{AllowExec: true}, ""},
		{"auth provider plugin", whole(nil, object{"auth-provider": object{"name": "gcp"}}), Options{},
			"value.user.auth-provider"},
		{"token file",
			whole(nil, object{"token": nil, "tokenFile": "/var/run/secrets/" + secret}), Options{}, "value.user.tokenFile"},
		{"client certificate file", whole(nil, object{"client-certificate": "/" + secret, "client-key": "/k"}), Options{},
			"value.user.client-certificate"},
		{"client key file", whole(nil, object{"client-key": "/" + secret}), Options{}, "value.user.client-key"},
		{"certificate authority file", whole(object{"certificate-authority": "/" + secret}, nil), Options{},
			"value.cluster.certificate-authority"},
		{"files with AllowFiles",
			whole(object{"certificate-authority": "/ca"}, object{"token": nil, "tokenFile": "/token"}),
			Options{AllowFiles: true}, ""},
		{"exec plugin with AllowFiles only", whole(object{"certificate-authority": "/ca"}, exec), Options{AllowFiles: true},
			"value.user.exec"},
		{"insecure connection", whole(object{"insecure-skip-tls-verify": true}, nil), Options{},
			"value.cluster.insecure-skip-tls-verify"},
		{"insecure connection with AllowInsecure", whole(object{"insecure-skip-tls-verify": true}, nil),
			Options{AllowInsecure: true}, ""},
		{"insecure connection with a certificate authority",
			whole(object{"insecure-skip-tls-verify": true, "certificate-authority-data": ca}, nil),
			Options{AllowInsecure: true}, "value.cluster.insecure-skip-tls-verify"},
		{"server with the http scheme", whole(object{"server": "http://member"}, nil), Options{}, "value.cluster.server"},
		{"server with the http scheme and AllowHTTP", whole(object{"server": "http://member"}, nil), Options{AllowHTTP: true},
			""},
		{"impersonation of a user", whole(nil, object{"as": secret}), Options{}, "value.user.as"},
		{"impersonation of a group", whole(nil, object{"as-groups": []string{secret}}), Options{}, "value.user.as"},
		{"impersonation with extra values", whole(nil, object{"as-user-extra": object{"x": []string{secret}}}), Options{},
			"value.user.as"},
		{"impersonation with AllowImpersonation", whole(nil, object{"as": "x"}), Options{AllowImpersonation: true}, ""},
		{"impersonation of a group without a user", whole(nil, object{"as-groups": []string{"x"}}),
			Options{AllowImpersonation: true},
			"value.user.as"},
		{"password", whole(nil, object{"token": nil, "username": "x", "password": secret}), Options{},
			"value.user.username"},
		{"password with AllowPasswords", whole(nil, object{"token": nil, "username": "x", "password": secret}),
			Options{AllowPasswords: true}, ""},

		{"no credential", whole(nil, object{"token": nil}), Options{}, "value.user"},
		{"a certificate without its key", whole(nil, object{"client-certificate-data": certificate}), Options{},
			"value.user.client-key-data"},
		{"a key without its certificate", whole(nil, object{"client-key-data": key}), Options{},
			"value.user.client-certificate-data"},
		{"invalid client certificate", whole(nil, object{"client-certificate-data": []byte(secret), "client-key-data": key}),
			Options{}, "value.user.client-certificate-data"},
		{"invalid certificate authority", whole(object{"certificate-authority-data": []byte(secret)}, nil), Options{},
			"value.cluster.certificate-authority-data"},
		{"token with a line break", whole(nil, object{"token": secret + "\r\nX: y"}), Options{},
			"value.user.token"},
		{"no address", whole(object{"server": nil}, nil), Options{}, "value.cluster.server"},
		{"an address without a scheme", whole(object{"server": "member:6443"}, nil), Options{}, "value.cluster.server"},
		{"a password in an address", whole(object{"server": "https://x:" + secret + "@member"}, nil), Options{},
			"value.cluster.server"},
		{"invalid server address", whole(object{"server": "https://%" + secret}, nil), Options{}, "value.cluster.server"},
		{"unsupported proxy scheme", whole(object{"proxy-url": "ftp://" + secret}, nil), Options{},
			"value.cluster.proxy-url"},

		{"keys: server and token", keys(nil), Options{}, ""},
		{"keys: all of them",
			keys(map[string]string{CAKey: string(ca), TLSServerNameKey: "member", ProxyURLKey: "https://proxy\n",
				ProxyHeadersKey: "X-Target: east\n"}), Options{}, ""},
		{"keys: no server", keys(map[string]string{ServerKey: "-"}), Options{}, "value"},
		{"keys: server with the http scheme", keys(map[string]string{ServerKey: "http://" + secret}), Options{}, "server"},
		{"keys: AllowHTTP does not apply", keys(map[string]string{ServerKey: "http://x"}),
			Options{AllowHTTP: true}, "server"},
		{"keys: no token", keys(map[string]string{TokenKey: "-"}), Options{}, "token"},
		{"keys: token with a space", keys(map[string]string{TokenKey: secret + " " + secret}), Options{}, "token"},
		{"keys: invalid certificate authority", keys(map[string]string{CAKey: secret}), Options{}, "ca.crt"},
		{"keys: invalid proxy", keys(map[string]string{ProxyURLKey: secret}), Options{}, "proxy-url"},
		{"keys: socks5 proxy", keys(map[string]string{ProxyURLKey: "socks5://proxy:1080"}), Options{}, ""},
		{"keys: socks5 proxy with headers",
			keys(map[string]string{ProxyURLKey: "socks5://proxy:1080", ProxyHeadersKey: "X: " + secret}), Options{},
			"proxy-headers"},
		{"keys: headers without a proxy", keys(map[string]string{ProxyHeadersKey: "X: " + secret}), Options{},
			"proxy-headers"},
		{"keys: invalid headers", keys(map[string]string{ProxyURLKey: "https://proxy", ProxyHeadersKey: secret}), Options{},
			"proxy-headers"},
		{"keys: header name with a colon",
			keys(map[string]string{ProxyURLKey: "https://proxy", ProxyHeadersKey: `{"X: y": "z"}`}), Options{}, "proxy-headers"},
		{"keys: header value with a line break", keys(map[string]string{ProxyURLKey: "https://proxy",
			ProxyHeadersKey: `{"X": "y\r\nZ: ` + secret + `"}`}), Options{}, "proxy-headers"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			access, err := Parse(tc.data, "", tc.options)
			if tc.field == "" {
				require.NoError(t, err)
				require.Contains(t, access.Server(), "://member")
				requireRedacted(t, access)
				return
			}
			var wrong *membership.InvalidError
			require.ErrorAs(t, err, &wrong)
			require.Equal(t, tc.field, wrong.Field, wrong.Problem)
			require.NotContains(t, err.Error(), secret)
		})
	}
}

// requireRedacted checks that no printed form of a value contains the secret.
func requireRedacted(t *testing.T, access *Access) {
	t.Helper()
	asJSON, err := json.Marshal(access)
	require.NoError(t, err)
	for _, shown := range []string{fmt.Sprintf("%v %+v %#v %s %q %x", access, access, access, access, access, access),
		string(asJSON)} {
		require.NotContains(t, shown, secret)
	}
}

func withKey(data map[string][]byte, key, value string) map[string][]byte {
	data[key] = []byte(value)
	return data
}

func TestAccess_Revision(t *testing.T) {
	revision := func(data map[string][]byte) string {
		access, err := Parse(data, "", Options{})
		require.NoError(t, err)
		return access.Revision()
	}
	base := func(more ...string) map[string][]byte {
		data := map[string][]byte{ServerKey: []byte("https://x"), TokenKey: []byte("t"), ProxyURLKey: []byte("https://proxy")}
		for i := 0; i < len(more); i += 2 {
			data[more[i]] = []byte(more[i+1])
		}
		return data
	}
	same := revision(base())
	require.Equal(t, same, revision(base("unknown", "x")), "an unknown key does not change the revision")
	seen := map[string]string{same: "nothing"}
	for _, other := range [][2]string{{ServerKey, "https://y"}, {TokenKey, "u"}, {TLSServerNameKey, "y"},
		{ProxyURLKey, "https://other"}, {ProxyHeadersKey, "X: z"}} {
		got := revision(base(other[0], other[1]))
		require.NotContains(t, seen, got, "%s must change the revision", other[0])
		seen[got] = other[0]
	}
}

// FuzzParse checks that no input causes a panic, and that no accepted input makes the hub run a program or read a
// file.
func FuzzParse(f *testing.F) {
	for _, user := range []object{nil, {"tokenFile": "/x"}, {"exec": object{"command": "x"}}, {"client-key": "/x"},
		{"as": "x"}, {"username": "x"}} {
		f.Add(kubeconfig(f, nil, user), []byte("https://member"), []byte("token"), []byte("http://proxy"), []byte("a: b"),
			true)
	}
	f.Add([]byte("{"), []byte("https://member/path"), []byte("token"), []byte("socks5://proxy"), []byte(""), false)
	f.Fuzz(func(t *testing.T, whole, server, token, proxy, headers []byte, kubeconfig bool) {
		data := map[string][]byte{ServerKey: server, TokenKey: token, ProxyURLKey: proxy, ProxyHeadersKey: headers}
		if kubeconfig {
			data[DefaultKey] = whole
		}
		access, err := Parse(data, "", Options{})
		if err != nil {
			var wrong *membership.InvalidError
			require.ErrorAs(t, err, &wrong)
			return
		}
		c := access.config
		require.Empty(t, c.CAFile+c.CertFile+c.KeyFile+c.BearerTokenFile+c.Username+c.Password+c.Impersonate.UserName)
		require.True(t, c.ExecProvider == nil && c.AuthProvider == nil && !c.Insecure)
		require.True(t, strings.HasPrefix(strings.ToLower(c.Host), "https://"))
		live, err := NewLive(access)
		require.NoError(t, err, "an accepted Access can be used")
		live.Close()
	})
}

// TestAccess_Endpoint checks that the public part of the access to a member contains no secret.
func TestAccess_Endpoint(t *testing.T) {
	access, err := Parse(map[string][]byte{
		ServerKey: []byte("https://member:6443/prefix\n"), TokenKey: []byte("s3cr3t"),
		TLSServerNameKey: []byte("member.example.com"),
		ProxyURLKey:      []byte("http://me:s3cr3t@proxy:3128"), ProxyHeadersKey: []byte("{Proxy-Authorization: s3cr3t}"),
	}, "", Options{})
	require.NoError(t, err)
	require.Equal(t, v1alpha1.Endpoint{
		Server: "https://member:6443/prefix", TLSServerName: "member.example.com", ProxyURL: "http://proxy:3128",
	}, access.Endpoint())
}
