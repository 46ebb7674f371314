package addon

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/tenancy"
)

// Options are the options of the controllers. The zero value is valid for add-ons with templates.
type Options struct {
	// Agents are the add-ons in Go, with unique names that an Addon can have: DNS labels.
	Agents []Agent
	// Registration gives agents of add-ons access to the hub. Nil: no agent has access, and an add-on that requests
	// it is degraded with a message.
	Registration *Registration
	// Allow decides whether spec.configs of a MemberAddon may contain a reference; the error is the reason why not. A
	// user who can write a MemberAddon can install on the member whatever the configurations contain, with the
	// permissions of the controllers. Nil: all configurations of group addon.muster.dev, and those of other kinds in
	// the MemberAddon's namespace, are allowed. Allow is not called for Addons and their defaults.
	Allow func(m *v1alpha1.MemberAddon, config v1alpha1.ConfigReference) error
	// Tenancy restricts each Placement of an Addon to the members that the ClusterSetBindings of its namespace grant. A
	// member that is not granted gets no MemberAddon, and keeps one that the Placement has installed until the Placement
	// leaves the member. Nil: nothing is restricted.
	Tenancy *tenancy.Grants
	// CallTimeout is how long the controllers wait for a function of an Agent, or for Allow. Then its context, if it
	// has one, ends, the condition names the function, and the call is repeated after pauses that grow from this time
	// to four times as long. A function that has not returned is not called again with the same input, and an Agent
	// uses at most a quarter of the Workers, so it does not block other add-ons. Zero: 30 seconds.
	CallTimeout time.Duration
	// Workers is the number of MemberAddons that are reconciled concurrently. Zero: 16.
	Workers int
	// MaxRemoving is the number of MemberAddons of an add-on that the hub removes at the same time. Zero: 50.
	MaxRemoving int
	// Clock provides the time. Nil: the system's clock.
	Clock clock.PassiveClock
}

const (
	defaultWorkers = 16
	// HealthPeriod is the maximum time between two calls of a [HealthChecker].
	HealthPeriod       = 30 * time.Second
	defaultCallTimeout = 30 * time.Second
)

func (o Options) withDefaults() (Options, map[string]Agent, error) {
	agents := make(map[string]Agent, len(o.Agents))
	for i, a := range o.Agents {
		switch {
		case a == nil:
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: must not be nil", i)
		case a.Name() == "":
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: must have a name", i)
		case agents[a.Name()] != nil:
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: duplicate name %q", i, a.Name())
		}
		if wrong := validation.IsDNS1123Label(a.Name()); len(wrong) > 0 {
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: name %q is not a valid name of an Addon: %s", i,
				a.Name(), wrong[0])
		}
		agents[a.Name()] = a
	}
	if o.Workers < 0 {
		return o, nil, fmt.Errorf("addon.Options.Workers: must not be negative, got %d", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.CallTimeout < 0 {
		return o, nil, fmt.Errorf("addon.Options.CallTimeout: must not be negative, got %s", o.CallTimeout)
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	if o.MaxRemoving < 0 {
		return o, nil, fmt.Errorf("addon.Options.MaxRemoving: must not be negative, got %d", o.MaxRemoving)
	}
	if o.Allow == nil {
		o.Allow = ownNamespace
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o, agents, nil
}

func ownNamespace(m *v1alpha1.MemberAddon, config v1alpha1.ConfigReference) error {
	if config.Group == v1alpha1.GroupName || config.Namespace == m.Namespace {
		return nil
	}
	return fmt.Errorf(
		"a MemberAddon can reference only configurations in its own namespace %s: move the configuration there, or "+
			"reference it in the Addon",
		m.Namespace)
}
