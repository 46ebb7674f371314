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

// Options are the options of a Fleet. The zero value of each field is its documented default.
type Options struct {
	// Namespaces are the namespaces in which Secrets are read. The first is the default of kubeConfigSecretRef. Default:
	// membership.ConnectionNamespace. For other namespaces, create the Role of the folder rbac there.
	Namespaces []string

	// Kubeconfig permits contents of Secrets that are rejected by default.
	Kubeconfig kubeconfig.Options

	// Runners run on the leader for each member. Their names must be unique. Default: none.
	Runners []Runner

	// ProbeInterval is the interval of probes of a member that responds, with a jitter of 20 %. Members that do not
	// respond are probed three times as often. Default: 30 seconds.
	ProbeInterval time.Duration

	// ProbeTimeout is the timeout of each probe. Default: 10 seconds.
	ProbeTimeout time.Duration

	// MaxResponseBytes limits the responses of a member that the hub reads concurrently, except watches, whose events
	// client-go limits to 16 MiB each. A request that exceeds the limit returns a [*ResponseTooLargeError]. Default: 64
	// MiB.
	MaxResponseBytes int64

	// ResponseTimeout is the timeout of each response of a member including its body, except watches. Default: 2 minutes.
	ResponseTimeout time.Duration

	// Workers is the number of Secrets that are read concurrently. Default: 8.
	Workers int

	// Clock is the source of time. Default: the system clock.
	Clock clock.Clock
}

const (
	defaultProbeInterval = 30 * time.Second
	defaultProbeTimeout  = 10 * time.Second
	defaultWorkers       = 8

	defaultMaxResponseBytes = 64 << 20
	defaultResponseTimeout  = 2 * time.Minute
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
	if o.MaxResponseBytes == 0 {
		o.MaxResponseBytes = defaultMaxResponseBytes
	}
	if o.ResponseTimeout == 0 {
		o.ResponseTimeout = defaultResponseTimeout
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
		invalid("ProbeInterval", "%s must not be negative", o.ProbeInterval)
	}
	if o.ProbeTimeout < 0 {
		invalid("ProbeTimeout", "%s must not be negative", o.ProbeTimeout)
	}
	if o.MaxResponseBytes < 0 {
		invalid("MaxResponseBytes", "%d must not be negative", o.MaxResponseBytes)
	}
	if o.ResponseTimeout < 0 {
		invalid("ResponseTimeout", "%s must not be negative", o.ResponseTimeout)
	}
	if o.Workers < 1 {
		invalid("Workers", "must be at least 1, got %d", o.Workers)
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
			invalid(field, "another runner has the name %q", runner.Name())
		default:
			seen[runner.Name()] = true
		}
	}
	return errors.Join(problems...)
}
