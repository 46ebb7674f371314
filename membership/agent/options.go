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
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/token"
)

// Defaults of [Options].
const (
	// DefaultNamespace is where an agent keeps its Secrets.
	DefaultNamespace = "muster-system"
	// DefaultBootstrapSecret is the Secret that holds the bootstrap credential.
	DefaultBootstrapSecret = "muster-bootstrap"
	// DefaultStoreSecret is the Secret that an agent remembers in.
	DefaultStoreSecret = "muster-agent"
	// DefaultResourceInterval is the time between two looks at the member.
	DefaultResourceInterval = time.Minute
	// DefaultProbeInterval is the time between two probes of the member.
	DefaultProbeInterval = 10 * time.Second
	// DefaultHubPatience is how long an agent of several hubs stays with one that does not take it.
	DefaultHubPatience = 5 * time.Minute
)

// Options say how an agent is to be. The zero value of each is its documented default, and zero Options make
// an agent that joins the cluster which its program runs in.
type Options struct {
	// Name that the member would like to have, a DNS label. The hub has the say. Default: "cluster-" and the
	// first eight characters of the cluster ID.
	Name string
	// Labels that the member would like to be made with.
	Labels map[string]string
	// ClusterID tells the cluster from all others. Default: the UID of the member's namespace kube-system.
	ClusterID string

	// Namespace of the agent's own Secrets, in the cluster of the manager. It has to be there: an agent that
	// could make namespaces could do more than it needs. Default: [DefaultNamespace].
	Namespace string
	// Method gets the agent's credential: token.Method, csr.Method or identity.Method. Default: token.Method,
	// which every hub can serve.
	Method registration.Method
	// Bootstrap has what the agent needs to ask the hub. Default: the Secret [DefaultBootstrapSecret] in
	// Namespace, with the content of the Secret that the hub made for a JoinToken.
	Bootstrap BootstrapSource
	// Store keeps what the agent must remember. Default: the Secret [DefaultStoreSecret] in Namespace. Two
	// agents in one program need one each, as do two hubs of Hubs.
	Store Store

	// Hubs are several hubs, in the order in which the agent takes them at first; it is in one of them at a time. Each has its
	// own Bootstrap and Store, so that of Options must be left out, and Cleaners of its own. Default: one hub, which has no name.
	Hubs []HubOptions
	// HubPatience is how long the agent stays with one of several hubs that does not take it, and how long at least with one that it has
	// just come to; up to half as long again, by chance, so that not all members of a hub leave at once. Default: [DefaultHubPatience].
	HubPatience time.Duration
	// ReturnToFirst has an agent that is at another hub than the first of Hubs go back there when that has answered for so long, or up to half as
	// long again, by chance. It is asked once a minute, by a GET of /readyz without a credential. An agent that left it although it answered, or
	// that it refused or was done with, does not go back. Take half an hour or more: each change ends and begins all that a hub manages.
	// Zero: it stays where it is.
	ReturnToFirst time.Duration

	// Member is how to reach the member. Default: the manager's config. With another it is a hosted
	// agent, outside of its member.
	Member *rest.Config
	// HubConfig is called with each config for the hub before it is used, to set a proxy, wrap the transport
	// or limit the rate. What the agent authenticates by is put in afterwards; only with identity.Method,
	// which issues nothing, does the credential that HubConfig puts in count. It may be called concurrently.
	HubConfig func(*rest.Config)

	// Cleaners are asked in their order, on the member, when it leaves or has been forgotten. What belongs to
	// the hub goes by their hands; an agent has nothing else to clean up. Their names must differ.
	Cleaners []membership.LeaveGate
	// Collectors add properties to those that every agent collects. Their names must differ.
	Collectors []PropertyCollector
	// ReportAPIs has the agent tell which kinds the member serves, once a ResourceInterval. Placements with requiredAPIs choose by that; a member
	// that does not tell is taken to serve all. It makes a MemberCluster and a Membership some 5 to 10 kB larger.
	ReportAPIs bool
	// Companions run beside the agent, with its access to the hub. Their names must differ.
	Companions []Companion
	// ResourceInterval is the time between two looks at nodes, pods and properties. Each lists all pods, so
	// take longer for very large clusters. Default: [DefaultResourceInterval].
	ResourceInterval time.Duration
	// ProbeInterval is the time between two probes of the member's API server. Three failures in a row make
	// it unhealthy, two successes healthy again. Default: [DefaultProbeInterval].
	ProbeInterval time.Duration

	// Version of the program that the agent is part of, shown on the hub; at most 128 characters.
	Version string
	// Clock is what the agent takes the time from. It may be wrong by any amount: expiries are counted
	// from when the agent asked. Default: the real one.
	Clock clock.Clock
	// Log is what the agent logs to. Default: the manager's logger, under the name muster-agent.
	Log logr.Logger
	// OnPhase is told each change of phase or message, so that a program can show it: a step that is Done
	// when it has been carried out, any other before. With Hubs the message begins with the hub, and a change of hub is told
	// as well. It is called by the goroutine that does all the work, so it must return at once, and never
	// twice at a time.
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
	if o.HubPatience <= 0 {
		o.HubPatience = DefaultHubPatience
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

// withSecrets puts in the defaults of what is kept in Secrets, whose names get a suffix.
func (o Options) withSecrets(home *rest.Config, suffix string) (Options, error) {
	if o.Bootstrap != nil && o.Store != nil {
		return o, nil
	}
	core, err := corev1client.NewForConfig(home)
	if err != nil {
		return o, fmt.Errorf("prepare to speak to %s: %w", home.Host, err)
	}
	if o.Bootstrap == nil {
		o.Bootstrap = SecretBootstrap(core.Secrets(o.Namespace), DefaultBootstrapSecret+suffix)
	}
	if o.Store == nil {
		o.Store = SecretStore(core.Secrets(o.Namespace), DefaultStoreSecret+suffix)
	}
	return o, nil
}

// validate returns an [*membership.InvalidError] about the first option that no hub would take.
func (o Options) validate() error {
	if o.Name != "" {
		if problems := validation.IsDNS1123Label(o.Name); len(problems) > 0 {
			return &membership.InvalidError{Field: "Name", Problem: strings.Join(problems, "; ")}
		}
	}
	if o.ClusterID != "" && !clusterID(o.ClusterID) {
		return &membership.InvalidError{Field: "ClusterID", Problem: "must be up to 128 letters, digits, '-', '_', '.' or ':', and start and end with a letter or digit"}
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

// validateHubs is about Hubs, beside cleaners of these names.
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
			return &membership.InvalidError{Field: "Bootstrap", Problem: "must not be set beside Hubs, which have one each"}
		case o.Store != nil:
			return &membership.InvalidError{Field: "Store", Problem: "must not be set beside Hubs, which have one each"}
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

// nameProblem says what is wrong with the name of something that is told from others by it, and takes that name.
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

// clusterID reports whether id is one that the API takes.
func clusterID(id string) bool {
	alphanumeric := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' }
	other := func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.:", r) }
	return len(id) <= 128 && !strings.ContainsFunc(id, other) &&
		alphanumeric(rune(id[0])) && alphanumeric(rune(id[len(id)-1]))
}
