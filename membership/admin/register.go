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
	"github.com/muster-sdk/muster/membership/internal/agentstate"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// RegisterOptions are the options of [Register]. With the zero value, Register does not wait.
type RegisterOptions struct {
	// Namespace of the agent. Register creates it. Default: muster-system.
	Namespace string
	// Hub is the name of the hub in agent.Options.Hubs, a DNS label. The Secrets are then muster-bootstrap-Hub and
	// muster-agent-Hub. An agent of several hubs belongs to one of them at a time. To belong to several hubs, run one
	// agent for each, each with a unique name for its hub. Default: no name, for a single hub. Do not use the name "hub",
	// which package work/agent uses for the hub without a name.
	Hub string
	// Replace replaces the bootstrap credential of another hub with the same name. An agent belongs to its hub until it
	// has left.
	Replace bool
	// Unchecked skips the check of the hub and the credential, for a hub that only the member can reach.
	Unchecked bool

	// Hosting is the config of the cluster where the agent runs, if that is outside of its member: the Secrets of the
	// agent are there, and Deploy is called with a client of that cluster. Default: the member.
	Hosting *rest.Config
	// HubConfig is called with the config of the hub before the check of the credential, for example to set a proxy. It is
	// the same as HubConfig of the agent. Optional.
	HubConfig func(*rest.Config)

	// Prepare is called with a client of the member before the credential is stored, to install the definitions that the
	// agent needs, for example InstallOnMember of package work/crds. It is called by every Register. Optional.
	Prepare func(ctx context.Context, member client.Client) error
	// Deploy is called with a client of the member, or of Hosting, after the credential is stored, to deploy the agent,
	// for example with the manifests of package deploy. It is called by every Register and reports its own progress.
	// Optional.
	Deploy func(ctx context.Context, member client.Client) error
	// DryRun runs the checks and changes nothing: Register calls neither Prepare nor Deploy, and does not wait.
	DryRun bool

	// Wait is how long to wait until the agent reports on the member that it has joined. Zero: Register does not wait.
	Wait time.Duration
	// Progress is called with each step.
	Progress func(Step)
}

// Register stores the credential that an agent needs to join a hub on a cluster: the Secret muster-bootstrap, or
// muster-bootstrap-Hub. It installs the agent, which is part of the product, only if Deploy does.
//
// Register first runs all checks. If one fails, it changes nothing and returns a [*PreflightError], which may wrap
// [ErrExpired] if the hub rejects the credential, [ErrClusterTaken] if the cluster has the credential of another hub or
// a hub runs its agent, or an [*UnreachableError]. A credential of the same hub is replaced.
//
// With Wait, Register waits until the agent has joined, according to the agent status on the member. It returns early
// with [ErrClusterTaken] if the cluster's ID belongs to another member or to one with another agent; [ErrNameTaken] if
// the requested name belongs to another cluster; [ErrExpired] if the hub rejects the credential or the JoinToken is
// used up; or [ErrDenied]. It uses only results of this credential. A result that is older than the call may be
// outdated: Register then waits half a minute for the agent to retry. A [*TimeoutError] contains the pending reason.
// An agent that is already a member of the hub has joined with any credential.
//
// Register requires on the member get and create on namespaces; get, create and update on secrets in the agent's
// namespace; and get on clusterrolebindings.
func Register(ctx context.Context, config *rest.Config, bootstrap *registration.Bootstrap, o RegisterOptions) error {
	if bootstrap == nil {
		return &membership.InvalidError{Field: "bootstrap", Problem: "must not be nil: set the bootstrap credential " +
			"of a join token"}
	}
	if err := checkHub(o.Hub); err != nil {
		return err
	}
	o.Namespace = orDefault(o.Namespace, agent.DefaultNamespace)
	member, err := connect(Member, config)
	if err != nil {
		return err
	}
	home := member
	if o.Hosting != nil {
		if home, err = connect(Hosting, o.Hosting); err != nil {
			return err
		}
	}
	r := &register{
		RegisterOptions: o, member: member, home: home, bootstrap: bootstrap, names: secretsFor(o.Hub), progress: o.Progress,
	}
	if r.data, err = bootstrap.Marshal(); err != nil {
		return err
	}
	if err := r.progress.do("run the preflight checks",
		func() (string, error) { return "", r.preflight(ctx) }); err != nil {
		return err
	}
	if o.DryRun {
		return nil
	}
	if err := r.progress.prepare(ctx, member, o.Prepare); err != nil {
		return err
	}
	if err := r.progress.do("store the join token on the member",
		func() (string, error) { return r.write(ctx) }); err != nil {
		return err
	}
	if o.Deploy != nil {
		if err := o.Deploy(ctx, home); err != nil {
			return home.explain("deploy the agent", err)
		}
	}
	if o.Wait <= 0 {
		return nil
	}
	return r.await(ctx)
}

// register is one call of Register.
type register struct {
	RegisterOptions
	member    *cluster
	home      *cluster // where the agent and its Secrets are
	bootstrap *registration.Bootstrap
	names     agentSecrets
	data      []byte         // of the bootstrap credential
	secret    *corev1.Secret // the current Secret; nil: none
	progress  reporter
	waited    joinProgress
}

func (r *register) preflight(ctx context.Context) error {
	var p preflight
	id := p.reach(ctx, r.member)
	if r.home != r.member && p.reach(ctx, r.home) == "" {
		id = ""
	}
	if !r.Unchecked {
		r.checkHub(ctx, &p)
	}
	if id == "" {
		return p.err()
	}
	onHome := []right{
		{resource: "namespaces", verbs: "get create"},
		{resource: "secrets", namespace: r.Namespace, verbs: "get create update"},
	}
	onMember := []right{{group: rbacv1.GroupName, resource: "clusterrolebindings", verbs: "get"}}
	if r.home == r.member {
		onHome, onMember = append(onHome, onMember...), nil
	}
	p.may(ctx, r.home, onHome)
	p.may(ctx, r.member, onMember)
	if p.err() != nil {
		return p.err()
	}
	var err error
	if r.secret, err = found(ctx, r.home, client.ObjectKey{Namespace: r.Namespace, Name: r.names.bootstrap},
		&corev1.Secret{}); err != nil {
		return err
	}
	binding, err := found(ctx, r.member, client.ObjectKey{Name: accessName}, &rbacv1.ClusterRoleBinding{})
	if err != nil {
		return err
	}
	if binding != nil && (origin{}).of(binding) {
		p.add(Finding{Check: "the member",
			Problem: fmt.Sprintf("a hub runs the agent of member %s (joinMode Push)", binding.Labels[membership.MemberLabel]),
			Err:     ErrClusterTaken,
			Fix:     "unjoin the member there first; if that hub does not exist any more, clean the member"})
	}
	if r.secret != nil && !r.Replace {
		there, err := registration.ParseBootstrap(r.secret.Data[registration.BootstrapKey])
		if err != nil {
			there, err = agentstate.ParseAddress(r.secret.Data[agentstate.AddressKey])
		}
		if err == nil && there.Server != r.bootstrap.Server {
			p.add(Finding{Check: "the member",
				Problem: fmt.Sprintf("the member has the join token of another hub, %s", there.Server), Err: ErrClusterTaken,
				Fix: "unjoin the member there first, or replace the token if that hub does not exist any more"})
		}
	}
	return p.err()
}

// checkHub reads a request that does not exist, with the bootstrap credential: the response is NotFound if the
// credential is valid.
func (r *register) checkHub(ctx context.Context, p *preflight) {
	config := r.bootstrap.RESTConfig()
	if r.HubConfig != nil {
		r.HubConfig(config)
	}
	hub, err := connect(Hub, config)
	if err == nil {
		_, err = found(ctx, hub, client.ObjectKey{Namespace: r.bootstrap.Namespace, Name: "preflight"},
			&v1alpha1.JoinRequest{})
	}
	const check = "the join token"
	var unreachable *UnreachableError
	switch {
	case err == nil:
	case errors.As(err, &unreachable):
		p.add(Finding{Check: check, Problem: unreachable.Error(), Err: unreachable,
			Fix: "make sure that the member reaches the hub's address; if only this machine does not, skip the check " +
				"with Unchecked"})
	case apierrors.IsUnauthorized(err), apierrors.IsForbidden(err):
		p.add(Finding{Check: check, Problem: "the hub rejects the token: it has expired, or was deleted", Err: ErrExpired,
			Fix: "create another token on the hub"})
	default:
		p.add(Finding{Check: check, Problem: err.Error(), Err: err, Fix: "check the API server of the hub"})
	}
}

func (r *register) write(ctx context.Context) (detail string, err error) {
	name := r.Namespace + "/" + r.names.bootstrap
	if r.secret == nil {
		if err := r.progress.makeNamespace(ctx, r.home, r.Namespace); err != nil {
			return "", err
		}
		r.secret = &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.names.bootstrap},
			Data:       map[string][]byte{registration.BootstrapKey: r.data},
		}
		return "Secret " + name, r.home.explain("create Secret "+name, r.home.Create(ctx, r.secret))
	}
	if bytes.Equal(r.secret.Data[registration.BootstrapKey], r.data) {
		return "existed already", nil
	}
	r.secret.Data = map[string][]byte{registration.BootstrapKey: r.data}
	return "Secret " + name + " was replaced", r.home.explain("write Secret "+name, r.home.Update(ctx, r.secret))
}
