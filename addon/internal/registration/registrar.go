package registration

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// The permissions of the Registrar, from which the files in the folder rbac are generated. It does not use
// leases/update itself, but cannot grant it to agents without having it.

// The verb confine makes the policy of membership/crds apply to the hub.
// +kubebuilder:rbac:groups=membership.muster.dev,resources=hubs,verbs=confine
// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=secrets,verbs=get;list;watch;create;update;delete

// Intervals for states that no watch reports.
const (
	pendingPause = time.Second // until a signer acts
	problemPause = time.Minute // until an administrator acts
)

// Options are the options of a [Registrar].
type Options struct {
	// Client writes objects. Its scheme must contain the Kubernetes types. It need not be cached. Required.
	Client client.Client
	// Live reads without caches: the API reader of a manager. All writes are based on its results. Required.
	Live client.Reader
	// Cache is read first, so that no requests are needed while nothing changes; see [NewCache]. Default: Live.
	Cache client.Reader
	// Server is the https URL at which members reach the hub's API server, and CA the PEM-encoded bundle that verifies its
	// certificate. Default: those of Config, which may be unreachable for members if the hub runs in its own cluster.
	Server string
	CA     []byte
	// Config is the REST configuration of the manager. Required if Server or CA is empty.
	Config *rest.Config
	// Namespace is the namespace on the hub for the credentials. No member must have access to it. Default:
	// membership.RegistrationNamespace.
	Namespace string
	// Clock determines when to renew. It must be accurate to some minutes. Default: the system clock.
	Clock clock.PassiveClock
}

// Registrar grants agents of add-ons access to the hub. It keeps no state. Its methods are safe for concurrent use for
// different MemberAddons.
type Registrar struct {
	client    client.Client
	live      client.Reader
	cache     client.Reader
	server    string
	ca        []byte
	namespace string
	clock     clock.PassiveClock
}

// New returns a Registrar. The error names the invalid option.
func New(o Options) (*Registrar, error) {
	if o.Client == nil || o.Live == nil {
		return nil, errors.New("registration.Options.Client and Live are required")
	}
	r := &Registrar{
		client: o.Client, live: o.Live, cache: o.Cache, server: o.Server, ca: o.CA,
		namespace: cmp.Or(o.Namespace, membership.RegistrationNamespace), clock: o.Clock,
	}
	if r.cache == nil {
		r.cache = r.live
	}
	if r.clock == nil {
		r.clock = clock.RealClock{}
	}
	return r, r.reach(o.Config)
}

// reach determines the address and the CA of the hub.
func (r *Registrar) reach(config *rest.Config) error {
	if config == nil {
		config = &rest.Config{}
	}
	if r.server == "" && config.Host != "" {
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return fmt.Errorf("read registration.Options.Server from Config: %w", err)
		}
		r.server = server.String()
	}
	if len(r.ca) == 0 {
		r.ca = config.CAData
		if len(r.ca) == 0 && config.CAFile != "" {
			var err error
			if r.ca, err = os.ReadFile(config.CAFile); err != nil {
				return fmt.Errorf("read registration.Options.CA from Config: %w", err)
			}
		}
	}
	if server, err := url.Parse(r.server); err != nil || server.Scheme != "https" || server.Hostname() == "" {
		return fmt.Errorf("registration.Options.Server must be a URL such as https://hub.example.com:6443, got %q", r.server)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(r.ca) {
		return errors.New("registration.Options.CA must be one or more PEM-encoded certificates")
	}
	return nil
}

// Result is the state of a registration.
type Result struct {
	// Registration, and Problem if there is one, are inputs of the add-on's health.
	Registration health.Registration
	Problem      *health.Problem
	// Status is the status of the registration. Nil: there is no credential yet.
	Status *v1alpha1.RegistrationStatus
	// Secret is the manifest for the member. The add-on's Works must contain it from now on. Nil: none yet.
	Secret *corev1.Secret
	// After is the duration until the next reconcile without an event. Zero: none.
	After time.Duration
}

// problem is an error that a retry cannot solve. It is returned in a Result.
type problem struct{ health.Problem }

func (p *problem) Error() string { return p.Message }

// Ensure reconciles the access of an add-on's agent with as many steps as are possible now, and returns its state.
// Ensure is idempotent, does not block, and does nothing if nothing changed. It can be interrupted at any point and
// repeated.
//
// An error is an error of the API server, for example a conflict, and can be retried. The result is valid even with an
// error, as far as the cache is current; an agent with a credential keeps it. A permanent problem is not an error but
// the Problem of the result.
func (r *Registrar) Ensure(ctx context.Context, request Request) (Result, error) {
	return r.ensure(ctx, &request, func(*observed) *wanted { return want(&request) })
}

// Renew maintains the existing access of an add-on's agent while the desired access is unknown or must not change: the
// rules of its Role, its Lease, and a credential of the existing type and lifetime. It works like [Registrar.Ensure],
// but ignores Want.Credential, Want.ExpirationSeconds, Want.Rules and Lease of the request. Without an existing
// credential it does nothing and returns the zero Result. If the Role does not exist, its rules are unknown, which is a
// Problem.
func (r *Registrar) Renew(ctx context.Context, request Request) (Result, error) {
	return r.ensure(ctx, &request, func(o *observed) *wanted {
		if last := request.last(o); last != nil {
			return want(last)
		}
		return nil
	})
}

// ensure reconciles the desired objects with the observed ones. Nil: no changes.
func (r *Registrar) ensure(ctx context.Context, request *Request, wantedOf func(*observed) *wanted) (Result, error) {
	o, err := r.observe(ctx, r.cache, client.ObjectKeyFromObject(request.MemberAddon))
	w := wantedOf(&o)
	if err == nil && (w == nil && o.record.Credential != "" || w != nil && !w.upToDate(&o, r)) {
		if r.cache != r.live {
			var live observed
			// If the live read fails, the cached objects are used.
			if live, err = r.observe(ctx, r.live, client.ObjectKeyFromObject(request.MemberAddon)); err == nil {
				o, w = live, wantedOf(&live)
			}
		}
		if err == nil && w != nil {
			err = r.act(ctx, w, &o)
		}
	}
	if w == nil {
		return request.lost(&o), err
	}
	if err == nil && w.refusal != nil {
		err = w.refusal
	}
	return r.report(w, &o, err)
}

func (r *Registrar) report(w *wanted, o *observed, err error) (Result, error) {
	result := Result{Registration: health.Registration{State: health.Registering}}
	now := r.clock.Now()
	switch problem := (*problem)(nil); {
	case errors.As(err, &problem):
		result.Problem, result.After, err = new(problem.Problem), problemPause, nil
	case errors.Is(err, membership.ErrPending):
		result.Registration.Message, result.After, err = "The certificate of the add-on agent is not signed yet.",
			pendingPause, nil
	case err != nil:
		err = fmt.Errorf("register %s: %w", w, err)
	case w.usable(o, now):
		result.After = max(o.record.renewAt(w.key.String()).Sub(now), pendingPause)
	}
	if !w.usable(o, now) {
		return result, err
	}
	subject, wrong := w.subject(o)
	if wrong != nil || !w.bindingObserved(o, subject) {
		return result, errors.Join(err, wrong)
	}
	secret, wrong := r.manifest(w.Request, o)
	if wrong != nil {
		return result, errors.Join(err, wrong)
	}
	result.Registration = health.Registration{State: health.Registered}
	result.Status = &v1alpha1.RegistrationStatus{Credential: o.record.Credential, Subject: subject,
		ExpirationTime: new(o.record.Expires)}
	result.Secret = secret
	return result, err
}

// Present reports which objects of the registration of an add-on exist, given the namespace of its member: credentials
// and permissions. It never reports their absence from a cache.
func (r *Registrar) Present(ctx context.Context, addon, namespace string) (removal.Presence, error) {
	key := client.ObjectKey{Namespace: namespace, Name: addon}
	o, err := r.observe(ctx, r.cache, key)
	if err == nil && r.cache != r.live && len(o.ours(addon)) == 0 {
		o, err = r.observe(ctx, r.live, key)
	}
	if err != nil {
		return removal.Present, fmt.Errorf("find the registration of add-on %s in %s: %w", addon, namespace, err)
	}
	return o.presence(addon), nil
}

// Known reports whether the cache contains an object of the registration of an add-on. The cache may be outdated.
func (r *Registrar) Known(ctx context.Context, addon, namespace string) (bool, error) {
	o, err := r.observe(ctx, r.cache, client.ObjectKey{Namespace: namespace, Name: addon})
	if err != nil {
		return false, fmt.Errorf("find the registration of add-on %s in %s: %w", addon, namespace, err)
	}
	return len(o.ours(addon)) > 0, nil
}

// presence summarizes the observed objects.
func (o *observed) presence(addon string) removal.Presence {
	ours := o.ours(addon)
	if len(ours) == 0 {
		return removal.Absent
	}
	for _, object := range ours {
		if object.GetDeletionTimestamp() == nil {
			return removal.Present
		}
	}
	return removal.Terminating
}

// Revoke ends the access of an add-on's agent, given the namespace of its member, and deletes all objects of the
// registration: first the permissions, and last the objects by which the others are found. It is idempotent and returns
// what is left, which is nothing unless a finalizer blocks a deletion.
func (r *Registrar) Revoke(ctx context.Context, addon, namespace string) (removal.Presence, error) {
	key := client.ObjectKey{Namespace: namespace, Name: addon}
	o, err := r.observe(ctx, r.live, key)
	if err != nil {
		return removal.Present, fmt.Errorf("revoke the registration of add-on %s in %s: %w", addon, namespace, err)
	}
	for _, object := range o.ours(addon) {
		if object == client.Object(o.secret) {
			err = r.clean(ctx, key, o.secret)
		}
		if err == nil {
			err = r.remove(ctx, object)
		}
		if err != nil {
			return removal.Present, fmt.Errorf("revoke the registration of add-on %s in %s: %w", addon, namespace, err)
		}
	}
	if o, err = r.observe(ctx, r.live, key); err != nil {
		return removal.Present, fmt.Errorf("revoke the registration of add-on %s in %s: %w", addon, namespace, err)
	}
	return o.presence(addon), nil
}

// clean deletes the requests for a certificate that was never issued. Without a key there are none.
func (r *Registrar) clean(ctx context.Context, key client.ObjectKey, secret *corev1.Secret) error {
	member := membership.Member{Name: secret.Labels[membership.MemberLabel]}
	if len(secret.Data[privateKey]) == 0 || member.Name == "" {
		return nil
	}
	w := &wanted{key: key}
	return r.certificates(w).Clean(ctx, member)
}
