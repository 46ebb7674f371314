package admin

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// RegisterOptions say how [Register] gives a cluster its bootstrap credential. The zero value does so and does not wait.
type RegisterOptions struct {
	// Namespace of the agent. It is made if it is not there. Empty: muster-system.
	Namespace string
	// Replace replaces the bootstrap credential of another hub. What has joined that hub stays in it until it is out there.
	Replace bool
	// Unchecked does not look whether the hub answers and takes the credential. It is for a hub that the member reaches, and this
	// program does not.
	Unchecked bool

	// Prepare is called with a client of the member, before that is given its credential, to install there what its agent needs, such as
	// InstallOnMember of package work/crds. It is called each time. Nil: nothing is done.
	Prepare func(ctx context.Context, member client.Client) error

	// Wait is how long to wait until the agent has joined, as its Events on the member tell. Zero: not at all.
	Wait time.Duration
	// Progress is told each step.
	Progress func(Step)
}

// Register gives a cluster what its agent needs to join a hub: the Secret muster-bootstrap. It does not install the agent, which is
// part of a program of yours.
//
// It looks first whether anything stands in the way, and if so changes nothing and returns a [*PreflightError], which may wrap
// [ErrExpired], when the hub does not take the credential, [ErrClusterTaken] for a cluster that has the credential of
// another hub, or an [*UnreachableError]. A credential of the same hub is replaced, as for an agent that shall ask again.
//
// With Wait, an agent that the hub does not let in is [ErrDenied].
//
// It needs on the member get and create on namespaces; get, create and update on secrets in the agent's namespace; get on clusterrolebindings; and, with Wait, list on
// events of group events.k8s.io.
func Register(ctx context.Context, config *rest.Config, bootstrap *registration.Bootstrap, o RegisterOptions) error {
	if bootstrap == nil {
		return &membership.InvalidError{Field: "bootstrap", Problem: "is nil: it must be that of a join token"}
	}
	o.Namespace = orDefault(o.Namespace, agent.DefaultNamespace)
	member, err := connect(Member, config)
	if err != nil {
		return err
	}
	r := &register{RegisterOptions: o, member: member, bootstrap: bootstrap, tell: o.Progress}
	if r.data, err = bootstrap.Marshal(); err != nil {
		return err
	}
	if err := r.tell.do("look whether anything stands in the way", func() (string, error) { return "", r.preflight(ctx) }); err != nil {
		return err
	}
	if err := r.tell.prepare(ctx, member, o.Prepare); err != nil {
		return err
	}
	if err := r.tell.do("give the member its join token", func() (string, error) { return r.write(ctx) }); err != nil {
		return err
	}
	if o.Wait <= 0 {
		return nil
	}
	return r.await(ctx)
}

// register is one Register under way.
type register struct {
	RegisterOptions
	member    *cluster
	bootstrap *registration.Bootstrap
	data      []byte         // of bootstrap
	secret    *corev1.Secret // as it is; nil: there is none
	tell      teller
}

func (r *register) preflight(ctx context.Context) error {
	var p preflight
	id := p.reach(ctx, r.member)
	if !r.Unchecked {
		r.checkHub(ctx, &p)
	}
	if id == "" {
		return p.err()
	}
	rights := []right{
		{resource: "namespaces", verbs: "get create"},
		{resource: "secrets", namespace: r.Namespace, verbs: "get create update"},
	}
	if r.Wait > 0 {
		rights = append(rights, right{group: eventsv1.GroupName, resource: "events", namespace: r.Namespace, verbs: "list"})
	}
	p.may(ctx, r.member, rights)
	if p.err() != nil {
		return p.err()
	}
	var err error
	if r.secret, err = found(ctx, r.member, client.ObjectKey{Namespace: r.Namespace, Name: agent.DefaultBootstrapSecret}, &corev1.Secret{}); err != nil {
		return err
	}
	if r.secret != nil && !r.Replace {
		there, err := registration.ParseBootstrap(r.secret.Data[registration.BootstrapKey])
		if err == nil && there.Server != r.bootstrap.Server {
			p.add(Finding{Check: "the member", Problem: fmt.Sprintf("it has the join token of another hub, %s", there.Server), Err: ErrClusterTaken,
				Fix: "unjoin it there first, or replace the token if that hub is gone"})
		}
	}
	return p.err()
}

// checkHub asks the hub, with the bootstrap credential, for a request that nobody has made: one that may ask gets the answer that
// there is none.
func (r *register) checkHub(ctx context.Context, p *preflight) {
	hub, err := connect(Hub, r.bootstrap.RESTConfig())
	if err == nil {
		_, err = found(ctx, hub, client.ObjectKey{Namespace: r.bootstrap.Namespace, Name: "preflight"}, &v1alpha1.JoinRequest{})
	}
	const check = "the join token"
	var unreachable *UnreachableError
	switch {
	case err == nil:
	case errors.As(err, &unreachable):
		p.add(Finding{Check: check, Problem: unreachable.Error(), Err: unreachable,
			Fix: "make sure that the hub's address is one that the member reaches; if this machine alone does not, go on unchecked"})
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		p.add(Finding{Check: check, Problem: "the hub does not take it: it has ended, or was deleted", Err: ErrExpired, Fix: "create another token on the hub"})
	default:
		p.add(Finding{Check: check, Problem: err.Error(), Err: err, Fix: "look at the API server of the hub"})
	}
}

func (r *register) write(ctx context.Context) (detail string, err error) {
	name := r.Namespace + "/" + agent.DefaultBootstrapSecret
	if r.secret == nil {
		if err := r.tell.makeNamespace(ctx, r.member, r.Namespace); err != nil {
			return "", err
		}
		r.secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: agent.DefaultBootstrapSecret},
			Data:       map[string][]byte{registration.BootstrapKey: r.data},
		}
		return "Secret " + name, r.member.explain("create Secret "+name, r.member.Create(ctx, r.secret))
	}
	if bytes.Equal(r.secret.Data[registration.BootstrapKey], r.data) {
		return "it had that already", nil
	}
	r.secret.Data = map[string][]byte{registration.BootstrapKey: r.data}
	return "Secret " + name + " was replaced", r.member.explain("write Secret "+name, r.member.Update(ctx, r.secret))
}

// await waits until the agent tells that it has joined. It is the member that is asked, since whoever registers a cluster need have
// no access to the hub.
func (r *register) await(ctx context.Context) error {
	return r.tell.await(ctx, "wait until the agent has joined", r.Wait, func(ctx context.Context) (seen, error) {
		record, err := found(ctx, r.member, client.ObjectKey{Namespace: r.Namespace, Name: agent.DefaultStoreSecret}, &corev1.Secret{})
		if err != nil {
			return seen{}, err
		}
		if record == nil {
			return seen{detail: fmt.Sprintf("no agent has begun: is one running on the member, in namespace %s?", r.Namespace)}, nil
		}
		var events eventsv1.EventList
		if err := r.member.List(ctx, &events, client.InNamespace(r.Namespace)); err != nil {
			return seen{}, r.member.explain("list the agent's Events", err)
		}
		return told(events.Items)
	})
}

// told is what the last Event about a phase of the agent says, or a later one about what it waits for.
func told(events []eventsv1.Event) (seen, error) {
	var phase, waits *eventsv1.Event
	for i := range events {
		event := &events[i]
		switch {
		case event.Regarding.Name != agent.DefaultStoreSecret:
		case isPhase(event.Reason):
			phase = later(phase, event)
		case event.Action == agent.ActionRegister:
			waits = later(waits, event)
		}
	}
	switch {
	case waits != nil && later(phase, waits) == waits:
		return seen{detail: waits.Note}, nil
	case phase == nil:
		return seen{detail: "the agent is about to ask the hub"}, nil
	case phase.Reason == string(lifecycle.Joined):
		return seen{done: true, detail: cmp.Or(phase.Note, "it has joined")}, nil
	case phase.Reason == string(lifecycle.Rejected):
		return seen{}, fmt.Errorf("the hub does not let the agent in: %s: %w", phase.Note, ErrDenied)
	default:
		return seen{detail: fmt.Sprintf("%s: %s", phase.Reason, phase.Note)}, nil
	}
}

// later is the one of two Events that was seen last.
func later(a, b *eventsv1.Event) *eventsv1.Event {
	if a != nil && eventTime(*b).Before(eventTime(*a)) {
		return a
	}
	return b
}

func isPhase(reason string) bool {
	switch lifecycle.AgentPhase(reason) {
	case lifecycle.Joined, lifecycle.Leaving, lifecycle.Left, lifecycle.Rejected:
		return true
	default:
		return false
	}
}

// eventTime is when an event was seen last.
func eventTime(event eventsv1.Event) time.Time {
	if event.Series != nil {
		return event.Series.LastObservedTime.Time
	}
	return event.EventTime.Time
}
