package assembly

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	addoncrds "github.com/muster-sdk/muster/addon/crds"
	addonleave "github.com/muster-sdk/muster/addon/leave"
	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/clusterapi"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/push"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/clusterprofile"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
	"github.com/muster-sdk/muster/tenancy"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workagent "github.com/muster-sdk/muster/work/agent"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workleave "github.com/muster-sdk/muster/work/leave"
	"github.com/muster-sdk/muster/work/unassigned"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// HubOptions are the options of a complete hub. The zero value is a hub with membership, tenancy, placements, WorkSets
// and add-ons, each with its defaults, and without connections to members. Placements choose only clusters that a
// ClusterSetBinding of their namespace grants. [PartTenancy] in Without turns this off.
type HubOptions struct {
	// Membership are the options of package membership/hub. SetupHub puts the gates of add-ons and Works before
	// Gates, and adds the rules for Works to AgentRules.
	Membership hub.Options

	// Placement are the options of package placement. Default of Ready: the clusters on which the WorkSets of a Placement
	// are available. Default of Removals: the hub's records of MemberClusters that were deleted on request. Default of
	// Deliveries: the Works of WorkSets and the MemberAddons of the hub. Default of Tenancy: the ClusterSetBindings of the
	// hub.
	Placement placement.Options

	// Tenancy are the options of package tenancy.
	Tenancy tenancy.Options

	// WorkSets are the options of package placement/workset. SetupHub sets Readiness if it is nil. Default of Tenancy:
	// that of Placement.
	WorkSets workset.Options

	// Addons are the options of package addon. Default of Tenancy: the ClusterSetBindings of the hub.
	Addons addon.Options

	// ClusterProfiles exports members and decisions as ClusterProfiles and PlacementDecisions of SIG Multicluster, if
	// their definitions are installed. Default nil: off. Default of Tenancy: the ClusterSetBindings of the hub.
	ClusterProfiles *clusterprofile.Options

	// UnassignedWorks are the options of package work/unassigned.
	UnassignedWorks unassigned.Options

	// Connections connects the hub to members with a kubeconfig, which joinMode Push and Install require. Default
	// nil: the hub connects to no member.
	Connections *Connections

	// Without lists the parts to omit. Default: none.
	Without []Part

	// SkipDefinitions leaves the CustomResourceDefinitions to the caller. They must be served when the manager
	// starts. Default false: SetupHub installs them.
	SkipDefinitions bool
}

// Connections are the options of a hub that connects to members.
type Connections struct {
	// Fleet are the options of package membership/fleet. SetupHub adds the runners for Push and Install to Runners.
	Fleet fleet.Options

	// Push runs the agents of members with joinMode Push in the hub's process. Default nil: Push is off. Default of Agent:
	// [PushAgent] with default options, which applies Works.
	Push *push.Options

	// Install installs the agents of members with joinMode Install. Default nil: Install is off.
	Install *install.Options

	// ClusterAPI creates MemberClusters for Clusters of Cluster API. It requires Push or Install, as its JoinMode says.
	// SetupHub adds its namespaces to those of Fleet. Default nil: off.
	ClusterAPI *clusterapi.Options
}

// validate checks that the hub has the runner for the join mode of imported Clusters.
func (c *Connections) validate() error {
	if c == nil || c.ClusterAPI == nil {
		return nil
	}
	const required = "is required by the JoinMode of Connections.ClusterAPI"
	installs := c.ClusterAPI.JoinMode == membershipv1alpha1.JoinInstall
	switch {
	case installs && c.Install == nil:
		return &membership.InvalidError{Field: "Connections.Install", Problem: required}
	case !installs && c.Push == nil:
		return &membership.InvalidError{Field: "Connections.Push", Problem: required}
	default:
		return nil
	}
}

// Part is an optional part of a complete hub.
type Part string

// The parts of a complete hub besides membership.
const (
	PartPlacement Part = "Placement"
	PartWorkSets  Part = "WorkSets"
	PartAddons    Part = "Addons"
	// PartTenancy restricts each namespace to the clusters that its ClusterSetBindings grant. Omit it in products without
	// tenants. Then every Placement can choose every cluster.
	PartTenancy Part = "Tenancy"
	// PartUnassignedWorks maintains the status of Works in namespaces that belong to no member.
	PartUnassignedWorks Part = "UnassignedWorks"
)

var parts = []Part{PartPlacement, PartWorkSets, PartAddons, PartTenancy, PartUnassignedWorks}

// AddToScheme adds the types of Kubernetes and of all packages of muster to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	return errors.Join(
		clientgoscheme.AddToScheme(scheme),
		membershipv1alpha1.AddToScheme(scheme), placementv1alpha1.AddToScheme(scheme),
		workv1alpha1.AddToScheme(scheme), addonv1alpha1.AddToScheme(scheme), tenancyv1alpha1.AddToScheme(scheme),
	)
}

// InstallHubDefinitions installs the CustomResourceDefinitions of a complete hub and its ValidatingAdmissionPolicies,
// and waits until the API server serves the definitions. The client's scheme needs none of their types.
func InstallHubDefinitions(ctx context.Context, c client.Client) error {
	for _, group := range []struct {
		name    string
		install func(context.Context, client.Client) error
	}{
		{"membership", membershipcrds.Install},
		{"membership", membershipcrds.InstallPolicies},
		{"work", workcrds.InstallOnHub},
		{"placement", placementcrds.Install},
		{"addon", addoncrds.Install},
		{"tenancy", tenancycrds.Install},
	} {
		if err := group.install(ctx, c); err != nil {
			return fmt.Errorf("install the definitions of %s.muster.dev: %w", group.name, err)
		}
	}
	return nil
}

// SetupHub adds a complete hub to the manager. The manager's scheme must have the types that [AddToScheme] adds. Unless
// SkipDefinitions is set, SetupHub installs the CustomResourceDefinitions first. The context limits this installation
// only. An error names the option that is invalid, or the part whose setup failed.
func SetupHub(ctx context.Context, mgr manager.Manager, o HubOptions) error {
	if err := o.validate(); err != nil {
		return err
	}
	// Gates decide whether a leave may continue, so they read from the API server and not from a cache.
	c, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client for the hub: %w", err)
	}
	if !o.SkipDefinitions {
		if err := InstallHubDefinitions(ctx, c); err != nil {
			return err
		}
	}
	installer, err := o.setupConnections(mgr)
	if err != nil {
		return err
	}
	if err := o.setupMembership(mgr, c, installer); err != nil {
		return fmt.Errorf("set up membership: %w", err)
	}
	return o.setupParts(mgr)
}

func (o *HubOptions) has(part Part) bool { return !slices.Contains(o.Without, part) }

func (o *HubOptions) validate() error {
	for _, part := range o.Without {
		if !slices.Contains(parts, part) {
			return &membership.InvalidError{Field: "Without", Problem: fmt.Sprintf("has %q, which is none of %v", part, parts)}
		}
	}
	return o.Connections.validate()
}

// setupConnections returns the gate of installed agents, or nil if the hub installs none.
func (o *HubOptions) setupConnections(mgr manager.Manager) (membership.LeaveGate, error) {
	if o.Connections == nil {
		return nil, nil
	}
	options := o.Connections.Fleet
	options.Runners = slices.Clone(options.Runners)
	var gate membership.LeaveGate
	if o.Connections.Push != nil {
		pushed := *o.Connections.Push
		if pushed.Agent == nil {
			pushed.Agent = PushAgent(AgentOptions{InstallDefinitions: true})
		}
		runner, err := push.New(mgr, pushed)
		if err != nil {
			return nil, fmt.Errorf("set up joinMode Push: %w", err)
		}
		options.Runners = append(options.Runners, runner)
	}
	if o.Connections.Install != nil {
		runner, err := install.New(mgr, *o.Connections.Install)
		if err != nil {
			return nil, fmt.Errorf("set up joinMode Install: %w", err)
		}
		options.Runners, gate = append(options.Runners, runner), runner
	}
	if imported := o.Connections.ClusterAPI; imported != nil {
		if len(options.Namespaces) == 0 {
			options.Namespaces = []string{membership.ConnectionNamespace}
		}
		options.Namespaces = slices.Concat(options.Namespaces, imported.Namespaces)
		if err := clusterapi.SetupWithManager(mgr, *imported); err != nil {
			return nil, fmt.Errorf("set up the import of Clusters: %w", err)
		}
	}
	if _, err := fleet.SetupWithManager(mgr, options); err != nil {
		return nil, fmt.Errorf("set up connections: %w", err)
	}
	return gate, nil
}

// setupMembership orders the gates of a leave. Add-ons are removed first, because they are Works. Works follow, and
// then the gates of the caller. The installed agent is last, because all other gates need it.
func (o *HubOptions) setupMembership(mgr manager.Manager, c client.Client, installer membership.LeaveGate) error {
	options := o.Membership
	var gates []membership.LeaveGate
	if o.has(PartAddons) {
		gates = append(gates, addonleave.Gate(c))
	}
	gates = append(gates, workleave.Gate(c))
	gates = append(gates, options.Gates...)
	if installer != nil {
		gates = append(gates, installer)
	}
	options.Gates = gates
	options.AgentRules = append(workagent.HubRules(), options.AgentRules...)
	if options.ProtectedLabels == nil && o.has(PartTenancy) {
		options.ProtectedLabels = tenancy.ProtectedLabels(mgr.GetAPIReader())
	}
	return hub.SetupWithManager(mgr, options)
}

// removals reads the hub's records of members that left on request.
type removals struct {
	reader    client.Reader // not a cache
	namespace string
}

func (r removals) LastRemoval(ctx context.Context, cluster string) (*placement.Removal, error) {
	at, version, err := hub.LastRemoval(ctx, r.reader, r.namespace, cluster)
	if err != nil || at.IsZero() {
		return nil, err
	}
	return &placement.Removal{Time: at, ResourceVersion: version}, nil
}

func (o *HubOptions) setupParts(mgr manager.Manager) error {
	placements, worksets, addons := o.Placement, o.WorkSets, o.Addons
	if placements.Clusters == nil {
		removed := removals{
			reader: mgr.GetAPIReader(), namespace: cmp.Or(o.Membership.RegistrationNamespace, membership.RegistrationNamespace),
		}
		if placements.Removals == nil {
			placements.Removals = removed
		}
		if placements.Deliveries == nil {
			placements.Deliveries = o.deliveries(mgr, removed)
		}
	}
	if o.has(PartWorkSets) {
		if worksets.Readiness == nil {
			worksets.Readiness = workset.NewReadiness()
		}
		if placements.Ready == nil {
			placements.Ready = worksets.Readiness
		}
	}
	var profiles clusterprofile.Options
	if o.ClusterProfiles != nil {
		profiles = *o.ClusterProfiles
	}
	if o.has(PartTenancy) {
		grants, err := tenancy.SetupWithManager(mgr, o.Tenancy)
		if err != nil {
			return fmt.Errorf("set up %s: %w", PartTenancy, err)
		}
		if placements.Tenancy == nil {
			placements.Tenancy = grants
		}
		if worksets.Tenancy == nil {
			worksets.Tenancy = placements.Tenancy
		}
		if addons.Tenancy == nil {
			addons.Tenancy = grants
		}
		if profiles.Tenancy == nil {
			profiles.Tenancy = grants
		}
	}
	for _, setup := range []struct {
		part Part
		with func() error
	}{
		{PartPlacement, func() error { return placement.SetupWithManager(mgr, placements) }},
		{PartWorkSets, func() error { return workset.SetupWithManager(mgr, worksets) }},
		{PartAddons, func() error { return addon.SetupWithManager(mgr, addons) }},
		{PartUnassignedWorks, func() error { return unassigned.SetupWithManager(mgr, o.UnassignedWorks) }},
	} {
		if !o.has(setup.part) {
			continue
		}
		if err := setup.with(); err != nil {
			return fmt.Errorf("set up %s: %w", setup.part, err)
		}
	}
	if o.ClusterProfiles == nil {
		return nil
	}
	if err := clusterprofile.SetupWithManager(mgr, profiles); err != nil {
		return fmt.Errorf("set up ClusterProfiles: %w", err)
	}
	return nil
}
