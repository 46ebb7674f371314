package assembly

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	"github.com/muster-sdk/muster/tenancy/memberpolicy"
	workagent "github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/companion"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workleave "github.com/muster-sdk/muster/work/leave"
)

// AgentOptions are the options of a complete agent. The zero value is an agent that runs inside the cluster that joins,
// and applies Works.
type AgentOptions struct {
	// Membership are the options of package membership/agent. SetupAgent puts the agent of Works before Companions,
	// and its clean-up before Cleaners; with Hubs, before the Cleaners of each hub.
	Membership agent.Options

	// Works are the options of package work/agent. SetupAgent sets Hub, Namespace, Member and HubName, withholds
	// deletions while the hub may be inconsistent, in addition to PruneGate, and reports orphaned objects in the
	// Membership, in addition to OnOrphans. If ObjectPolicy is nil, the MemberPolicies of the member decide which objects
	// it accepts.
	Works workagent.Options

	// RequireMemberPolicy means that a member without a MemberPolicy accepts no objects. Default false: it accepts every
	// object. The option has no effect if Works.ObjectPolicy is set.
	RequireMemberPolicy bool

	// WithoutWorks omits the agent of Works. Default false.
	WithoutWorks bool

	// InstallDefinitions installs the CustomResourceDefinitions of AppliedWork and of MemberPolicy on the member, which
	// requires get, create and patch on customresourcedefinitions there. Default false: the manifests of the agent contain
	// the definitions.
	InstallDefinitions bool
}

// SetupAgent adds a complete agent to the manager. The context limits the installation of definitions only. An error
// names the option that is invalid, or the part whose setup failed.
func SetupAgent(ctx context.Context, mgr manager.Manager, o AgentOptions) error {
	options := o.Membership
	member := options.Member
	if member == nil {
		member = mgr.GetConfig()
	}
	if o.WithoutWorks {
		return agent.SetupWithManager(mgr, options)
	}
	if o.InstallDefinitions {
		if err := installMemberDefinitions(ctx, member); err != nil {
			return err
		}
	}
	if err := o.addWorks(&options, member); err != nil {
		return fmt.Errorf("set up the agent of Works: %w", err)
	}
	return agent.SetupWithManager(mgr, options)
}

func installMemberDefinitions(ctx context.Context, member *rest.Config) error {
	c, err := client.New(member, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client for the member: %w", err)
	}
	if err := workcrds.InstallOnMember(ctx, c); err != nil {
		return fmt.Errorf("install the definition of AppliedWork on the member: %w", err)
	}
	if err := tenancycrds.InstallOnMember(ctx, c); err != nil {
		return fmt.Errorf("install the definition of MemberPolicy on the member: %w", err)
	}
	return nil
}

// addWorks adds the agent of Works, and its clean-up for each hub.
func (o *AgentOptions) addWorks(options *agent.Options, member *rest.Config) error {
	works, required := o.Works, o.RequireMemberPolicy
	works.Member = member
	options.Companions = slices.Insert(slices.Clone(options.Companions), 0,
		agent.CompanionFunc(workleave.Name, func(ctx context.Context, hub agent.Hub) error {
			return runWorks(ctx, hub, works, required)
		}))
	clean := func(hub string, cleaners []membership.LeaveGate) ([]membership.LeaveGate, error) {
		works := works
		works.HubName = hub
		if _, err := workagent.NewCleaner(works); err != nil {
			return nil, err
		}
		return slices.Insert(slices.Clone(cleaners), 0, companion.Cleaner(works)), nil
	}
	var err error
	if len(options.Hubs) == 0 {
		options.Cleaners, err = clean("", options.Cleaners)
		return err
	}
	options.Hubs = slices.Clone(options.Hubs)
	for i := range options.Hubs {
		hub := &options.Hubs[i]
		if hub.Cleaners, err = clean(hub.Name, hub.Cleaners); err != nil {
			return err
		}
	}
	return nil
}

// runWorks runs the agent of Works. Without another ObjectPolicy, it also watches the member's MemberPolicies and
// reports their summary.
func runWorks(ctx context.Context, hub agent.Hub, works workagent.Options, required bool) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	if works.ObjectPolicy == nil {
		policies, err := memberpolicy.NewWatcher(memberpolicy.Options{Member: works.Member, Required: required,
			Log: works.Log})
		if err != nil {
			return err
		}
		name := cmp.Or(hub.Name, workagent.DefaultHubName)
		works.ObjectPolicy = policies.ForHub(name)
		running.Go(func() { _ = policies.Start(ctx) }) // Start always returns nil.
		if hub.ReportPolicy != nil {
			running.Go(func() { policies.Report(ctx, name, hub.ReportPolicy) })
		}
	}
	return companion.New(works).Run(ctx, hub)
}
