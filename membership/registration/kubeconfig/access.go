package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Keys of a Secret.
const (
	// DefaultKey is the key of a kubeconfig, as cluster-api writes it.
	DefaultKey = "value"
	// The keys that are used if there is no kubeconfig.
	ServerKey        = "server"
	TokenKey         = "token"
	CAKey            = "ca.crt"
	TLSServerNameKey = "tls-server-name"
	ProxyURLKey      = "proxy-url"
	// ProxyHeadersKey applies in both cases: a kubeconfig has no field for the headers.
	ProxyHeadersKey = "proxy-headers"
)

// maxSize is the size limit of a Secret.
const maxSize = 1 << 20

// Options permit content that is rejected by default; the package documentation contains the reasons. The zero value
// permits nothing.
type Options struct {
	// AllowExec allows a program in the kubeconfig that the hub runs to get a credential.
	AllowExec bool
	// AllowAuthProvider allows a plugin in the kubeconfig that is linked into the hub.
	AllowAuthProvider bool
	// AllowFiles allows files of the hub in the kubeconfig: certificate-authority, client-certificate, client-key,
	// tokenFile.
	AllowFiles bool
	// AllowInsecure allows a kubeconfig without verification of the server's certificate.
	AllowInsecure bool
	// AllowHTTP allows a server's URL with the scheme http.
	AllowHTTP bool
	// AllowImpersonation allows impersonation of another user.
	AllowImpersonation bool
	// AllowPasswords allows authentication with a user name and a password.
	AllowPasswords bool
}

// Access is the parsed content of a Secret for one member. It is immutable and may be used concurrently. It hides its
// secrets when it is printed or marshaled.
type Access struct {
	config       *rest.Config
	server       *url.URL
	proxy        *url.URL // nil: from the environment
	proxyHeaders http.Header
	revision     string
}

// Parse parses the data of a Secret. The key is that of the kubeconfig; empty means [DefaultKey]. It performs no I/O.
//
// The error is a [*membership.InvalidError]. Its field is a key of the Secret and, in a kubeconfig, a path within it,
// such as "value.user.exec". It never quotes the data.
func Parse(data map[string][]byte, key string, options Options) (*Access, error) {
	if key == "" {
		key = DefaultKey
	}
	keys := []string{ProxyHeadersKey, key}
	_, whole := data[key]
	if !whole {
		keys = []string{ProxyHeadersKey, ServerKey, TokenKey, CAKey, TLSServerNameKey, ProxyURLKey}
	}
	size, hash := 0, sha256.New()
	for _, k := range keys {
		value, there := data[k]
		size += len(value)
		fmt.Fprintf(hash, "%q %t %d ", k, there, len(value))
		hash.Write(value)
	}
	if size > maxSize {
		return nil, invalid(key, "exceeds the size limit of a Secret")
	}
	a := &Access{revision: hex.EncodeToString(hash.Sum(nil))}
	var proxy field
	var err error
	if whole {
		a.config, proxy, err = fromKubeconfig(field{key, string(data[key])}, options)
	} else {
		a.config, err = fromKeys(data, key)
		proxy = field{ProxyURLKey, text(data[ProxyURLKey])}
	}
	if err != nil {
		return nil, err
	}
	if a.server, err = url.Parse(a.config.Host); err != nil {
		return nil, invalid(key, "has no server's URL") // checkServer has parsed it
	}
	if err := a.parseProxy(proxy, data[ProxyHeadersKey]); err != nil {
		return nil, err
	}
	return a, nil
}

// Server returns the URL of the member's API server.
func (a *Access) Server() string { return a.server.String() }

// Endpoint returns the address of the member's API server and the data for its verification, without secrets. It may
// be as large as the Secret.
func (a *Access) Endpoint() v1alpha1.Endpoint {
	e := v1alpha1.Endpoint{Server: a.Server(), CABundle: bytes.Clone(a.config.CAData), TLSServerName: a.config.ServerName}
	if a.proxy != nil {
		proxy := *a.proxy
		proxy.User = nil
		e.ProxyURL = proxy.String()
	}
	return e
}

// Revision identifies the content of the Secret: it differs if and only if a key that Parse reads differs.
func (a *Access) Revision() string { return a.revision }

// String omits the secrets, so that they do not appear in logs. Some loggers use only this method.
func (a *Access) String() string { return "access to " + a.Server() }

// Format prints String for every verb, so that printed text never contains the secrets.
func (a *Access) Format(state fmt.State, _ rune) { fmt.Fprint(state, a.String()) }

// MarshalJSON omits the secrets, so that they do not appear in logs.
func (a *Access) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// field is a value in a Secret, with its path.
type field struct{ name, value string }

func invalid(field, problem string, args ...any) error {
	return &membership.InvalidError{Field: field, Problem: fmt.Sprintf(problem, args...)}
}

// text returns a value without the line end that editors add.
func text(value []byte) string { return string(bytes.TrimSpace(value)) }
