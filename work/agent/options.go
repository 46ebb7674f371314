package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/go-logr/logr"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Defaults of [Options].
const (
	// DefaultHubName is what a hub is called by a member that has only one.
	DefaultHubName = "hub"
	// DefaultWorkers is how many Works are worked on at a time.
	DefaultWorkers = 8
	// DefaultResync is how often a Work is looked at though nothing has happened.
	DefaultResync = 10 * time.Minute
	// DefaultStatusInterval is the time between two writes of a Work's status, but for the first news.
	DefaultStatusInterval = time.Second
)

// Options say how an agent of Works is to be.
type Options struct {
	// Hub is how to reach the hub that has the Works. Required. Without a QPS it has no limit at this end, nor has Member.
	Hub *rest.Config
	// Namespace of the member on the hub, which has its Works. Required.
	Namespace string
	// Member is how to reach the member: where the agent runs when it pulls, and elsewhere when a hub pushes. Required.
	Member *rest.Config

	// HubName tells the hubs of a member apart: an agent touches no AppliedWork of another name. It must never change, and
	// be the value of a label. Default: [DefaultHubName].
	HubName string

	// Executor decides in whose name a Work may be applied; an error refuses the Work, and is what its status says. Nil:
	// [DefaultExecutorPolicy].
	Executor ExecutorPolicy

	// Readiness knows when objects are ready. Nil: see package readiness.
	Readiness readiness.Registry

	// Workers is how many Works are worked on at a time. Default: [DefaultWorkers].
	Workers int
	// Apply says how objects are applied. Its Metadata is the agent's own.
	Apply apply.Options
	// Resync is how often a Work is looked at though nothing has happened, jittered. It costs no request. Default: [DefaultResync].
	Resync time.Duration
	// StatusInterval is the time between two writes of a Work's status, but for the first news. Default: [DefaultStatusInterval].
	StatusInterval time.Duration

	// PruneGate says whether objects may be deleted from the member. It is called before each deletion of objects, by several
	// workers at a time, and must not block. Nil: they always may.
	PruneGate PruneGate
	// OrphanGracePeriod is how long the objects of a Work are kept that is missing on the hub although no request to delete it was
	// observed; then they are deleted as the Work said last. Default, and any value that is not positive: forever.
	OrphanGracePeriod time.Duration
	// OnOrphans is called once after the agent has started, and after the orphaned objects of the member have changed. It is not
	// called concurrently, and must not block. Nil: see [Agent.Orphans].
	OnOrphans func(OrphanSummary)

	// Log is where the agent logs. Default: nowhere.
	Log logr.Logger
}

// PruneGate returns why objects must not be deleted from the member at this time, in a sentence for the status of Works; empty: they
// may. While it returns a reason the agent still applies objects and corrects drift, and asks again every few seconds. It does not
// apply to a [Cleaner].
type PruneGate func(ctx context.Context) (withheld string)

// ExecutorPolicy decides whether a Work may be applied as it asks: in the name of spec.executor, or in the agent's
// own without one. An agent may impersonate ServiceAccounts, so this policy keeps the authors of Works from gaining
// permissions. What the agent's own RBAC does not let it impersonate is refused in any case.
type ExecutorPolicy func(ctx context.Context, work *v1alpha1.Work) error

// DefaultExecutorPolicy lets everything be applied but in the names of ServiceAccounts of Kubernetes itself, in kube-system and
// its like, and of muster-system, some of which can do anything. An agent elsewhere needs a policy that refuses its own namespace.
func DefaultExecutorPolicy(_ context.Context, work *v1alpha1.Work) error {
	executor := work.Spec.Executor
	if executor == nil {
		return nil
	}
	if strings.HasPrefix(executor.Namespace, "kube-") || executor.Namespace == "muster-system" {
		return fmt.Errorf("spec.executor.namespace: ServiceAccounts of %s can do more than a Work should", executor.Namespace)
	}
	return nil
}

// RequireExecutor refuses Works without an executor, besides what the next policy refuses. For members whose administrators
// do not trust the hub with all that the agent may do.
func RequireExecutor(next ExecutorPolicy) ExecutorPolicy {
	return func(ctx context.Context, work *v1alpha1.Work) error {
		if work.Spec.Executor == nil {
			return fmt.Errorf("spec.executor: is required by this member")
		}
		return next(ctx, work)
	}
}

func (o Options) withDefaults() (Options, error) {
	switch {
	case o.Hub == nil:
		return o, fmt.Errorf("agent.Options.Hub: is required")
	case o.Member == nil:
		return o, fmt.Errorf("agent.Options.Member: is required")
	case o.Namespace == "":
		return o, fmt.Errorf("agent.Options.Namespace: is required")
	}
	if o.HubName == "" {
		o.HubName = DefaultHubName
	}
	if problems := validation.IsValidLabelValue(o.HubName); len(problems) > 0 {
		return o, fmt.Errorf("agent.Options.HubName: %q cannot be the value of a label: %s", o.HubName, strings.Join(problems, "; "))
	}
	if o.Executor == nil {
		o.Executor = DefaultExecutorPolicy
	}
	if o.PruneGate == nil {
		o.PruneGate = func(context.Context) string { return "" }
	}
	if o.OnOrphans == nil {
		o.OnOrphans = func(OrphanSummary) {}
	}
	if o.Workers <= 0 {
		o.Workers = DefaultWorkers
	}
	if o.Resync <= 0 {
		o.Resync = DefaultResync
	}
	if o.StatusInterval <= 0 {
		o.StatusInterval = DefaultStatusInterval
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return o, nil
}
