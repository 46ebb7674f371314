package registration

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// The keys of a JoinToken's Secret. Agents read BootstrapKey and ignore every other key.
const (
	// BootstrapKey contains a marshaled [Bootstrap].
	BootstrapKey = "join.yaml"
	// ValuesKey contains the content of BootstrapKey in the form of values for the Helm chart muster-agent.
	ValuesKey = "values"
)

const (
	bootstrapKind = "Bootstrap"
	keySize       = 32
	// The size limit of a Secret.
	maxBootstrapSize = 1 << 20
)

// A Bootstrap contains all data that an agent needs for a JoinRequest. Token and Key are secrets. They are hidden when
// a Bootstrap is printed or marshaled to JSON.
type Bootstrap struct {
	// Server is the URL of the hub's API server, with the scheme https.
	Server string
	// CA is the PEM-encoded bundle that verifies the server's certificate.
	CA []byte
	// Token is a bearer token with permission to create and get JoinRequests.
	Token string
	// TokenName is the name of the JoinToken.
	TokenName string
	// Key of 32 bytes, with which requests prove that they use that JoinToken.
	Key []byte
	// Namespace of the JoinRequests.
	Namespace string
	// ExpirationTime is when Token expires, by the hub's clock. Zero: unknown.
	ExpirationTime time.Time
	// HubID is the identity of the hub. Empty: the hub has a version without an identity.
	HubID string
	// MoveFrom is the identity of another hub. With it an administrator requests that an agent that is a member of that
	// hub becomes a member of this one, and keeps all objects on the member. Empty: no move is requested.
	MoveFrom string
}

// bootstrapFile is the file format of a Bootstrap.
type bootstrapFile struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	Server         string `json:"server"`
	CA             string `json:"ca"`
	Namespace      string `json:"namespace"`
	TokenName      string `json:"tokenName"`
	Token          string `json:"token"`
	Key            string `json:"key"`
	ExpirationTime string `json:"expirationTime,omitempty"`
	HubID          string `json:"hubID,omitempty"`
	MoveFrom       string `json:"moveFrom,omitempty"`
}

// ParseBootstrap reads the output of [Bootstrap.Marshal]. The error is an [*membership.InvalidError] that names a field
// of the file and never quotes the file. Unknown fields are ignored. If the fields tokenName and key are missing and
// the token is a bootstrap token, both are derived from the token; see [Bootstrap.UseBootstrapToken].
func ParseBootstrap(data []byte) (*Bootstrap, error) {
	if len(data) > maxBootstrapSize {
		return nil, &membership.InvalidError{Field: BootstrapKey, Problem: "exceeds the size limit of a Secret"}
	}
	// The parsers' errors quote their input, which may contain a secret.
	asJSON, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil, &membership.InvalidError{Field: BootstrapKey, Problem: "is not YAML"}
	}
	var file bootstrapFile
	if err := json.Unmarshal(asJSON, &file); err != nil {
		field := BootstrapKey
		if wrong := new(json.UnmarshalTypeError); errors.As(err, &wrong) && wrong.Field != "" {
			field = wrong.Field
		}
		return nil, &membership.InvalidError{Field: field, Problem: "has the wrong type"}
	}
	return file.bootstrap()
}

func (f *bootstrapFile) bootstrap() (*Bootstrap, error) {
	if f.APIVersion != v1alpha1.GroupVersion.String() {
		return nil, &membership.InvalidError{Field: "apiVersion", Problem: "must be " + v1alpha1.GroupVersion.String()}
	}
	if f.Kind != bootstrapKind {
		return nil, &membership.InvalidError{Field: "kind", Problem: "must be " + bootstrapKind}
	}
	key, err := base64.StdEncoding.DecodeString(f.Key)
	if err != nil {
		return nil, &membership.InvalidError{Field: "key", Problem: "is not base64"}
	}
	var expiration time.Time
	if f.ExpirationTime != "" {
		if expiration, err = time.Parse(time.RFC3339, f.ExpirationTime); err != nil {
			return nil, &membership.InvalidError{Field: "expirationTime", Problem: "is not a time such as 2006-01-02T15:04:05Z"}
		}
	}
	b := &Bootstrap{
		Server: f.Server, CA: []byte(f.CA), Token: f.Token, TokenName: f.TokenName,
		Key: key, Namespace: f.Namespace, ExpirationTime: expiration.UTC(),
		HubID: f.HubID, MoveFrom: f.MoveFrom,
	}
	if f.TokenName == "" && f.Key == "" && bootstrapToken.MatchString(f.Token) {
		if err := b.UseBootstrapToken(f.Token); err != nil {
			return nil, err
		}
	}
	if err := b.validate(); err != nil {
		return nil, err
	}
	return b, nil
}

func (b *Bootstrap) validate() error {
	for _, check := range []struct {
		field   string
		problem string
	}{
		{"server", serverProblem(b.Server)},
		{"ca", caProblem(b.CA)},
		{"namespace", strings.Join(validation.IsDNS1123Label(b.Namespace), "; ")},
		{"tokenName", strings.Join(validation.IsDNS1123Label(b.TokenName), "; ")},
		{"token", tokenProblem(b.Token)},
		{"key", keyProblem(b.Key)},
		{"hubID", hubProblem(b.HubID)},
		{"moveFrom", hubProblem(b.MoveFrom)},
	} {
		if check.problem != "" {
			return &membership.InvalidError{Field: check.field, Problem: check.problem}
		}
	}
	return nil
}

func serverProblem(server string) string {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "must be a URL such as https://hub.example.com:6443"
	}
	return ""
}

func caProblem(ca []byte) string {
	const want = "must be one or more PEM-encoded certificates"
	rest := bytes.TrimSpace(ca)
	if len(rest) == 0 {
		return want
	}
	for len(rest) > 0 {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "CERTIFICATE" {
			return want
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return want
		}
		rest = bytes.TrimSpace(rest)
	}
	return ""
}

func tokenProblem(token string) string {
	if token == "" {
		return "must be set"
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "must be a bearer token, without spaces or control characters"
	}
	return ""
}

func hubProblem(id string) string {
	if len(id) > 64 || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "must be the identity of a hub, of at most 64 characters"
	}
	return ""
}

func keyProblem(key []byte) string {
	if len(key) != keySize {
		return fmt.Sprintf("must be %d bytes in base64", keySize)
	}
	return ""
}

// Marshal returns the YAML for [ParseBootstrap]; the same value always returns the same bytes. The result is a secret.
// The error is an [*membership.InvalidError] if a field is invalid.
func (b *Bootstrap) Marshal() ([]byte, error) {
	if err := b.validate(); err != nil {
		return nil, err
	}
	file := bootstrapFile{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: bootstrapKind,
		Server: b.Server, CA: string(b.CA), Namespace: b.Namespace,
		TokenName: b.TokenName, Token: b.Token, Key: base64.StdEncoding.EncodeToString(b.Key),
		HubID: b.HubID, MoveFrom: b.MoveFrom,
	}
	if !b.ExpirationTime.IsZero() {
		file.ExpirationTime = b.ExpirationTime.UTC().Format(time.RFC3339)
	}
	data, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("marshal the bootstrap of JoinToken %s: %w", b.TokenName, err)
	}
	return data, nil
}

// RESTConfig returns a config for the hub with the bootstrap credential.
func (b *Bootstrap) RESTConfig() *rest.Config {
	return &rest.Config{
		Host:            b.Server,
		BearerToken:     b.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: bytes.Clone(b.CA)},
	}
}

// String omits the secrets, so that they do not appear in logs. Some loggers use only this method.
func (b Bootstrap) String() string {
	return fmt.Sprintf("bootstrap of JoinToken %s/%s at %s", b.Namespace, b.TokenName, b.Server)
}

// Format prints String for every verb, so that printed text never contains the secrets.
func (b Bootstrap) Format(state fmt.State, _ rune) { fmt.Fprint(state, b.String()) }

// MarshalJSON omits the secrets, so that they do not appear in logs. To store a Bootstrap, use [Bootstrap.Marshal].
func (b Bootstrap) MarshalJSON() ([]byte, error) { return json.Marshal(b.String()) }
