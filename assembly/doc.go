// Package assembly sets up a complete hub, or a complete agent, with one call each.
//
// A complete hub has membership, placements, WorkSets and add-ons, and optionally connections to members:
//
//	scheme := runtime.NewScheme()
//	err := assembly.AddToScheme(scheme)
//	mgr, err := manager.New(config, manager.Options{Scheme: scheme, LeaderElection: true, LeaderElectionID: "muster-hub"})
//	err = assembly.SetupHub(ctx, mgr, assembly.HubOptions{})
//	err = mgr.Start(ctx)
//
// A complete agent joins a hub, sends heartbeats, reports on its cluster, and applies Works:
//
//	mgr, err := manager.New(config, manager.Options{LeaderElection: true, LeaderElectionID: "muster-agent"})
//	err = assembly.SetupAgent(ctx, mgr, assembly.AgentOptions{})
//	err = mgr.Start(ctx)
//
// Both functions add to a manager of the caller and start nothing. Each part can also be set up separately, with the
// SetupWithManager function of its package. Every part takes the options of its own package. The zero value of all
// options is a working default.
//
// # Permissions
//
// The hub needs the roles in the folder rbac of each package that [HubOptions] sets up: membership/hub, placement,
// placement/workset, addon, addon/leave, work/leave, work/unassigned and, with connections, membership/fleet,
// membership/push, membership/install and membership/clusterapi. ClusterProfiles need the role of
// placement/clusterprofile. To install the CustomResourceDefinitions, the hub needs get, create and patch on
// customresourcedefinitions. It does not need these with [HubOptions].SkipDefinitions. The agent needs the roles of
// membership/agent and work/agent on the member.
package assembly
