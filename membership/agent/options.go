package agent

import (
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/token"
)

// Defaults of [Options].
const (
	// DefaultNamespace is the namespace of the agent's Secrets.
	DefaultNamespace = "muster-system"
	// DefaultBootstrapSecret is the Secret with the bootstrap credential.
	DefaultBootstrapSecret = "muster-bootstrap"
	// DefaultStoreSecret is the Secret with the agent's record.
	DefaultStoreSecret = "muster-agent"
	// DefaultResourceInterval is the interval of observations of the member.
	DefaultResourceInterval = time.Minute
	// DefaultProbeInterval is the interval of probes of the member.
	DefaultProbeInterval = 10 * time.Second
	// DefaultHubWritesPerSecond is the limit of the agent's writes to the hub.
	DefaultHubWritesPerSecond = 50
	// DefaultHubTimeout is how long an agent of several hubs stays with one that does not accept its heartbeats.
	DefaultHubTimeout = 5 * time.Minute
)

// Options are the options of an agent. The zero value of each field is its documented default. Zero Options are for an
// agent that joins the cluster in which its program runs.
type Options struct {
	// Name is the requested name of the member, a DNS label. The hub decides. Default: "cluster-" and the first eight
	// characters of the cluster ID.
	Name string
	// Labels are the requested labels of the member.
	Labels map[string]string
	// ClusterID identifies the cluster. Default: the UID of the member's namespace kube-system.
	ClusterID string

	// Namespace of the agent's own Secrets, in the cluster of the manager. It must exist: an agent does not get the
	// permission to create namespaces. Default: [DefaultNamespace].
	Namespace string
	// Method requests the agent's credential: token.Method, csr.Method or identity.Method. Default: token.Method, which
	// every hub supports.
	Method registration.Method
	// Bootstrap provides the bootstrap credential. Default: the Secret [DefaultBootstrapSecret] in Namespace, with the
	// content of the Secret that the hub created for a JoinToken.
	Bootstrap BootstrapSource
	// KeepBootstrap keeps the bootstrap credential in its Secret. The agent then registers again without an
	// administrator, while the JoinToken is valid, if the hub refuses the member's credential: after a restore of the
	// hub, after a user deleted the member's namespace, or after the credential has expired. Default: the agent removes
	// the bootstrap credential when the cluster has joined, and keeps the address and the authority of the hub in the
	// Secret. If the hub refuses the member later, a user must provide the credential of another JoinToken; the hub
	// recognizes the member by its claim key. A [BootstrapFunc], and an agent with several Hubs, always keep the
	// credential.
	KeepBootstrap bool
	// Store stores the agent's record. Default: the Secret [DefaultStoreSecret] in Namespace. Several agents in one
	// program need one Store each, and so does each of Hubs.
	Store Store

	// Hubs are several hubs, in order of preference. The member belongs to one of them at a time. Each hub has its own
	// Bootstrap and Store, so those of Options must not be set, and its own Cleaners. Default: one hub, without a name.
	Hubs []HubOptions
	// HubTimeout is how long the agent stays with one of several hubs that does not accept its heartbeats, and the
	// minimum time at a hub after a change. A random time of up to half of it is added, so that not all members of a hub
	// leave together. Default: [DefaultHubTimeout].
	HubTimeout time.Duration
	// ReturnToFirst is how long the first of Hubs must respond before an agent at another hub returns to it. A random
	// time of up to half of it is added. The agent probes the first hub once a minute, with a GET of /readyz without a
	// credential. It does not return to a hub that responded when the agent left it, or that refused or released the
	// agent. Use half an hour or more: each change ends and starts everything that a hub manages. Zero: the agent does
	// not return.
	ReturnToFirst time.Duration

	// Member is the config of the member. Default: the manager's config. With another config the agent runs outside of
	// its member (hosted mode).
	Member *rest.Config
	// HubConfig is called with each config for the hub before its use, for example to set a proxy, wrap the transport or
	// limit the rate. The agent's credential is added afterwards; a credential that HubConfig adds applies only with
	// identity.Method, which issues none. It may be called concurrently.
	HubConfig func(*rest.Config)

	// HubWritesPerSecond limits the writes of the agent and its companions to the hub, together, so that a member whose
	// objects change constantly does not overload the hub. The burst is twice the limit. Reads and heartbeats have no
	// limit, and heartbeats never wait for other writes. Negative: no limit. Default: [DefaultHubWritesPerSecond].
	HubWritesPerSecond int

	// Cleaners run in this order on the member, when it leaves or was deregistered, and remove the objects of the hub.
	// The agent itself creates no objects to clean up. Their names must be unique.
	Cleaners []membership.LeaveGate
	// Collectors return properties in addition to the built-in ones. Their names must be unique.
	Collectors []PropertyCollector
	// ReportAPIs reports the kinds that the member serves, once per ResourceInterval. Placements with requiredAPIs select
	// members by this report; a member without a report is assumed to serve all kinds. The report makes a MemberCluster
	// and a Membership about 5 to 10 kB larger.
	ReportAPIs bool
	// Companions run beside the agent, with its access to the hub. Their names must be unique.
	Companions []Companion
	// ResourceInterval is the interval at which nodes, pods and properties are read. Each read lists all pods, so use a
	// longer interval for very large clusters. Default: [DefaultResourceInterval].
	ResourceInterval time.Duration
	// ProbeInterval is the interval of probes of the member's API server. Three consecutive failures make it unhealthy,
	// two successes healthy again. Default: [DefaultProbeInterval].
	ProbeInterval time.Duration

	// Version of the agent's program, reported to the hub; at most 128 characters.
	Version string
	// Clock is the source of time. It may be wrong by any amount: expirations are counted from the agent's requests.
	// Default: the system clock.
	Clock clock.Clock
	// Log is the agent's logger. Default: the manager's logger, with the name muster-agent.
	Log logr.Logger
	// OnPhase is called for each change of phase or message, so that a program can show it. For a step with Done it is
	// called after the actions, for any other step before them. With Hubs the message begins with the name of the hub,
	// and a change of the hub is reported as well. The agent's main goroutine calls it, so it must return immediately. It
	// is never called concurrently.
	OnPhase func(lifecycle.AgentStep)
}

func (o Options) withDefaults() Options {
	if o.Namespace == "" {
		o.Namespace = DefaultNamespace
	}
	if o.Method == nil {
		o.Method = token.Method{}
	}
	if o.ResourceInterval <= 0 {
		o.ResourceInterval = DefaultResourceInterval
	}
	if o.ProbeInterval <= 0 {
		o.ProbeInterval = DefaultProbeInterval
	}
	if o.HubTimeout <= 0 {
		o.HubTimeout = DefaultHubTimeout
	}
	if o.HubWritesPerSecond == 0 {
		o.HubWritesPerSecond = DefaultHubWritesPerSecond
	}
	if o.HubConfig == nil {
		o.HubConfig = func(*rest.Config) {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.OnPhase == nil {
		o.OnPhase = func(lifecycle.AgentStep) {}
	}
	return o
}

// hubWrites returns the limit of writes to the hub; nil: none.
func (o Options) hubWrites() flowcontrol.RateLimiter {
	if o.HubWritesPerSecond < 0 {
		return nil
	}
	return flowcontrol.NewTokenBucketRateLimiter(float32(o.HubWritesPerSecond), 2*o.HubWritesPerSecond)
}

// withSecrets sets the default Bootstrap and Store, which use Secrets whose names end with the suffix.
func (o Options) withSecrets(home *rest.Config, suffix string) (Options, error) {
	if o.Bootstrap != nil && o.Store != nil {
		return o, nil
	}
	core, err := corev1client.NewForConfig(home)
	if err != nil {
		return o, fmt.Errorf("create a client for %s: %w", home.Host, err)
	}
	if o.Bootstrap == nil {
		o.Bootstrap = SecretBootstrap(core.Secrets(o.Namespace), DefaultBootstrapSecret+suffix)
	}
	if o.Store == nil {
		o.Store = SecretStore(core.Secrets(o.Namespace), DefaultStoreSecret+suffix)
	}
	return o, nil
}

// validate returns an [*membership.InvalidError] for the first invalid option.
func (o Options) validate() error {
	if o.Name != "" {
		if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
			return &membership.InvalidError{Field: "Name", Problem: strings.Join(problems, "; ")}
		}
	}
	if o.ClusterID != "" && !clusterID(o.ClusterID) {
		return &membership.InvalidError{Field: "ClusterID",
			Problem: "must be up to 128 letters, digits, '-', '_', '.' or ':', and start and end with a letter or digit"}
	}
	if utf8.RuneCountInString(o.Version) > maxVersion {
		return &membership.InvalidError{Field: "Version", Problem: fmt.Sprintf("must be at most %d characters", maxVersion)}
	}
	if o.ReturnToFirst < 0 {
		return &membership.InvalidError{Field: "ReturnToFirst", Problem: "must not be negative"}
	}
	taken := map[string]bool{}
	for i, cleaner := range o.Cleaners {
		if problem := nameProblem(cleaner, taken); problem != "" {
			return &membership.InvalidError{Field: fmt.Sprintf("Cleaners[%d]", i), Problem: problem}
		}
	}
	if err := o.validateHubs(taken); err != nil {
		return err
	}
	taken = map[string]bool{}
	for _, source := range builtIn {
		taken[source] = true
	}
	for i, collector := range o.Collectors {
		if problem := nameProblem(collector, taken); problem != "" {
			return &membership.InvalidError{Field: fmt.Sprintf("Collectors[%d]", i), Problem: problem}
		}
	}
	taken = map[string]bool{}
	for i, companion := range o.Companions {
		if problem := nameProblem(companion, taken); problem != "" {
			return &membership.InvalidError{Field: fmt.Sprintf("Companions[%d]", i), Problem: problem}
		}
	}
	return registration.CheckLabels("Labels", o.Labels)
}

// validateHubs validates Hubs, given the names of other cleaners.
func (o Options) validateHubs(cleaners map[string]bool) error {
	names := map[string]bool{}
	for i, hub := range o.Hubs {
		field := fmt.Sprintf("Hubs[%d]", i)
		problems := validation.IsDNS1123Label(hub.Name)
		switch {
		case len(problems) > 0:
			return &membership.InvalidError{Field: field + ".Name", Problem: strings.Join(problems, "; ")}
		case names[hub.Name]:
			return &membership.InvalidError{Field: field + ".Name", Problem: fmt.Sprintf("is %q, the name of another", hub.Name)}
		case o.Bootstrap != nil:
			return &membership.InvalidError{Field: "Bootstrap",
				Problem: "must not be set together with Hubs, which have one each"}
		case o.Store != nil:
			return &membership.InvalidError{Field: "Store", Problem: "must not be set together with Hubs, which have one each"}
		}
		names[hub.Name] = true
		taken := maps.Clone(cleaners)
		for j, cleaner := range hub.Cleaners {
			if problem := nameProblem(cleaner, taken); problem != "" {
				return &membership.InvalidError{Field: fmt.Sprintf("%s.Cleaners[%d]", field, j), Problem: problem}
			}
		}
	}
	return nil
}

// nameProblem returns the reason why a name is invalid, and adds a valid name to taken.
func nameProblem(named interface{ Name() string }, taken map[string]bool) string {
	if named == nil {
		return "must not be nil"
	}
	switch name := named.Name(); {
	case name == "":
		return "has no name"
	case taken[name]:
		return fmt.Sprintf("has the name %q of another", name)
	default:
		taken[name] = true
		return ""
	}
}

// clusterID reports whether the API accepts id.
func clusterID(id string) bool {
	alphanumeric := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	other := func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.:", r) }
	return len(id) <= 128 && !strings.ContainsFunc(id, other) &&
		alphanumeric(rune(id[0])) && alphanumeric(rune(id[len(id)-1]))
}
