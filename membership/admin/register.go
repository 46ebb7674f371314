package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// RegisterOptions say how [Register] gives a cluster its bootstrap credential. The zero value does so and does not wait.
type RegisterOptions struct {
	// Namespace of the agent. It is made if it is not there. Empty: muster-system.
	Namespace string
	// Hub tells the hub from others of the same member, a DNS label: the name that the agent has for it in agent.Options.Hubs. The Secrets are muster-bootstrap-Hub
	// and muster-agent-Hub then. An agent of several hubs is in one at a time; to be in several at once takes as many agents, each with a name of its
	// own for its hub. Empty: the hub has no name, as where it is the only one. Package work/agent calls that one "hub", which no other should be called.
	Hub string
	// Replace replaces the bootstrap credential of another hub of the same name. What has joined that hub stays in it until it is out there.
	Replace bool
	// Unchecked does not look whether the hub answers and takes the credential. It is for a hub that the member reaches, and this
	// program does not.
	Unchecked bool

	// Prepare is called with a client of the member, before that is given its credential, to install there what its agent needs, such as
	// InstallOnMember of package work/crds. It is called each time. Nil: nothing is done.
	Prepare func(ctx context.Context, member client.Client) error

	// Wait is how long to wait until the agent has joined, as it says itself on the member. Zero: not at all.
	Wait time.Duration
	// Progress is told each step.
	Progress func(Step)
}

// Register gives a cluster what its agent needs to join a hub: the Secret muster-bootstrap, or muster-bootstrap-Hub. It does not install the agent, which is
// part of a program of yours.
//
// It looks first whether anything stands in the way, and if so changes nothing and returns a [*PreflightError], which may wrap
// [ErrExpired], when the hub does not take the credential, [ErrClusterTaken] for a cluster that has the credential of
// another hub, or whose agent a hub runs, or an [*UnreachableError]. A credential of the same hub is replaced, as for an agent that shall ask again.
//
// With Wait it waits until the agent is in that hub, by what the agent keeps on its Secret. It ends before its time in [ErrClusterTaken], when the cluster's ID belongs to
// another member, or to one that another agent speaks for; [ErrNameTaken], when the name that the agent asks for belongs to another cluster;
// [ErrExpired], when the hub does not take the credential any more, or the JoinToken is used up; or [ErrDenied]. Only what the agent was told with this very credential
// counts. If it was told that before Register began, somebody may have changed the hub's mind since: then Register gives the agent half a minute to ask again. A
// [*TimeoutError] says what it has waited for. An agent that is in the hub already has joined, whatever it is given.
//
// It needs on the member get and create on namespaces; get, create and update on secrets in the agent's namespace; and get on clusterrolebindings.
func Register(ctx context.Context, config *rest.Config, bootstrap *registration.Bootstrap, o RegisterOptions) error {
	if bootstrap == nil {
		return &membership.InvalidError{Field: "bootstrap", Problem: "is nil: it must be that of a join token"}
	}
	if err := checkHub(o.Hub); err != nil {
		return err
	}
	o.Namespace = orDefault(o.Namespace, agent.DefaultNamespace)
	member, err := connect(Member, config)
	if err != nil {
		return err
	}
	r := &register{RegisterOptions: o, member: member, bootstrap: bootstrap, names: secretsFor(o.Hub), tell: o.Progress}
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
	names     agentSecrets
	data      []byte         // of bootstrap
	secret    *corev1.Secret // as it is; nil: there is none
	tell      teller
	waited    outlook
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
		{group: rbacv1.GroupName, resource: "clusterrolebindings", verbs: "get"},
	}
	p.may(ctx, r.member, rights)
	if p.err() != nil {
		return p.err()
	}
	var err error
	if r.secret, err = found(ctx, r.member, client.ObjectKey{Namespace: r.Namespace, Name: r.names.bootstrap}, &corev1.Secret{}); err != nil {
		return err
	}
	binding, err := found(ctx, r.member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return err
	}
	if binding != nil && (origin{}).of(binding) {
		p.add(Finding{Check: "the member", Problem: fmt.Sprintf("a hub runs its agent (joinMode Push), as member %s", binding.Labels[membership.MemberLabel]), Err: ErrClusterTaken,
			Fix: "unjoin it there first; if that hub is gone, clean the member"})
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
	name := r.Namespace + "/" + r.names.bootstrap
	if r.secret == nil {
		if err := r.tell.makeNamespace(ctx, r.member, r.Namespace); err != nil {
			return "", err
		}
		r.secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.names.bootstrap},
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
