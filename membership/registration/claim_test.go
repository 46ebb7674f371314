package registration

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
)

func newClaim(t testing.TB) *ClaimKey {
	t.Helper()
	claim, err := NewClaimKey()
	require.NoError(t, err)
	return claim
}

func TestClaimKey_MarshalAndParse(t *testing.T) {
	claim := newClaim(t)
	data, err := claim.Marshal()
	require.NoError(t, err)
	again, err := ParseClaimKey(append(data, "\n"...))
	require.NoError(t, err)
	require.Equal(t, claim.Public(), again.Public())
	require.Equal(t, claim.Fingerprint(), again.Fingerprint())
	require.True(t, claim.private.Equal(again.private))
	require.NotEqual(t, claim.Fingerprint(), newClaim(t).Fingerprint(), "each new key is different")
}

func TestParseClaimKey_InvalidKeys(t *testing.T) {
	data, err := newClaim(t).Marshal()
	require.NoError(t, err)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: newClaim(t).Public()})
	for _, test := range []struct {
		reason string
		data   string
	}{
		{"no data", ""},
		{"text", "key"},
		{"two keys", string(data) + string(data)},
		{"a public key", string(public)},
		{"a PEM block with invalid content", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
		{"a key of another curve", p384},
		{"a key of another type", ed25519Key},
	} {
		_, err := ParseClaimKey([]byte(test.data))
		require.Error(t, err, test.reason)
		require.NotContains(t, err.Error(), "AAAA", "the error must not contain the key")
	}
}

const (
	p384 = `-----BEGIN PRIVATE KEY-----
MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDCfQZ8pb4UsbNfGbHkI
yLaR3izDgOXAvaWQ8AjRxUAft23cGgV9dvO9GRymiPFPVoChZANiAASpVMVWPuBw
eROfTRezPcykvZwcVD0rVvE/8D6jJ2Cmf+8ijEiH3cqRAFydYgk7Oag1Xhey/aG5
T17ElxQ/zMHbzD97PwpichqSXWuDGKyjoBZ2hKIBHaZCjEO0Mn5+4lI=
-----END PRIVATE KEY-----
`
	// All processes of a fuzz test must use the same seeds.
	fixedKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgdjUrenPfWLu+XDBE
W5jKuG8IHWvrksbVRIPbA1fDQ8KhRANCAASlVMw/nPaBnbEe52nXUP418PXz7sRk
M/grr0KQdBEgLUaZxwsmRCVQ45mjKgqI+h9dEUjd/XCpcR/Yp3LGqxVp
-----END PRIVATE KEY-----
`
	ed25519Key = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIHTuIHa1uwJ4JkGO+uxcWKE+Hvp1tSWwq/4XrWk4K7l3
-----END PRIVATE KEY-----
`
)

// requireRedacted fails if any printed form of value contains one of the secrets.
func requireRedacted(t *testing.T, value any, secrets ...string) {
	t.Helper()
	asJSON, err := json.Marshal(value)
	require.NoError(t, err)
	printed := []string{string(asJSON)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X"} {
		printed = append(printed, fmt.Sprintf(verb, value), fmt.Sprintf(verb, []any{value}))
	}
	// The sink of funcr uses reflection instead of these methods.
	keep := func(text string) { printed = append(printed, text) }
	funcr.NewJSON(keep, funcr.Options{}).Info("logged", "value", value, "values", []any{value})
	funcr.New(func(_, text string) { keep(text) }, funcr.Options{}).Info("logged", "value", value, "in",
		struct{ Value any }{value})
	for _, text := range printed {
		for _, secret := range secrets {
			require.NotContains(t, strings.ToLower(text), strings.ToLower(secret))
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	claim := newClaim(t)
	scalar, err := claim.private.Bytes()
	require.NoError(t, err)
	//nolint:staticcheck // D is the printed field.
	requireRedacted(t, claim, fmt.Sprintf("%x", scalar), claim.private.D.String(), "PRIVATE")
	require.Contains(t, fmt.Sprint(claim), claim.Fingerprint())
	require.NotPanics(t, func() { _ = fmt.Sprint((*ClaimKey)(nil)) })

	bootstrap := testBootstrap(t)
	key := fmt.Sprintf("%x", bootstrap.Key)
	requireRedacted(t, bootstrap, bootstrap.Token, key, "AQEBAQ")
	requireRedacted(t, *bootstrap, bootstrap.Token, key, "AQEBAQ", fmt.Sprint(string(bootstrap.Key)))
	requireRedacted(t, Material{Token: "hush"}, "hush", fmt.Sprintf("%x", "hush"))
	require.Equal(t, "identity", fmt.Sprint(Material{}))
	require.Equal(t, "certificate", fmt.Sprint(Material{Certificate: []byte("PEM")}))
}
