package addon

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Options are what a product can decide. The zero value works, for add-ons of templates.
type Options struct {
	// Agents are the add-ons in Go, each with a name of its own that an Addon can have: a DNS label.
	Agents []Agent
	// Registration gives agents of add-ons access to the hub. Nil: no agent has access, and an add-on that requests
	// it is degraded with a message.
	Registration *Registration
	// Allow decides what the spec.configs of a MemberAddon may name; an error says why not. A user who may write a
	// MemberAddon can install with it on the member whatever the configurations contain, with the permissions of the
	// controllers. Nil: all of group addon.muster.dev, and of other kinds what is in
	// the MemberAddon's namespace. Addons and their defaults are not asked about.
	Allow func(m *v1alpha1.MemberAddon, config v1alpha1.ConfigReference) error
	// CallTimeout is how long is waited for a function of an Agent, or for Allow. Its context, if it has one, ends
	// then; the condition says which function took too long, and it is tried again, with pauses that grow from this
	// time to four times as long. One that has not returned is not called again about the same before it does, and an
	// Agent has at most a quarter of the Workers, so it blocks no other add-on. Zero: 30 seconds.
	CallTimeout time.Duration
	// Workers is how many MemberAddons are dealt with at the same time. Zero: 16.
	Workers int
	// MaxRemoving is how many MemberAddons of an add-on may be on their way out at a time, where the hub takes them away. Zero: 50.
	MaxRemoving int
	// Clock tells the time. Nil: the system's.
	Clock clock.PassiveClock
}

const (
	defaultWorkers = 16
	// HealthPeriod is how often a [HealthChecker] is asked at the least.
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
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: has no name", i)
		case agents[a.Name()] != nil:
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: there is another one with the name %q", i, a.Name())
		}
		if wrong := validation.IsDNS1123Label(a.Name()); len(wrong) > 0 {
			return o, nil, fmt.Errorf("addon.Options.Agents[%d]: no Addon can have the name %q: %s", i, a.Name(), wrong[0])
		}
		agents[a.Name()] = a
	}
	if o.Workers < 0 {
		return o, nil, fmt.Errorf("addon.Options.Workers: must not be negative, and is %d", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.CallTimeout < 0 {
		return o, nil, fmt.Errorf("addon.Options.CallTimeout: must not be negative, and is %s", o.CallTimeout)
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaultCallTimeout
	}
	if o.MaxRemoving < 0 {
		return o, nil, fmt.Errorf("addon.Options.MaxRemoving: must not be negative, and is %d", o.MaxRemoving)
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
	return fmt.Errorf("a MemberAddon may name what is in its own namespace, %s: move the configuration there, or name it in the Addon", m.Namespace)
}
