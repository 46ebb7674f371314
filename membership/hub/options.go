package hub

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Options are what a product can decide. The zero value works; each field says what it then means.
type Options struct {
	// Acceptor decides on clusters that no administrator has decided on, whether they come to the door or the hub is to bring them an agent
	// (joinMode Push and Install). Nil: those whose JoinToken says autoAccept are let in, and all others wait for an administrator.
	Acceptor membership.Acceptor

	// AllowWithoutToken takes JoinRequests without a JoinToken too. It is for those who hand out bootstrap credentials of
	// their own: whoever may create JoinRequests then comes in past every bound that JoinTokens have (their end, their
	// uses, their cluster ID), speaks for each MemberCluster that nobody has claimed, and needs nobody's word
	// where that is accepted already. So nobody but them may have registration.BootstrapRole, which each JoinToken
	// gives as well, and what guards the door is what they let through: an admission policy or a webhook
	// on JoinRequests, which alone sees who creates one. False: a request without a token is denied.
	AllowWithoutToken bool

	// BootstrapTokens keeps JoinTokens of type BootstrapToken too, on hubs whose API server has such tokens. It needs the Role
	// in rbac/bootstrap-tokens.yaml besides the others, which is much; see package jointoken. False: they are not ready.
	BootstrapTokens bool

	// Issuers issue credentials, by the type that an agent asks for; a request for a type that is not here is
	// denied. Nil: certificates, tokens and identities, with their packages' defaults.
	Issuers map[v1alpha1.CredentialType]membership.Issuer

	// Gates hold back a leave, in their order. A name has at most 253 bytes and is neither "agent" nor "namespace". Nil:
	// nothing does but the agent's own clean-up.
	Gates []membership.LeaveGate

	// AgentRules are permissions of agents in their own namespace that come on top of membership's. They go into
	// the one ClusterRole that all agents share. Nil: none.
	AgentRules []rbacv1.PolicyRule

	// Heartbeat is how members are judged by their heartbeats. Zero: see [heartbeat.Policy].
	Heartbeat heartbeat.Policy

	// Server and CA are what agents reach this hub by: they go into the Secrets of JoinTokens. Empty: those
	// of the manager's own config.
	Server string
	CA     []byte

	// NamespacePrefix begins the names of the members' namespaces. Empty: "member-".
	NamespacePrefix string

	// RegistrationNamespace is where JoinTokens and JoinRequests are. Empty: "muster-registration". With another, the Role
	// in the folder rbac has to be made there instead: change its metadata.namespace.
	RegistrationNamespace string

	// RequestTTL is how long a JoinRequest is kept that is not accepted, with the MemberCluster that was made
	// for it. Zero: 24 hours.
	RequestTTL time.Duration

	// MaxRequests bounds how many JoinRequests there can be at a time, by a ResourceQuota, so that a stolen
	// bootstrap credential cannot fill the hub. Each has a spec of no more than about 100 KiB, and 256 KiB of annotations; but
	// as many labels, finalizers and owner references in its metadata as etcd takes (1.5 MiB unless told otherwise), which
	// only an admission policy of the hub's cluster could bound. Zero: 500.
	MaxRequests int

	// TombstoneTTL is how long the hub keeps the record that a member left on request. An agent that was away for longer
	// is not told to clean up: its JoinRequest waits for an administrator. Zero: 90 days.
	TombstoneTTL time.Duration

	// MaxTombstones bounds the number of these records. The oldest are deleted first. Zero: 5000.
	MaxTombstones int

	// Workers is how many members, and how many requests, are worked on at a time. Zero: 8.
	Workers int

	// Clock tells the time. Nil: the system's.
	Clock clock.WithTicker
}

const (
	defaultRequestTTL  = 24 * time.Hour
	defaultMaxRequests = 500
	defaultWorkers     = 8

	defaultTombstoneTTL  = 90 * 24 * time.Hour
	defaultMaxTombstones = 5000

	// reconcileTimeout bounds every round of every controller, so that a hub whose API server does not answer
	// is stuck for no longer.
	reconcileTimeout = time.Minute
)

func (o Options) withDefaults() (Options, error) {
	if o.NamespacePrefix == "" {
		o.NamespacePrefix = membership.DefaultNamespacePrefix
	}
	if o.RegistrationNamespace == "" {
		o.RegistrationNamespace = membership.RegistrationNamespace
	}
	if o.RequestTTL == 0 {
		o.RequestTTL = defaultRequestTTL
	}
	if o.MaxRequests == 0 {
		o.MaxRequests = defaultMaxRequests
	}
	if o.TombstoneTTL == 0 {
		o.TombstoneTTL = defaultTombstoneTTL
	}
	if o.MaxTombstones == 0 {
		o.MaxTombstones = defaultMaxTombstones
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, o.validate()
}

func (o Options) validate() error {
	var problems []error
	invalid := func(field, problem string, args ...any) {
		problems = append(problems, fmt.Errorf("hub.Options.%s: %s", field, fmt.Sprintf(problem, args...)))
	}
	if errs := validation.IsDNS1123Label(o.NamespacePrefix + "x"); len(errs) > 0 {
		invalid("NamespacePrefix", "%q cannot begin the name of a namespace: %s", o.NamespacePrefix, strings.Join(errs, "; "))
	}
	if errs := validation.IsDNS1123Label(o.RegistrationNamespace); len(errs) > 0 {
		invalid("RegistrationNamespace", "%q cannot be a namespace: %s", o.RegistrationNamespace, strings.Join(errs, "; "))
	}
	if strings.HasPrefix(o.RegistrationNamespace, o.NamespacePrefix) {
		invalid("RegistrationNamespace", "%q could be the namespace of a member, since those begin with %q", o.RegistrationNamespace, o.NamespacePrefix)
	}
	var policy *membership.InvalidError
	if err := o.Heartbeat.Validate(); errors.As(err, &policy) {
		invalid("Heartbeat."+policy.Field, "%s", policy.Problem)
	}
	if o.RequestTTL < time.Minute {
		invalid("RequestTTL", "%s is less than a minute, which leaves an administrator no time", o.RequestTTL)
	}
	if o.MaxRequests < 1 {
		invalid("MaxRequests", "%d lets nobody ask to join", o.MaxRequests)
	}
	if o.TombstoneTTL < time.Minute {
		invalid("TombstoneTTL", "must be at least a minute, got %s", o.TombstoneTTL)
	}
	if o.MaxTombstones < 1 {
		invalid("MaxTombstones", "must be at least 1, got %d", o.MaxTombstones)
	}
	if o.Workers < 1 {
		invalid("Workers", "%d do no work", o.Workers)
	}
	seen := map[string]bool{}
	for i, gate := range o.Gates {
		field := fmt.Sprintf("Gates[%d]", i)
		if gate == nil {
			invalid(field, "must not be nil: leave it out")
			continue
		}
		if err := lifecycle.CheckGateName(gate.Name()); err != nil {
			invalid(field, "%s", err)
		}
		if seen[gate.Name()] {
			invalid(field, "a gate named %q is there already", gate.Name())
		}
		seen[gate.Name()] = true
	}
	for kind, issuer := range o.Issuers {
		if issuer == nil {
			invalid(fmt.Sprintf("Issuers[%s]", kind), "must not be nil: leave it out")
		}
	}
	return errors.Join(problems...)
}

// log is the logger of a controller.
func log(mgr manager.Manager, name string) logr.Logger { return mgr.GetLogger().WithName(name) }
