// Package fleet connects a hub to the members with spec.kubeConfigSecretRef. For each member it maintains one
// connection for components of the hub, reports its state in a condition, and runs the configured runners.
//
//	f, err := fleet.SetupWithManager(mgr, fleet.Options{Runners: []fleet.Runner{...}})
//
// # Connections
//
// Package registration/kubeconfig documents the format of the Secrets. They are read in the namespaces of the options
// only. A new Secret is tested first with a request for the namespace kube-system. If its UID is that of the member,
// all clients use the new Secret from then on, without a restart. A Secret that leads to another cluster, is rejected,
// or gets no response changes nothing, and is retried. The expected UID is the previous one, or the property
// membership.muster.dev/kube-system-uid that the agent reports, or spec.clusterID if it has the form of a UID. No
// other request is sent to a member before its UID is verified.
//
// If a Secret becomes invalid, its previous contents are used while they work. If it is deleted, or its namespace is
// not among those of the options, the connection ends.
//
// # The condition Reachable
//
// The leader writes the condition of each member with a kubeConfigSecretRef when its state changes:
//
//   - Reachable (True): the member responds to GET /readyz, which is sent every thirty seconds.
//   - Unreachable: three consecutive requests failed, or the first one. The message contains the reason; a new message
//     is reported after it was observed twice.
//   - Unauthorized: the member rejects the credential, or does not permit it to get the namespace kube-system or
//     /readyz.
//   - KubeConfigMissing, KubeConfigInvalid: the Secret does not exist, or is invalid. The message names the field.
//   - OtherCluster: the Secret leads to another cluster.
//
// The address of the member is in status.endpoint, without the credential.
//
// # Isolation of members
//
// Each member has a goroutine, which connects and waits for responses. Each Runner and each live cluster has another
// goroutine and separate connections. A member that accepts requests and never responds does not affect other members.
//
// # Runners and live clusters
//
// A [Runner] runs on the leader. If it fails it is called again, after one second and later after half a minute, and an
// Event reports the failure. A [Provider] provides a live cluster.Cluster for each joined member, as
// multicluster-runtime requires; it can be started in every replica of a hub. A replica that is not the leader and has
// no started Provider opens no connections.
//
// # Cost
//
// In steady state, one GET of /readyz for each member and ProbeInterval, and no requests to the hub. A Secret is read
// when it has changed. The hub caches no other contents of Secrets.
//
// # Metrics
//
// The metrics are in the registry of controller-runtime while the fleet runs. Each replica reports its own connections:
//
//	muster_fleet_members{reason}                  members by state: reasons of the condition Reachable, or Connecting
//	muster_fleet_probe_duration_seconds{reason}   duration of probes, by result
//	muster_fleet_runners{runner,state}            members by state of a runner: Running, Failing (it waits to be called
//	                                              again), or Overdue (it must return and has not)
//	muster_fleet_runner_failures_total{runner}    failures and panics of a runner
//
// The label runner is the name of the runner; "live cluster" is the runner of a Provider. No series has a label for a
// single member: the condition and Events identify members.
//
// # Permissions
//
// On the hub, those in the folder rbac. On a member: get the namespace kube-system and /readyz (which the ClusterRole
// system:public-info-viewer grants to all users), and the permissions of runners and live clusters.
package fleet
