package agent

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/registration"
)

// TestLink_ReplacedCredential replaces the credential of a link and checks the user of the next request on the server.
func TestLink_ReplacedCredential(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	seen := func(r *http.Request) string {
		subject := r.Header.Get("Authorization")
		if certificates := r.TLS.PeerCertificates; len(certificates) > 0 {
			subject += "#" + certificates[0].SerialNumber.String()
		}
		return subject
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(w, seen(r))
		if r.URL.Path == "/watch" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	claim, err := registration.NewClaimKey()
	require.NoError(t, err)
	cert := func(serial int64) registration.Material {
		return registration.Material{Certificate: certificate(t, claim, serial)}
	}
	for _, tc := range []struct {
		reason    string
		configure func(*rest.Config)
		materials []registration.Material
		want      []string
	}{
		{"a replaced token is used by the next request", nil, []registration.Material{{Token: "one"}, {Token: "two"}},
			[]string{"Bearer one", "Bearer two"}},
		{"a connection with a replaced certificate is not used any more", nil, []registration.Material{cert(1), cert(2)},
			[]string{"#1", "#2"}},
		{"an issued token replaces the configured one", func(c *rest.Config) { c.BearerToken = "own" },
			[]registration.Material{{Token: "one"}}, []string{"Bearer one"}},
		{"an issued certificate replaces the configured token",
			func(c *rest.Config) { c.BearerToken = "own" }, []registration.Material{cert(1)},
			[]string{"#1"}},
		{"without an issued credential, the configured token is used",
			func(c *rest.Config) { c.BearerToken = "own" }, []registration.Material{{}},
			[]string{"Bearer own"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			wrapped := 0
			configure := func(c *rest.Config) {
				c.Wrap(func(next http.RoundTripper) http.RoundTripper {
					return roundTrip(func(r *http.Request) (*http.Response, error) {
						wrapped++
						require.NotContains(t, []string{"Bearer one", "Bearer two"}, r.Header.Get("Authorization"),
							"a wrapper must not receive the issued token")
						return next.RoundTrip(r)
					})
				})
				if tc.configure != nil {
					tc.configure(c)
				}
			}
			keeper, err := newKeeper(tc.materials[0], claim)
			require.NoError(t, err)
			l, err := newLink(hubConfig(server.URL, ca, configure), keeper)
			require.NoError(t, err)
			defer l.reset()
			get := func(path string) *http.Response {
				request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+path, nil)
				require.NoError(t, err)
				response, err := l.client.Do(request)
				require.NoError(t, err)
				return response
			}
			watch := get("/watch") // keeps its connection in use
			defer watch.Body.Close()
			for i, material := range tc.materials {
				if i > 0 {
					require.NoError(t, keeper.keep(material, claim))
					if len(material.Certificate) > 0 {
						l.reset()
					}
				}
				for range 2 {
					response := get("/")
					body, err := io.ReadAll(response.Body)
					require.NoError(t, err)
					require.NoError(t, response.Body.Close())
					require.Equal(t, tc.want[i], string(body))
					require.Equal(t, 2, response.ProtoMajor)
				}
			}
			require.Equal(t, 1+2*len(tc.materials), wrapped)
		})
	}
}

// certificate returns a certificate for the key of a claim.
func certificate(t *testing.T, claim *registration.ClaimKey, serial int64) []byte {
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "agent"},
		NotAfter: time.Now().Add(time.Hour)}
	key := claim.Signer().(*ecdsa.PrivateKey)
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (r roundTrip) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
