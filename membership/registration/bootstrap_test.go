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

func TestBootstrapSurvivesTheSecret(t *testing.T) {
	want := testBootstrap(t)
	data, err := want.Marshal()
	require.NoError(t, err)
	again, err := want.Marshal()
	require.NoError(t, err)
	require.Equal(t, data, again, "a Secret that is written anew must not change")
	got, err := ParseBootstrap(data)
	require.NoError(t, err)
	require.Equal(t, want.wire(), got.wire())
	require.Contains(t, string(data), "ca: |\n  -----BEGIN CERTIFICATE-----", "a person can read it")

	want.ExpirationTime = time.Time{}
	data, err = want.Marshal()
	require.NoError(t, err)
	got, err = ParseBootstrap(append(data, "fromTheFuture: 1\n"...))
	require.NoError(t, err, "a newer hub may say more")
	require.True(t, got.ExpirationTime.IsZero())

	config := got.RESTConfig()
	require.Equal(t, &rest.Config{Host: want.Server, BearerToken: want.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: want.CA}}, config)

	want.Token = ""
	_, err = want.Marshal()
	require.Equal(t, "token", fieldOf(err), "what cannot be read is not written")
}

// wire returns the fields as a list, which bypasses the redaction in printed text, including that of tests.
func (b *Bootstrap) wire() []any {
	return []any{b.Server, string(b.CA), b.Token, b.TokenName, b.Key, b.Namespace, b.ExpirationTime}
}

func TestParseBootstrapNamesTheField(t *testing.T) {
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
		{"what the hub wrote is read", string(data), ""},
		{"an empty file has nothing", "", "apiVersion"},
		{"a file that is not YAML", "hush: [", "join.yaml"},
		{"a list is not a mapping", "- hush", "join.yaml"},
		{"no Secret is that large", strings.Repeat(" ", maxBootstrapSize+1), "join.yaml"},
		{"a version that this agent does not know", line("apiVersion", "membership.muster.dev/v9"), "apiVersion"},
		{"a kubeconfig is something else", line("kind", "Config"), "kind"},
		{"http would send the token in the clear", line("server", "http://hub.example.com"), "server"},
		{"a server has a host", line("server", "https://:6443"), "server"},
		{"not with a user in it", line("server", "https://hush@hub.example.com"), "server"},
		{"a server is set", line("server", `""`), "server"},
		{"without a CA every server could be the hub", line("ca", `""`), "ca"},
		{"a CA is PEM", line("ca", "hush"), "ca"},
		{"a private key is no certificate, and in the wrong hands",
			line("ca", "|\n  "+strings.ReplaceAll(string(key), "\n", "\n  ")), "ca"},
		{"a certificate says that it is one", strings.ReplaceAll(string(data), " CERTIFICATE-", " X-"), "ca"},
		{"PEM may hold anything", line("ca", "|\n  -----BEGIN CERTIFICATE-----\n  AAAA\n  -----END CERTIFICATE-----"), "ca"},
		{"the namespace is where requests go", line("namespace", `""`), "namespace"},
		{"and part of a URL", line("namespace", "../hush"), "namespace"},
		{"a token has a name", line("tokenName", `""`), "tokenName"},
		{"a token is what it is all about", line("token", `""`), "token"},
		{"one with a line break would end the header", line("token", `"hush\nhush"`), "token"},
		{"a token is text", line("token", "[hush]"), "token"},
		{"a short key is easy to guess", line("key", "aHVzaA=="), "key"},
		{"a key is base64", line("key", "hush!"), "key"},
		{"a time is a time", line("expirationTime", "hush"), "expirationTime"},
	} {
		got, err := ParseBootstrap([]byte(test.data))
		require.Equal(t, test.field, fieldOf(err), test.reason)
		if err != nil {
			require.Nil(t, got, test.reason)
			require.NotContains(t, err.Error(), "hush", "an error that quotes the file gives it away")
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
		require.NoError(t, err, "what is read can be written")
		second, err := ParseBootstrap(again)
		require.NoError(t, err)
		require.Equal(t, bootstrap.wire(), second.wire())
		require.NotPanics(t, func() { bootstrap.RESTConfig() })
	})
}
