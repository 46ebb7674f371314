package fleet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
)

// Options are what a product can decide. The zero value works; each field says what it then means.
type Options struct {
	// Namespaces are those that Secrets are read in, and no others; the first is that of a kubeConfigSecretRef that names none. Nil:
	// membership.ConnectionNamespace. With others, the Role in the folder rbac has to be made there instead.
	Namespaces []string

	// Kubeconfig allows Secrets to say what is refused otherwise.
	Kubeconfig kubeconfig.Options

	// Runners run on the leader for each member. Their names differ. Nil: none.
	Runners []Runner

	// ProbeInterval is the time between two looks at a member that answers, jittered by a fifth. One that does not is looked at three times
	// as often. Zero: 30 seconds.
	ProbeInterval time.Duration

	// ProbeTimeout bounds each look. Zero: 10 seconds.
	ProbeTimeout time.Duration

	// Workers is how many Secrets are read at a time. Zero: 8.
	Workers int

	// Clock tells the time. Nil: the system's.
	Clock clock.Clock
}

const (
	defaultProbeInterval = 30 * time.Second
	defaultProbeTimeout  = 10 * time.Second
	defaultWorkers       = 8
)

func (o Options) withDefaults() (Options, error) {
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{membership.ConnectionNamespace}
	}
	if o.ProbeInterval == 0 {
		o.ProbeInterval = defaultProbeInterval
	}
	if o.ProbeTimeout == 0 {
		o.ProbeTimeout = defaultProbeTimeout
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
		problems = append(problems, fmt.Errorf("fleet.Options.%s: %s", field, fmt.Sprintf(problem, args...)))
	}
	for i, namespace := range o.Namespaces {
		if errs := validation.IsDNS1123Label(namespace); len(errs) > 0 {
			invalid(fmt.Sprintf("Namespaces[%d]", i), "%q cannot be a namespace: %s", namespace, strings.Join(errs, "; "))
		}
	}
	if o.ProbeInterval < 0 {
		invalid("ProbeInterval", "%s is in the past", o.ProbeInterval)
	}
	if o.ProbeTimeout < 0 {
		invalid("ProbeTimeout", "%s is in the past", o.ProbeTimeout)
	}
	if o.Workers < 1 {
		invalid("Workers", "%d do no work", o.Workers)
	}
	seen := map[string]bool{(*clusters)(nil).Name(): true}
	for i, runner := range o.Runners {
		field := fmt.Sprintf("Runners[%d]", i)
		switch {
		case runner == nil:
			invalid(field, "must not be nil: leave it out")
		case runner.Name() == "":
			invalid(field, "must have a name")
		case seen[runner.Name()]:
			invalid(field, "a runner named %q is there already", runner.Name())
		default:
			seen[runner.Name()] = true
		}
	}
	return errors.Join(problems...)
}
