package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Options are the options of a hub. The zero value of each field is its documented default.
type Options struct {
	// Acceptor decides on clusters without a decision of an administrator, for JoinRequests and for members whose agent
	// the hub starts (joinMode Push and Install). Nil: clusters whose JoinToken has autoAccept are accepted, and all
	// others wait for an administrator.
	Acceptor membership.Acceptor

	// AllowWithoutToken admits JoinRequests without a JoinToken. It is for products that issue bootstrap credentials
	// themselves. Every user that may create JoinRequests then bypasses all limits of JoinTokens (expiration, uses,
	// cluster ID), can claim every MemberCluster without a claim, and needs no further decision if the MemberCluster is
	// accepted already. Therefore no other user may have registration.BootstrapRole, which each JoinToken grants as well,
	// and an admission policy or a webhook on JoinRequests must restrict them: only these know the creator of a request.
	// False: a request without a token is denied.
	AllowWithoutToken bool

	// BootstrapTokens supports JoinTokens of type BootstrapToken, on hubs whose API server has such tokens. It needs the
	// Role in rbac/bootstrap-tokens.yaml in addition, which grants broad permissions; see package jointoken. False: such
	// JoinTokens are not ready.
	BootstrapTokens bool

	// ProtectedLabels returns the keys of the labels that determine which workloads and configuration a cluster receives,
	// such as the labels in selectors of ClusterSets (tenancy.ProtectedLabels). A cluster may request such a label only
	// if its JoinToken lists it in spec.allowedLabels. The hub calls the function for each JoinRequest for a new member,
	// concurrently; after an error, it retries the request. Nil: no label is protected.
	ProtectedLabels func(context.Context) ([]string, error)

	// Issuers issue credentials, by the requested type; a request for another type is denied. Nil: issuers of
	// certificates, tokens and identities, with the defaults of their packages.
	Issuers map[v1alpha1.CredentialType]membership.Issuer

	// Gates delay a leave, in this order. A name has at most 253 bytes and must not be "agent" or "namespace". Nil: only
	// the clean-up by the agent delays it.
	Gates []membership.LeaveGate

	// AgentRules are permissions of agents in their member's namespace in addition to membership's. They become part of
	// the one ClusterRole that all agents share. Nil: none.
	AgentRules []rbacv1.PolicyRule

	// Heartbeat is the policy for heartbeats. Zero: see [heartbeat.Policy].
	Heartbeat heartbeat.Policy

	// Server and CA are the address at which agents connect to this hub, and its certificate authority, for the Secrets
	// of JoinTokens. Empty: those of the manager's config.
	Server string
	CA     []byte

	// NamespacePrefix is the prefix of the names of the members' namespaces. Empty: "member-".
	NamespacePrefix string

	// RegistrationNamespace is the namespace of JoinTokens and JoinRequests. Empty: "muster-registration". For another
	// one, change the metadata.namespace of the Role in the folder rbac.
	RegistrationNamespace string

	// RequestTTL is how long a JoinRequest that is not accepted is kept, together with the MemberCluster that was created
	// for it. Zero: 24 hours.
	RequestTTL time.Duration

	// MaxRequests limits how many JoinRequests can exist, with a ResourceQuota, so that a stolen bootstrap credential
	// cannot fill the hub. Each has a spec of at most about 100 KiB and 256 KiB of annotations, but as many labels,
	// finalizers and owner references as etcd accepts (1.5 MiB by default), which only an admission policy of the hub's
	// cluster could limit. Zero: 500.
	MaxRequests int

	// MaxRequestsPerToken limits how many JoinRequests of one JoinToken can exist that wait for a decision or are denied,
	// so that a stolen bootstrap credential cannot use up MaxRequests. The hub deletes the newest, with an Event on the
	// JoinToken. All requests without a valid proof of a token share one such limit. Zero: a fifth of MaxRequests.
	MaxRequestsPerToken int

	// NamespaceQuota limits the number of objects in the namespace of each member, such as
	// {"count/works.work.muster.dev": 500, "count/secrets": 20}. The hub creates the ResourceQuota [NamespaceQuotaName]
	// in each of these namespaces, and corrects it when another client changes or deletes it. The API server then rejects
	// further objects, of users as well as of controllers. Only names with the prefix count/ are allowed, and
	// Memberships, Leases, RoleBindings and ResourceQuotas cannot be limited, because the hub creates one of each.
	// kube-controller-manager counts a kind only about 30 seconds after its definition was installed, and the API server
	// rejects the objects until then. Empty: the hub creates no ResourceQuota and keeps those that exist.
	NamespaceQuota corev1.ResourceList

	// TombstoneTTL is how long the hub keeps the record that a member left on request. An agent that was disconnected for
	// longer does not clean up: its JoinRequest waits for an administrator. Zero: 90 days.
	TombstoneTTL time.Duration

	// MaxTombstones limits the number of these records. The oldest are deleted first. Zero: 5000.
	MaxTombstones int

	// Workers is the number of members, and of requests, that are reconciled concurrently. Zero: 8.
	Workers int

	// Clock is the source of time. Nil: the system clock.
	Clock clock.WithTicker
}

const (
	defaultRequestTTL  = 24 * time.Hour
	defaultMaxRequests = 500
	defaultWorkers     = 8

	defaultTombstoneTTL  = 90 * 24 * time.Hour
	defaultMaxTombstones = 5000

	// reconcileTimeout is the timeout of every reconcile of every controller, so that a hub whose API server does not
	// respond is not blocked for longer.
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
	if o.MaxRequestsPerToken == 0 {
		o.MaxRequestsPerToken = max(1, o.MaxRequests/5)
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
		invalid("RegistrationNamespace", "%q could be the namespace of a member, since those begin with %q",
			o.RegistrationNamespace, o.NamespacePrefix)
	}
	var policy *membership.InvalidError
	if err := o.Heartbeat.Validate(); errors.As(err, &policy) {
		invalid("Heartbeat."+policy.Field, "%s", policy.Problem)
	}
	if o.RequestTTL < time.Minute {
		invalid("RequestTTL", "must be at least a minute, got %s", o.RequestTTL)
	}
	if o.MaxRequests < 1 {
		invalid("MaxRequests", "must be at least 1, got %d", o.MaxRequests)
	}
	if o.MaxRequestsPerToken < 1 {
		invalid("MaxRequestsPerToken", "must be at least 1, got %d", o.MaxRequestsPerToken)
	}
	if o.TombstoneTTL < time.Minute {
		invalid("TombstoneTTL", "must be at least a minute, got %s", o.TombstoneTTL)
	}
	if o.MaxTombstones < 1 {
		invalid("MaxTombstones", "must be at least 1, got %d", o.MaxTombstones)
	}
	if o.Workers < 1 {
		invalid("Workers", "must be at least 1, got %d", o.Workers)
	}
	for name, problem := range checkNamespaceQuota(o.NamespaceQuota) {
		invalid(fmt.Sprintf("NamespaceQuota[%s]", name), "%s", problem)
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
			invalid(field, "another gate has the name %q", gate.Name())
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

// log returns the logger of a controller.
func log(mgr manager.Manager, name string) logr.Logger { return mgr.GetLogger().WithName(name) }
