package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Defaults of [Options].
const (
	// DefaultHubName is the name of the hub of a member that has only one.
	DefaultHubName = "hub"
	// DefaultWorkers is the number of Works that are reconciled concurrently. A worker mostly waits for writes, which
	// an API server stores in batches.
	DefaultWorkers = 16
	// DefaultResync is the period in which a Work is reconciled without an event.
	DefaultResync = 10 * time.Minute
	// DefaultStatusInterval is the minimum time between two writes of the status of a Work. The first status after a
	// change of a condition is written immediately.
	DefaultStatusInterval = time.Second
	// DefaultStatusGracePeriod is how long a new custom resource of an unknown kind may have no status before it is
	// ready.
	DefaultStatusGracePeriod = 30 * time.Second
)

// Options configure an agent of Works.
type Options struct {
	// Hub is the client configuration for the hub. Required. Without a QPS, the client has no rate limit.
	Hub *rest.Config
	// Namespace is the namespace of the member on the hub, which contains its Works. Required.
	Namespace string
	// Member is the client configuration for the member: in the same cluster if the agent pulls, another one if the hub
	// pushes. Required. Without a QPS, the client has no rate limit.
	Member *rest.Config

	// HubName distinguishes the hubs of a member. An agent does not change AppliedWorks with another name. The name
	// must be valid as the value of a label, and must never change. Default: [DefaultHubName].
	HubName string

	// Executor decides as which ServiceAccount a Work may be applied. An error rejects the Work, and is reported in its
	// status. Nil: [DefaultExecutorPolicy].
	Executor ExecutorPolicy

	// ObjectPolicy decides which objects of Works the member accepts. The agent neither applies nor reads an object
	// that is not accepted, and reports it in the status of its Work. An object that was applied before stays unchanged
	// until its Work is deleted. While a Work has an object that is not accepted, the agent deletes no object that the
	// Work does not contain any more. Nil: the member accepts every object.
	ObjectPolicy ObjectPolicy

	// Readiness evaluates whether objects are ready. Nil: the rules of package readiness.
	Readiness readiness.Registry

	// Workers is the number of Works that are reconciled concurrently. Default: [DefaultWorkers].
	Workers int
	// Apply configures how objects are applied. The agent replaces its Metadata.
	Apply apply.Options
	// Resync is the period in which a Work is reconciled without an event, with jitter. A resync costs no request.
	// Default: [DefaultResync].
	Resync time.Duration
	// StatusInterval is the minimum time between two writes of the status of a Work. The first status after a change of
	// a condition is written immediately. Default: [DefaultStatusInterval].
	StatusInterval time.Duration

	// StatusGracePeriod is how long a new custom resource is not ready while it has no status. It applies to kinds that
	// have the subresource status and for which Readiness has no rule. After that time the object is ready, because
	// many such kinds have no controller that reports a status. It begins when the object is created. Default:
	// [DefaultStatusGracePeriod]. Negative: such an object is ready as soon as it exists.
	StatusGracePeriod time.Duration

	// PruneGate decides whether objects may be deleted from the member. The agent calls it before each deletion, from
	// several workers concurrently. It must not block. Nil: deletions are always permitted.
	PruneGate PruneGate
	// HubRestored returns a number that increases when the hub was restored to an earlier state, before PruneGate
	// permits deletions again. At the first reconcile of a Work after an increase, objects that the Work does not
	// contain are orphaned and not deleted, although its generation may be higher than before. It must not block. Nil:
	// only a lower generation reveals a restore.
	HubRestored func() int64
	// OrphanGracePeriod is how long the agent keeps the objects of a Work that is missing on the hub although no
	// request to delete it was observed. After that, the agent deletes them with the last delete policy of the Work.
	// Default, and for any value that is not positive: the objects are kept forever.
	OrphanGracePeriod time.Duration
	// OnOrphans is called once after the start of the agent, and after each change of the orphaned objects of the
	// member. The agent does not call it concurrently. It must not block. Nil: see [Agent.Orphans].
	OnOrphans func(OrphanSummary)

	// Log is the logger of the agent. Default: no logs.
	Log logr.Logger
}

// PruneGate returns why objects must not be deleted from the member at this time, as a sentence for the status of
// Works. Empty: deletions are permitted. While it returns a reason, the agent still applies objects and corrects drift,
// and calls the gate again every few seconds. The gate does not apply to a [Cleaner].
type PruneGate func(ctx context.Context) (withheld string)

// ExecutorPolicy decides whether a Work may be applied with the requested identity: as the ServiceAccount in
// spec.executor, or as the agent if spec.executor is not set. An agent may impersonate ServiceAccounts, so this
// policy prevents that the authors of Works gain permissions. The API server rejects an impersonation that the
// agent's RBAC does not permit.
type ExecutorPolicy func(ctx context.Context, work *v1alpha1.Work) error

// DefaultExecutorPolicy rejects ServiceAccounts of namespaces whose names begin with "kube-", and of muster-system,
// because some of them have all permissions. It permits all others, and Works without an executor. An agent in another
// namespace needs a policy that rejects its own namespace.
func DefaultExecutorPolicy(_ context.Context, work *v1alpha1.Work) error {
	executor := work.Spec.Executor
	if executor == nil {
		return nil
	}
	if strings.HasPrefix(executor.Namespace, "kube-") || executor.Namespace == "muster-system" {
		return fmt.Errorf("spec.executor.namespace: must not be %s: ServiceAccounts of this namespace have "+
			"elevated permissions", executor.Namespace)
	}
	return nil
}

// RequireExecutor returns a policy that rejects Works without an executor, and Works that the next policy rejects. It
// is for members whose administrators do not grant the hub all permissions of the agent.
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
		return o, fmt.Errorf("agent.Options.HubName: %q cannot be the value of a label: %s", o.HubName,
			strings.Join(problems, "; "))
	}
	if o.Executor == nil {
		o.Executor = DefaultExecutorPolicy
	}
	if o.HubRestored == nil {
		o.HubRestored = func() int64 { return 0 }
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
	if o.StatusGracePeriod == 0 {
		o.StatusGracePeriod = DefaultStatusGracePeriod
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return o, nil
}
