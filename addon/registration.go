package addon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/registration"
	"github.com/muster-sdk/muster/addon/internal/removal"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// Registration gives agents of add-ons access to the hub. The controllers then also need the permissions of package
// registration, and those that the agents get.
type Registration struct {
	// Server is the https URL at which members reach the hub, and CA the PEM-encoded bundle that verifies its
	// certificate. Empty: those of the manager's configuration, which members may not reach if the hub's program runs
	// in its cluster.
	Server string
	CA     []byte
	// Namespace is the namespace on the hub for the credentials. No member has access to it. Empty:
	// muster-registration.
	Namespace string
}

// setupRegistration creates the registrar and its cache.
func (c *shared) setupRegistration(mgr manager.Manager) error {
	o := c.Registration
	if o == nil {
		return nil
	}
	var err error
	if c.registered, err = registration.NewCache(mgr, o.Namespace); err != nil {
		return fmt.Errorf("create the cache of registrations: %w", err)
	}
	c.registrar, err = registration.New(registration.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cache: c.registered, Server: o.Server, CA: o.CA,
		Config: mgr.GetConfig(), Namespace: o.Namespace, Clock: c.Clock,
	})
	if err != nil {
		return fmt.Errorf("addon.Options.Registration: %w", err)
	}
	return nil
}

// registrations returns the sources that reconcile MemberAddons after changes of their agents' objects on the hub.
func registrations(registered cache.Cache) (sources []source.Source) {
	if registered == nil {
		return nil
	}
	for _, kind := range registration.Kinds() {
		sources = append(sources, source.Kind(registered, kind, handler.EnqueueRequestsFromMapFunc(
			func(_ context.Context, o client.Object) []reconcile.Request {
				return []reconcile.Request{{NamespacedName: registration.MemberAddonOf(o)}}
			})))
	}
	return sources
}

// register requests the access to the hub for the add-on's agent. It reports whether the manifests can be delivered:
// they wait for the credential.
func (l *memberReconciliation) register(ctx context.Context, want *v1alpha1.TemplateRegistration) (ready bool) {
	l.access.registered = true
	switch {
	case want == nil:
		l.recordAccessError(l.withdraw(ctx))
		return true
	case l.registrar == nil:
		l.result.health.Registration.State = health.Registering
		l.problem(v1alpha1.ReasonRegistering,
			"The add-on agent requests access to the hub, but registration is disabled: set addon.Options.Registration")
		return false
	}
	request := l.registration()
	request.Want, request.Lease = *want, l.observed.addon.Spec.Health.Type == v1alpha1.HealthLease
	if l.desired.hosting != nil { // the cluster of the agent
		request.InstallNamespace = l.desired.hosting.Namespace
	}
	result, err := l.registrar.Ensure(ctx, request)
	l.recordRegistration(&result, err)
	return l.access.manifest != nil
}

// withdraw revokes the access of an agent that does not request it any more.
func (l *memberReconciliation) withdraw(ctx context.Context) error {
	if l.registrar == nil {
		return nil
	}
	if known, err := l.registrar.Known(ctx, l.key.Name, l.key.Namespace); err != nil {
		return err
	} else if !known { // regardless of the status
		l.result.status.Registration = nil
		return nil
	}
	left, err := l.registrar.Revoke(ctx, l.key.Name, l.key.Namespace)
	if left == removal.Absent {
		l.result.status.Registration = nil
	}
	return err
}

// keepAccess keeps the access of an assigned agent if this reconcile did not register it, because the running agent
// needs it.
func (l *memberReconciliation) keepAccess(ctx context.Context) {
	if !l.access.registered && l.registrar != nil && l.observed.member != nil && l.assigned.revision != "" {
		l.access.registered = true
		result, err := l.registrar.Renew(ctx, l.registration())
		l.recordRegistration(&result, err)
	}
	if l.access.manifest != nil {
		l.recordAccessError(l.updateCredential(ctx))
	}
	if !l.access.registered {
		l.result.health.Registration = lastRegistration(&l.object.Status, l.now)
		if r := l.object.Status.Registration; r != nil && r.ExpirationTime != nil {
			l.requeueAfter(r.ExpirationTime.Sub(l.now))
		}
	}
}

// lastRegistration returns the registration according to the last status, for a reconcile that did not observe the
// registration. An expired credential is reported as such.
func lastRegistration(status *v1alpha1.MemberAddonStatus, now time.Time) health.Registration {
	if r := status.Registration; r != nil {
		if r.ExpirationTime != nil && !now.Before(r.ExpirationTime.Time) {
			return health.Registration{State: health.Registering, Message: "The credential of the add-on agent has expired."}
		}
		return health.Registration{State: health.Registered}
	}
	if c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionRegistrationReady); c != nil &&
		c.Status == metav1.ConditionFalse {
		return health.Registration{State: health.Registering, Message: c.Message}
	}
	return health.Registration{}
}

// registration returns the registration request for an agent, without its rules.
func (l *memberReconciliation) registration() registration.Request {
	return registration.Request{
		MemberAddon: l.object, InstallNamespace: l.result.status.InstallNamespace,
		Member: membership.Member{
			Name: l.observed.member.Name, UID: l.observed.member.UID, ClusterID: l.observed.member.Spec.ClusterID,
			Namespace: l.key.Namespace,
			Claim:     l.observed.member.Spec.Claim,
		},
	}
}

// recordRegistration records the result of a registration.
func (l *memberReconciliation) recordRegistration(result *registration.Result, err error) {
	l.result.health.Registration, l.result.status.Registration = result.Registration, result.Status
	if result.Problem != nil {
		l.result.health.Problems = append(l.result.health.Problems, *result.Problem)
	}
	l.requeueAfter(result.After)
	if result.Secret != nil {
		var broken error
		l.access.manifest, broken = l.convert(result.Secret)
		err = errors.Join(err, broken)
	}
	l.recordAccessError(err)
}

// recordAccessError records why the agent cannot get or keep its access.
func (l *memberReconciliation) recordAccessError(err error) {
	if err == nil {
		return
	}
	l.result.failed = errors.Join(l.result.failed, err)
	switch {
	case onlyConflicts(err): // the next reconcile retries
	case l.result.health.Registration.State == health.Registered: // stays registered until the credential expires
		l.result.health.Registration.Message = err.Error()
	default:
		l.result.health.Problems = append(l.result.health.Problems, health.Problem{Reason: v1alpha1.ReasonRegistering,
			Message: err.Error(), Retried: true})
	}
}

// revoke revokes the access of the add-on's agent to the hub, and reports which objects of it remain.
func (c *shared) revoke(ctx context.Context, addon, namespace string) (removal.Presence, error) {
	if c.registrar == nil {
		return removal.Absent, nil
	}
	return c.registrar.Revoke(ctx, addon, namespace)
}
