package registration

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

func TestMaterial_Config(t *testing.T) {
	claim := newClaim(t)
	key, err := claim.Marshal()
	require.NoError(t, err)
	hub := testBootstrap(t).RESTConfig()
	hub.UserAgent, hub.Username, hub.Password, hub.CertFile, hub.KeyFile = "agent", "admin", "hush", "/admin.crt",
		"/admin.key"

	anonymous := rest.AnonymousClientConfig(hub)
	token, certificate := rest.CopyConfig(anonymous), rest.CopyConfig(anonymous)
	token.BearerToken = "mine"
	certificate.CertData, certificate.KeyData = []byte("PEM"), key
	own := rest.CopyConfig(certificate)
	own.KeyData = []byte("key")
	for _, test := range []struct {
		reason   string
		material Material
		want     *rest.Config
	}{
		{"a token replaces the bootstrap token", Material{Token: "mine"}, token},
		{"a certificate and its key replace the bootstrap token",
			Material{Certificate: []byte("PEM"), Key: []byte("key")}, own},
		{"a certificate without a key uses the claim key", Material{Certificate: []byte("PEM")}, certificate},
		{"an existing identity keeps the config", Material{}, hub},
	} {
		got, err := test.material.Config(hub, claim)
		require.NoError(t, err, test.reason)
		require.Equal(t, test.want, got, test.reason)
		require.NotSame(t, hub, got, test.reason)
	}
}
