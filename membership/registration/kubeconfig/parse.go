package kubeconfig

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"
)

// fromKeys parses a Secret with separate keys.
func fromKeys(data map[string][]byte, key string) (*rest.Config, error) {
	server, there := data[ServerKey]
	if !there {
		return nil, invalid(key, "does not exist: the Secret needs a kubeconfig in it, or the keys %s and %s", ServerKey,
			TokenKey)
	}
	config := &rest.Config{
		Host:            text(server),
		BearerToken:     text(data[TokenKey]),
		TLSClientConfig: rest.TLSClientConfig{CAData: data[CAKey], ServerName: text(data[TLSServerNameKey])},
	}
	if err := checkServer(field{ServerKey, config.Host}, Options{}); err != nil {
		return nil, err
	}
	if config.BearerToken == "" {
		return nil, invalid(TokenKey, "must be set: there is no credential")
	}
	if err := checkToken(field{TokenKey, config.BearerToken}); err != nil {
		return nil, err
	}
	return config, checkCA(CAKey, config.CAData)
}

// fromKubeconfig parses the current context of a kubeconfig. It does not use the loader of package clientcmd, which
// reads files.
func fromKubeconfig(in field, options Options) (config *rest.Config, proxy field, err error) {
	path := func(rest string) string { return in.name + "." + rest }
	// The parser's errors quote their input.
	whole, err := clientcmd.Load([]byte(in.value))
	if err != nil {
		return nil, proxy, invalid(in.name, "is not a kubeconfig")
	}
	if whole.CurrentContext == "" {
		return nil, proxy, invalid(path("current-context"), "must be set")
	}
	context := whole.Contexts[whole.CurrentContext]
	if context == nil {
		return nil, proxy, invalid(path("contexts"), "has no entry for the current-context")
	}
	cluster, user := whole.Clusters[context.Cluster], whole.AuthInfos[context.AuthInfo]
	switch {
	case cluster == nil:
		return nil, proxy, invalid(path("clusters"), "has no entry for the cluster of the current-context")
	case user == nil:
		return nil, proxy, invalid(path("users"), "has no entry for the user of the current-context")
	}
	if err := refuse(in.name, cluster, user, options); err != nil {
		return nil, proxy, err
	}
	if err := checkServer(field{path("cluster.server"), cluster.Server}, options); err != nil {
		return nil, proxy, err
	}
	if cluster.InsecureSkipTLSVerify && len(cluster.CertificateAuthorityData)+len(cluster.CertificateAuthority) > 0 {
		return nil, proxy, invalid(path("cluster.insecure-skip-tls-verify"),
			"contradicts the certificate authority beside it")
	}
	if err := checkCA(path("cluster.certificate-authority-data"), cluster.CertificateAuthorityData); err != nil {
		return nil, proxy, err
	}
	if err := checkUser(path("user"), user); err != nil {
		return nil, proxy, err
	}
	return configOf(cluster, user), field{path("cluster.proxy-url"), cluster.ProxyURL}, nil
}

// refuse returns an error for content that the options do not permit.
func refuse(key string, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo, options Options) error {
	const (
		runs  = "is not allowed: the hub would run a program"
		reads = "is not allowed: the hub would read one of its own files; put the content of the file into %s"
	)
	for _, what := range []struct {
		there, allowed bool
		field, problem string
	}{
		{user.Exec != nil, options.AllowExec, "user.exec", runs},
		{user.AuthProvider != nil, options.AllowAuthProvider, "user.auth-provider", runs},
		{cluster.CertificateAuthority != "", options.AllowFiles, "cluster.certificate-authority",
			strings.Replace(reads, "%s", "certificate-authority-data", 1)},
		{user.ClientCertificate != "", options.AllowFiles, "user.client-certificate",
			strings.Replace(reads, "%s", "client-certificate-data", 1)},
		{user.ClientKey != "", options.AllowFiles, "user.client-key", strings.Replace(reads, "%s", "client-key-data", 1)},
		{user.TokenFile != "", options.AllowFiles, "user.tokenFile", strings.Replace(reads, "%s", "token", 1)},
		{cluster.InsecureSkipTLSVerify, options.AllowInsecure, "cluster.insecure-skip-tls-verify",
			"is not allowed: the credential could be intercepted"},
		{impersonates(user), options.AllowImpersonation, "user.as",
			"is not allowed: use a credential of the user to impersonate"},
		{user.Username != "" || user.Password != "", options.AllowPasswords, "user.username",
			"is not allowed, nor is a password: use a token or a client certificate"},
	} {
		if what.there && !what.allowed {
			return invalid(key+"."+what.field, "%s", what.problem)
		}
	}
	return nil
}

func impersonates(user *clientcmdapi.AuthInfo) bool {
	return user.Impersonate != "" || user.ImpersonateUID != "" ||
		len(user.ImpersonateGroups)+len(user.ImpersonateUserExtra) > 0
}

// checkUser returns an error for an incomplete or invalid credential.
func checkUser(path string, user *clientcmdapi.AuthInfo) error {
	certificates, keys := len(user.ClientCertificateData)+len(user.ClientCertificate) > 0,
		len(user.ClientKeyData)+len(user.ClientKey) > 0
	switch {
	case certificates && !keys:
		return invalid(path+".client-key-data", "must be set when there is a client certificate")
	case keys && !certificates:
		return invalid(path+".client-certificate-data", "must be set when there is a client key")
	case impersonates(user) && user.Impersonate == "":
		return invalid(path+".as", "must be set when there are groups, a UID or more to act as")
	case user.Exec != nil && user.AuthProvider != nil:
		return invalid(path+".auth-provider", "cannot be used beside exec")
	case user.Token == "" && user.TokenFile == "" && !certificates && user.Exec == nil && user.AuthProvider == nil &&
		user.Username == "":
		return invalid(path, "has no credential: a token, or client-certificate-data and client-key-data")
	}
	if len(user.ClientCertificateData) > 0 && len(user.ClientKeyData) > 0 {
		if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil {
			return invalid(path+".client-certificate-data", "and client-key-data must be a PEM-encoded certificate and the "+
				"private key that belongs to it")
		}
	}
	return checkToken(field{path + ".token", user.Token})
}

func configOf(cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) *rest.Config {
	config := &rest.Config{
		Host: cluster.Server, DisableCompression: cluster.DisableCompression,
		BearerToken: user.Token, BearerTokenFile: user.TokenFile, Username: user.Username, Password: user.Password,
		ExecProvider: user.Exec, AuthProvider: user.AuthProvider,
		Impersonate: rest.ImpersonationConfig{
			UserName: user.Impersonate, UID: user.ImpersonateUID, Groups: user.ImpersonateGroups,
			Extra: user.ImpersonateUserExtra,
		},
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: cluster.InsecureSkipTLSVerify, ServerName: cluster.TLSServerName,
			CAFile: cluster.CertificateAuthority, CAData: cluster.CertificateAuthorityData,
			CertFile: user.ClientCertificate, CertData: user.ClientCertificateData, KeyFile: user.ClientKey,
			KeyData: user.ClientKeyData,
		},
	}
	if config.ExecProvider != nil {
		config.ExecProvider.InteractiveMode = clientcmdapi.NeverExecInteractiveMode // a hub has no terminal
	}
	return config
}

func checkServer(server field, options Options) error {
	u, err := url.Parse(server.value)
	switch {
	case err != nil, u.Hostname() == "", u.User != nil, u.RawQuery != "", u.Fragment != "", u.Scheme != "https" &&
		u.Scheme != "http":
		return invalid(server.name, "must be a URL such as https://member.example.com:6443")
	case u.Scheme == "http" && !options.AllowHTTP:
		return invalid(server.name, "must have the scheme https: over http the credential could be intercepted")
	}
	return nil
}

func checkToken(token field) error {
	if strings.ContainsFunc(token.value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return invalid(token.name, "must be a bearer token, without spaces or control characters")
	}
	return nil
}

func checkCA(name string, ca []byte) error {
	if len(ca) == 0 {
		return nil // the system's certificates apply
	}
	if _, err := cert.ParseCertsPEM(ca); err != nil {
		return invalid(name, "must be one or more PEM-encoded certificates")
	}
	return nil
}

func (a *Access) parseProxy(proxy field, headers []byte) error {
	if proxy.value != "" {
		u, err := url.Parse(proxy.value)
		if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" {
			return invalid(proxy.name, "must be a URL of scheme http, https or socks5, such as http://proxy.example.com:3128")
		}
		a.proxy = u
		a.config.Proxy = http.ProxyURL(u)
	}
	if len(headers) == 0 {
		return nil
	}
	var parsed map[string]string
	asJSON, err := yaml.YAMLToJSON(headers)
	if err == nil {
		err = json.Unmarshal(asJSON, &parsed)
	}
	if err != nil {
		// The parsers' errors quote their input.
		return invalid(ProxyHeadersKey, "must be a map of texts, in YAML or JSON")
	}
	if len(parsed) > 0 && (a.proxy == nil || a.proxy.Scheme == "socks5") {
		return invalid(ProxyHeadersKey, "is for proxies of scheme http and https, and there is none")
	}
	a.proxyHeaders = http.Header{}
	for name, value := range parsed {
		if !isToken(name) || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return invalid(ProxyHeadersKey, "contains an invalid header")
		}
		a.proxyHeaders.Add(name, value)
	}
	return nil
}

// isToken reports whether a text is a valid name of a header (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		alphanumeric := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !alphanumeric && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	})
}
