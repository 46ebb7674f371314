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
	// DefaultKey is that of a kubeconfig, as cluster-api writes it.
	DefaultKey = "value"
	// The keys that count where there is no kubeconfig.
	ServerKey        = "server"
	TokenKey         = "token"
	CAKey            = "ca.crt"
	TLSServerNameKey = "tls-server-name"
	ProxyURLKey      = "proxy-url"
	// ProxyHeadersKey counts in either case: a kubeconfig has no place for them.
	ProxyHeadersKey = "proxy-headers"
)

// maxSize is what a Secret can hold.
const maxSize = 1 << 20

// Options allow what is refused otherwise; see the package for why it is. The zero value allows nothing.
type Options struct {
	// AllowExec lets a kubeconfig name a program that the hub runs to get a credential.
	AllowExec bool
	// AllowAuthProvider lets it name a plugin that is linked into the hub.
	AllowAuthProvider bool
	// AllowFiles lets it name files of the hub: certificate-authority, client-certificate, client-key, tokenFile.
	AllowFiles bool
	// AllowInsecure lets it skip the verification of the server's certificate.
	AllowInsecure bool
	// AllowHTTP lets a server's URL have the scheme http.
	AllowHTTP bool
	// AllowImpersonation lets it act as somebody else.
	AllowImpersonation bool
	// AllowPasswords lets it authenticate by a user name and a password.
	AllowPasswords bool
}

// Access is what it takes to reach one member, as a Secret says it. It does not change, and may be used concurrently. It shows
// no secrets when it is printed or marshaled.
type Access struct {
	config       *rest.Config
	server       *url.URL
	proxy        *url.URL // nil: what the environment says
	proxyHeaders http.Header
	revision     string
}

// Parse reads what the data of a Secret says. The key is that of the kubeconfig; empty means [DefaultKey]. It does no I/O.
//
// The error is a [*membership.InvalidError]; its field is a key of the Secret and, in a kubeconfig, a path that follows it, such as
// "value.user.exec". It never quotes what was read.
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
		return nil, invalid(key, "is larger than a Secret can be")
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
		return nil, invalid(key, "has no server's URL") // it was parsed before
	}
	if err := a.parseProxy(proxy, data[ProxyHeadersKey]); err != nil {
		return nil, err
	}
	return a, nil
}

// Server is the URL of the member's API server.
func (a *Access) Server() string { return a.server.String() }

// Endpoint is where the member's API server is, and how to know it, without anything secret. It may be as large as the Secret.
func (a *Access) Endpoint() v1alpha1.Endpoint {
	e := v1alpha1.Endpoint{Server: a.Server(), CABundle: bytes.Clone(a.config.CAData), TLSServerName: a.config.ServerName}
	if a.proxy != nil {
		proxy := *a.proxy
		proxy.User = nil
		e.ProxyURL = proxy.String()
	}
	return e
}

// Revision tells what the Secret says from what it said before. It says nothing else.
func (a *Access) Revision() string { return a.revision }

// String keeps the secrets out of logs: some loggers look for nothing but this.
func (a *Access) String() string { return "access to " + a.Server() }

// Format keeps the secrets out of everything that is printed, by whatever verb.
func (a *Access) Format(state fmt.State, _ rune) { fmt.Fprint(state, a.String()) }

// MarshalJSON keeps the secrets out of logs.
func (a *Access) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// field is what was found in a place of a Secret.
type field struct{ name, value string }

func invalid(field, problem string, args ...any) error {
	return &membership.InvalidError{Field: field, Problem: fmt.Sprintf(problem, args...)}
}

// text is a value as people write it into a file, with a line's end after it.
func text(value []byte) string { return string(bytes.TrimSpace(value)) }
