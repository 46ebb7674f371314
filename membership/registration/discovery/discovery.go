package discovery

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	bootstraptokens "k8s.io/cluster-bootstrap/util/tokens"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
)

// DefaultTimeout is the default timeout of [Discover].
const DefaultTimeout = 30 * time.Second

// Options identify a hub and verify it.
type Options struct {
	// Server is the URL of the hub's API server, with the scheme https, at which this cluster reaches it.
	Server string
	// Token is the bootstrap token, "<id>.<secret>".
	Token string
	// CACertHashes pin the hub's CA: one of its certificates must have one of these public keys. Each is "sha256:" and the
	// hash of the DER-encoded public key in hexadecimal, as in kubeadm; see [CACertHashes].
	CACertHashes []string
	// UnsafeSkipCAVerification allows discovery without pins. Every client that knows the token, such as every cluster
	// that has joined with it, could then impersonate the hub. With CACertHashes it is an error.
	UnsafeSkipCAVerification bool
	// PublishedServer makes agents use the address in cluster-info, which may be one in the network of the hub, instead of
	// Server. Discover does not verify that it can be reached.
	PublishedServer bool
	// RegistrationNamespace is the namespace of JoinRequests on the hub. Empty: membership.RegistrationNamespace.
	RegistrationNamespace string
	// Timeout limits the duration of Discover. Zero: [DefaultTimeout].
	Timeout time.Duration
	// Dial opens connections. Nil: the default of the standard library.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy returns the proxy for a request. Nil: from the environment, which is also the default of agents.
	Proxy func(*http.Request) (*url.URL, error)
}

// String omits the token, so that it does not appear in logs.
func (o Options) String() string { return "discovery of the hub at " + o.Server }

// Format prints String for every verb, so that printed text never contains the token.
func (o Options) Format(state fmt.State, _ rune) { fmt.Fprint(state, o.String()) }

// Discover returns the bootstrap of a hub after verifying the hub. Its Server is that of the options, which was reached
// and verified; cluster-info may contain another one, which may be reachable in the hub's own network only (see
// Options.PublishedServer). Its CA contains the pinned certificates; without pins, all. Its ExpirationTime is unknown.
//
// Discover sends two requests and does not retry; the errors of this package document which ones may be temporary. If
// the context ends, the error wraps the context's error. It may be called concurrently. Call it once and store the
// result: a hub whose JoinToken has ended cannot be discovered any more, while an agent that created its request in
// time can still read the answer.
func Discover(ctx context.Context, o Options) (*registration.Bootstrap, error) {
	pins, err := o.validate()
	if err != nil {
		return nil, err
	}
	bootstrap := &registration.Bootstrap{
		Server: o.Server, Namespace: cmp.Or(o.RegistrationNamespace, membership.RegistrationNamespace),
	}
	if invalid := new(membership.InvalidError); errors.As(bootstrap.UseBootstrapToken(o.Token), &invalid) {
		return nil, &membership.InvalidError{Field: "Options.Token", Problem: invalid.Problem}
	}
	timeout := cmp.Or(o.Timeout, DefaultTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, timeout,
		fmt.Errorf("no response within %s: %w", timeout, context.DeadlineExceeded))
	defer cancel()
	fail := func(err error) (*registration.Bootstrap, error) {
		return nil, fmt.Errorf("discover the hub at %s: %w", o.Server, err)
	}

	first, err := o.fetch(ctx, nil)
	if err != nil {
		return fail(err)
	}
	id, secret, err := bootstraptokens.ParseToken(o.Token)
	if err != nil {
		return fail(err) // UseBootstrapToken has validated the token.
	}
	if err := first.verify(id, secret); err != nil {
		return fail(err)
	}
	certificates, err := first.certificates()
	if err != nil {
		return fail(err)
	}
	if certificates, err = pins.filter(certificates); err != nil {
		return fail(err)
	}
	again, err := o.fetch(ctx, certificates)
	if err != nil {
		return fail(err)
	}
	if again.kubeconfig != first.kubeconfig {
		return fail(fmt.Errorf("%w: its cluster-info differs from the one over the connection that was not verified",
			ErrUntrusted))
	}
	bootstrap.CA = encode(certificates)
	if o.PublishedServer {
		cluster, err := clusterOf(first.kubeconfig)
		if err == nil {
			err = checkServer("server", cluster.Server)
		}
		if err != nil {
			return fail(fmt.Errorf("%w: the address in the hub's cluster-info cannot be used: %w", ErrNotAHub, err))
		}
		bootstrap.Server = cluster.Server
	}
	return bootstrap, nil
}

func (o *Options) validate() (pins, error) {
	if err := checkServer("Options.Server", o.Server); err != nil {
		return nil, err
	}
	if o.RegistrationNamespace != "" {
		if problems := validation.IsDNS1123Label(o.RegistrationNamespace); len(problems) > 0 {
			return nil, &membership.InvalidError{Field: "Options.RegistrationNamespace", Problem: strings.Join(problems, "; ")}
		}
	}
	if o.Timeout < 0 {
		return nil, &membership.InvalidError{Field: "Options.Timeout", Problem: "must not be negative"}
	}
	if o.UnsafeSkipCAVerification && len(o.CACertHashes) > 0 {
		return nil, &membership.InvalidError{Field: "Options.UnsafeSkipCAVerification",
			Problem: "must be false when there are CACertHashes"}
	}
	if !o.UnsafeSkipCAVerification && len(o.CACertHashes) == 0 {
		return nil, fmt.Errorf("%w: set Options.CACertHashes to the hashes that the hub's administrator provides, or, if "+
			"all clients with the token "+
			"can be trusted, Options.UnsafeSkipCAVerification", ErrNoPins)
	}
	return parsePins(o.CACertHashes)
}

func checkServer(field, server string) error {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return &membership.InvalidError{Field: field, Problem: "must be a URL such as https://hub.example.com:6443"}
	}
	return nil
}

func encode(certificates []*x509.Certificate) []byte {
	var out bytes.Buffer
	for _, certificate := range certificates {
		out.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
	}
	return out.Bytes()
}
