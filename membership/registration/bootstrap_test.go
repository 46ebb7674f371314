package registration

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func testBootstrap(t testing.TB) *Bootstrap {
	t.Helper()
	claim := newClaim(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true,
		NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, claim.Signer().Public(), claim.Signer())
	require.NoError(t, err)
	return &Bootstrap{
		Server: "https://hub.example.com:6443", CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Token: "hush.hush.hush", TokenName: "east", Key: []byte(strings.Repeat("\x01", keySize)),
		Namespace:      "muster-registration",
		ExpirationTime: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func publicOf(t *testing.T, private string) []byte {
	t.Helper()
	block, _ := pem.Decode([]byte(private))
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	require.NoError(t, err)
	public, err := x509.MarshalPKIXPublicKey(key.(interface{ Public() crypto.PublicKey }).Public())
	require.NoError(t, err)
	return public
}

func TestBootstrap_MarshalAndParse(t *testing.T) {
	want := testBootstrap(t)
	data, err := want.Marshal()
	require.NoError(t, err)
	again, err := want.Marshal()
	require.NoError(t, err)
	require.Equal(t, data, again, "Marshal returns the same data each time")
	got, err := ParseBootstrap(data)
	require.NoError(t, err)
	require.Equal(t, want.wire(), got.wire())
	require.Contains(t, string(data), "ca: |\n  -----BEGIN CERTIFICATE-----", "the CA is readable text")

	want.ExpirationTime = time.Time{}
	data, err = want.Marshal()
	require.NoError(t, err)
	got, err = ParseBootstrap(append(data, "unknownField: 1\n"...))
	require.NoError(t, err, "unknown fields of a newer hub are ignored")
	require.True(t, got.ExpirationTime.IsZero())

	config := got.RESTConfig()
	require.Equal(t, &rest.Config{Host: want.Server, BearerToken: want.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: want.CA}}, config)

	want.Token = ""
	_, err = want.Marshal()
	require.Equal(t, "token", fieldOf(err), "an invalid Bootstrap is not written")
}

// wire returns the fields as a list, which bypasses the redaction in printed text, including that of tests.
func (b *Bootstrap) wire() []any {
	return []any{b.Server, string(b.CA), b.Token, b.TokenName, b.Key, b.Namespace, b.ExpirationTime}
}

func TestParseBootstrap_InvalidFields(t *testing.T) {
	data, err := testBootstrap(t).Marshal()
	require.NoError(t, err)
	key, err := newClaim(t).Marshal()
	require.NoError(t, err)
	line := func(field, value string) string {
		var out []string
		for l := range strings.SplitSeq(string(data), "\n") {
			if strings.HasPrefix(l, field+":") {
				l = field + ": " + value
			} else if field == "ca" && strings.HasPrefix(l, "  ") {
				continue
			}
			out = append(out, l)
		}
		return strings.Join(out, "\n")
	}
	for _, test := range []struct {
		reason, data, field string
	}{
		{"a file that the hub has written", string(data), ""},
		{"an empty file", "", "apiVersion"},
		{"a file that is not YAML", "hush: [", "join.yaml"},
		{"a list instead of a mapping", "- hush", "join.yaml"},
		{"a file larger than a Secret", strings.Repeat(" ", maxBootstrapSize+1), "join.yaml"},
		{"an unknown API version", line("apiVersion", "membership.muster.dev/v9"), "apiVersion"},
		{"the kind of a kubeconfig", line("kind", "Config"), "kind"},
		{"a server with the http scheme", line("server", "http://hub.example.com"), "server"},
		{"a server without a host", line("server", "https://:6443"), "server"},
		{"a server with a user", line("server", "https://hush@hub.example.com"), "server"},
		{"an empty server", line("server", `""`), "server"},
		{"an empty CA", line("ca", `""`), "ca"},
		{"a CA that is not PEM", line("ca", "hush"), "ca"},
		{"a private key as the CA",
			line("ca", "|\n  "+strings.ReplaceAll(string(key), "\n", "\n  ")), "ca"},
		{"a CA with another type of PEM block", strings.ReplaceAll(string(data), " CERTIFICATE-", " X-"), "ca"},
		{"a CA with an invalid certificate",
			line("ca", "|\n  -----BEGIN CERTIFICATE-----\n  AAAA\n  -----END CERTIFICATE-----"), "ca"},
		{"an empty namespace", line("namespace", `""`), "namespace"},
		{"an invalid namespace", line("namespace", "../hush"), "namespace"},
		{"an empty token name", line("tokenName", `""`), "tokenName"},
		{"an empty token", line("token", `""`), "token"},
		{"a token with a line break", line("token", `"hush\nhush"`), "token"},
		{"a token that is a list", line("token", "[hush]"), "token"},
		{"a short key", line("key", "aHVzaA=="), "key"},
		{"a key that is not base64", line("key", "hush!"), "key"},
		{"an invalid expiration time", line("expirationTime", "hush"), "expirationTime"},
	} {
		got, err := ParseBootstrap([]byte(test.data))
		require.Equal(t, test.field, fieldOf(err), test.reason)
		if err != nil {
			require.Nil(t, got, test.reason)
			require.NotContains(t, err.Error(), "hush", "the error must not contain secret data of the file")
		}
	}
}

func FuzzParseBootstrap(f *testing.F) {
	data, err := testBootstrap(f).Marshal()
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte("a: &a [x]\nb: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		bootstrap, err := ParseBootstrap(data)
		if err != nil {
			if strings.HasPrefix(fieldOf(err), "not an InvalidError") {
				t.Error(err)
			}
			return
		}
		again, err := bootstrap.Marshal()
		require.NoError(t, err, "a parsed Bootstrap can be written")
		second, err := ParseBootstrap(again)
		require.NoError(t, err)
		require.Equal(t, bootstrap.wire(), second.wire())
		require.NotPanics(t, func() { bootstrap.RESTConfig() })
	})
}
