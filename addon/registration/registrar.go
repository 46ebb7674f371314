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
	"github.com/muster-sdk/muster/addon/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// The permissions of the Registrar, from which the files in the folder rbac are made. It does not change or watch what it has of leases/update,
// but could else not give it to agents.

// +kubebuilder:rbac:groups="",resources=serviceaccounts,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,verbs=create
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=roles;rolebindings,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups="",namespace=muster-registration,resources=secrets,verbs=get;list;watch;create;update;delete

// How long is waited for what no watch tells of.
const (
	pendingPause = time.Second // for a signer
	problemPause = time.Minute // for an administrator
)

// Options of a [Registrar].
type Options struct {
	// Client writes. Its scheme knows Kubernetes; it need not be cached. Required.
	Client client.Client
	// Live reads past all caches: a manager's API reader. Whatever is written was decided on what it shows. Required.
	Live client.Reader
	// Cache is what is looked at first, so that nothing is asked of the API server as long as there is nothing to do; see [NewCache].
	// Unset: Live.
	Cache client.Reader
	// Server is the URL at which members reach the hub's API server, of scheme https, and CA the PEM-encoded bundle that its certificate is
	// verified by. Empty: those of Config, which members may not be able to reach if the hub's program runs in the hub's cluster.
	Server string
	CA     []byte
	// Config is the manager's. Required where Server or CA is empty.
	Config *rest.Config
	// Namespace on the hub that holds the credentials, to which no member has access. Empty: membership.RegistrationNamespace.
	Namespace string
	// Clock tells when to renew. It must be right to some minutes. Unset: the system's.
	Clock clock.PassiveClock
}

// Registrar gives agents of add-ons access to the hub. It keeps no state, and may be used concurrently, but not for the same MemberAddon.
type Registrar struct {
	client    client.Client
	live      client.Reader
	cache     client.Reader
	server    string
	ca        []byte
	namespace string
	clock     clock.PassiveClock
}

// New returns a Registrar. The error says which option is wrong.
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

// reach finds out what agents reach the hub by.
func (r *Registrar) reach(config *rest.Config) error {
	if config == nil {
		config = &rest.Config{}
	}
	if r.server == "" && config.Host != "" {
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return fmt.Errorf("take registration.Options.Server from Config: %w", err)
		}
		r.server = server.String()
	}
	if len(r.ca) == 0 {
		r.ca = config.CAData
		if len(r.ca) == 0 && config.CAFile != "" {
			var err error
			if r.ca, err = os.ReadFile(config.CAFile); err != nil {
				return fmt.Errorf("take registration.Options.CA from Config: %w", err)
			}
		}
	}
	if server, err := url.Parse(r.server); err != nil || server.Scheme != "https" || server.Hostname() == "" {
		return fmt.Errorf("registration.Options.Server is %q, and must be a URL such as https://hub.example.com:6443", r.server)
	}
	if !x509.NewCertPool().AppendCertsFromPEM(r.ca) {
		return errors.New("registration.Options.CA must be one or more PEM-encoded certificates")
	}
	return nil
}

// Result is what has become of a registration.
type Result struct {
	// Registration and Problem, if there is one, are what the add-on's health has to know.
	Registration health.Registration
	Problem      *health.Problem
	// Status of the registration. Nil: there is no credential yet.
	Status *v1alpha1.RegistrationStatus
	// Secret is the manifest for the member, which the add-on's Works are to have from then on. Nil: there is none yet.
	Secret *corev1.Secret
	// After is when to look again although nothing has happened. Zero: never.
	After time.Duration
}

// problem is one that is not up to the API server, and is told of in a Result.
type problem struct{ health.Problem }

func (p *problem) Error() string { return p.Message }

// Ensure sees to it that an add-on's agent has the access that it is to have, by as many steps as can be taken now, and says how far
// that is. It is idempotent, does not wait, and does nothing when there is nothing to do. It may be interrupted anywhere and called again.
//
// An error is the API server's, conflicts with other writers among them, and may pass: call it again. The result is right all the
// same, as far as the cache shows; an agent that has a credential keeps it. What does not pass by itself is no error but the result's Problem.
func (r *Registrar) Ensure(ctx context.Context, request Request) (Result, error) {
	return r.ensure(ctx, &request, func(*observed) *wanted { return want(&request) })
}

// Renew sees to it that an add-on's agent keeps the access that it has, for as long as nobody can say what it is to have, or it is not to be told: the
// rules of its Role, its Lease, and a credential of the kind and lifetime of the one that it has. It is as [Registrar.Ensure], but that Want.Credential,
// Want.ExpirationSeconds, Want.Rules and Lease of the request do not count. Where there is no credential to be kept it does nothing, and the result is
// the zero one. What a Role gave that is gone nobody knows any more: that is a Problem.
func (r *Registrar) Renew(ctx context.Context, request Request) (Result, error) {
	return r.ensure(ctx, &request, func(o *observed) *wanted {
		if last := request.last(o); last != nil {
			return want(last)
		}
		return nil
	})
}

// ensure does what there is to do for what is wanted, given what there is. Nil: nothing is.
func (r *Registrar) ensure(ctx context.Context, request *Request, wantedOf func(*observed) *wanted) (Result, error) {
	o, err := r.observe(ctx, r.cache, client.ObjectKeyFromObject(request.MemberAddon))
	w := wantedOf(&o)
	if err == nil && (w == nil && o.record.Credential != "" || w != nil && !w.settled(&o, r)) {
		if r.cache != r.live {
			var live observed
			if live, err = r.observe(ctx, r.live, client.ObjectKeyFromObject(request.MemberAddon)); err == nil { // else the cache is the better word
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
		result.Registration.Message, result.After, err = "The certificate of its agent is not signed yet.", pendingPause, nil
	case err != nil:
		err = fmt.Errorf("register %s: %w", w, err)
	case w.usable(o, now):
		result.After = max(o.record.renewAt(w.key.String()).Sub(now), pendingPause)
	}
	if !w.usable(o, now) {
		return result, err
	}
	subject, wrong := w.subject(o)
	if wrong != nil || !w.bindingSettled(o, subject) {
		return result, errors.Join(err, wrong)
	}
	secret, wrong := r.manifest(w.Request, o)
	if wrong != nil {
		return result, errors.Join(err, wrong)
	}
	result.Registration = health.Registration{State: health.Registered}
	result.Status = &v1alpha1.RegistrationStatus{Credential: o.record.Credential, Subject: subject, ExpirationTime: new(o.record.Expires)}
	result.Secret = secret
	return result, err
}

// Present reports what is there of the registration of an add-on, given the namespace of its member: credentials and permissions. That
// nothing is there it never says on what a cache shows.
func (r *Registrar) Present(ctx context.Context, addon, namespace string) (removal.Presence, error) {
	key := client.ObjectKey{Namespace: namespace, Name: addon}
	o, err := r.observe(ctx, r.cache, key)
	if err == nil && r.cache != r.live && len(o.ours(addon)) == 0 {
		o, err = r.observe(ctx, r.live, key)
	}
	if err != nil {
		return removal.Present, fmt.Errorf("look for the registration of add-on %s in %s: %w", addon, namespace, err)
	}
	return o.presence(addon), nil
}

// Known reports whether the cache shows anything of the registration of an add-on. What has been made a moment ago it may not show yet.
func (r *Registrar) Known(ctx context.Context, addon, namespace string) (bool, error) {
	o, err := r.observe(ctx, r.cache, client.ObjectKey{Namespace: namespace, Name: addon})
	if err != nil {
		return false, fmt.Errorf("look for the registration of add-on %s in %s: %w", addon, namespace, err)
	}
	return len(o.ours(addon)) > 0, nil
}

// presence says what is there.
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

// Revoke ends the access of an add-on's agent, given the namespace of its member, and deletes all that was made for it: first its
// permissions, and last what it was found by. It is idempotent, and says what is left, which is nothing unless somebody holds it back.
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

// clean deletes what was filed for a certificate that never came. Without a key there is nothing.
func (r *Registrar) clean(ctx context.Context, key client.ObjectKey, secret *corev1.Secret) error {
	member := membership.Member{Name: secret.Labels[membership.MemberLabel]}
	if len(secret.Data[privateKey]) == 0 || member.Name == "" {
		return nil
	}
	w := &wanted{key: key}
	return r.certificates(w).Clean(ctx, member)
}
