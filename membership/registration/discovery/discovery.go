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

// DefaultTimeout is how long [Discover] may take.
const DefaultTimeout = 30 * time.Second

// Options say which hub, and how it is known again.
type Options struct {
	// Server is the URL of the hub's API server, of scheme https, as this cluster reaches it.
	Server string
	// Token is the bootstrap token, "<id>.<secret>".
	Token string
	// CACertHashes pin the hub's CA: one of its certificates must have one of these public keys. Each is "sha256:" and the
	// hash of the DER-encoded public key in hexadecimal, as kubeadm has them; see [CACertHashes].
	CACertHashes []string
	// UnsafeSkipCAVerification does without pins: whoever knows the token, such as every cluster that has joined
	// with it, could then pretend to be the hub. With CACertHashes it is an error.
	UnsafeSkipCAVerification bool
	// RegistrationNamespace is where the hub takes requests. Empty: membership.RegistrationNamespace.
	RegistrationNamespace string
	// Timeout bounds all of it. Zero: [DefaultTimeout].
	Timeout time.Duration
	// Dial makes connections. Nil: as the standard library does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Proxy finds the proxy for a request. Nil: by the environment, as agents do by default.
	Proxy func(*http.Request) (*url.URL, error)
}

// String keeps the token out of logs.
func (o Options) String() string { return "discovery of the hub at " + o.Server }

// Format keeps the token out of everything that is printed, by whatever verb.
func (o Options) Format(state fmt.State, _ rune) { fmt.Fprint(state, o.String()) }

// Discover returns the bootstrap of a hub, once it has made sure that it is the right one. Server in it is that of the
// options, which was reached and verified; cluster-info may name another, that only the hub's own network can reach. CA has
// the certificates that are pinned; without pins, all. ExpirationTime is unknown.
//
// It makes two requests, and does not try again; see the errors of this package for what might pass. A context that ends is
// an error that errors.Is tells. It may be called concurrently. Call it once and keep what it returns: a hub whose JoinToken has
// ended is not found any more, while an agent that asked in time can still fetch its answer.
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
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s: %w", timeout, context.DeadlineExceeded))
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
		return fail(err) // It was looked at before.
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
		return fail(fmt.Errorf("%w: it says something else than before over a connection that was not verified", ErrUntrusted))
	}
	bootstrap.CA = encode(certificates)
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
		return nil, &membership.InvalidError{Field: "Options.UnsafeSkipCAVerification", Problem: "must be false when there are CACertHashes"}
	}
	if !o.UnsafeSkipCAVerification && len(o.CACertHashes) == 0 {
		return nil, fmt.Errorf("%w: set Options.CACertHashes to what the hub's administrator says, or, if all who know the token "+
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
