// Package fleet connects a hub to members that it has a kubeconfig for: those with spec.kubeConfigSecretRef. For each of them it keeps one way
// by which what runs on the hub reaches the member, says in a condition whether it does, and runs what is to run for it.
//
//	f, err := fleet.SetupWithManager(mgr, fleet.Options{Runners: []fleet.Runner{...}})
//
// # The way to a member
//
// What a Secret may say is told by package registration/kubeconfig; it is read in the namespaces of the options alone. A new Secret is tried
// first, by asking for the namespace kube-system: when that has the UID that the member's has, all that was made of the connection goes
// by it from then on, without a restart. One that leads to another cluster, is refused, or does not answer changes nothing, and is tried again. Which UID
// is the member's is what was there before; or what its agent says, by the property membership.muster.dev/kube-system-uid; or spec.clusterID, if
// that looks like a UID. Nothing is sent to a member before it has been recognized, but that question.
//
// A Secret that makes no sense any more leaves what it said before, for as long as that works. One that is gone, or not where the hub reads Secrets, ends it.
//
// # The condition Reachable
//
// It is there where kubeConfigSecretRef is, is written by the leader, and only when it turned:
//
//   - Reachable (True): the member answers GET /readyz, which is asked for every thirty seconds.
//   - Unreachable: it does not, three times in a row if it did before. The message says why; other words count when they came twice.
//   - Unauthorized: it refuses the credential, or does not permit it to get its namespace kube-system, or /readyz.
//   - KubeConfigMissing, KubeConfigInvalid: there is no such Secret, or it makes no sense. The message names the field.
//   - OtherCluster: the Secret leads to another cluster.
//
// Where the member was found is in status.endpoint, without the credential.
//
// # Members are independent
//
// Each has a goroutine of its own, in which the hub connects and waits for answers; each Runner, and each live cluster, has another, and connections of
// its own. So a member that takes everything and answers nothing costs the others nothing.
//
// # Runners and live clusters
//
// A [Runner] runs on the leader; when it fails it is called again, after a second and later after half a minute, and an Event tells of it. A [Provider] has
// a live cluster.Cluster for each member that has joined, as multicluster-runtime wants them; it can be started in every replica of a hub. A replica
// that neither leads nor has a Provider started makes no connections.
//
// # What it costs
//
// At rest a GET of /readyz for each member and ProbeInterval, and on the hub nothing. A Secret is read when it changed; the hub holds no other content of Secrets.
//
// # Metrics
//
// They are in the registry of controller-runtime while the fleet runs. Each replica shows those of its own connections:
//
//	muster_fleet_members{reason}                  members by what is known of the way there: reasons of the condition Reachable, or Connecting
//	muster_fleet_probe_duration_seconds{reason}   how long a member took to answer, or was waited for, by what came of it
//	muster_fleet_runners{runner,state}            members that a runner is Running for, is Failing for (it waits to be called again), or is Overdue
//	                                              for: it was to return, has not, and is not called again before it has
//	muster_fleet_runner_failures_total{runner}    how often it failed, or panicked, and was to be called again
//
// A runner is told by its name; "live cluster" is what a Provider has run. No series is of one member alone: the condition and Events tell who it is.
//
// # Permissions
//
// On the hub those in the folder rbac. On a member: get the namespace kube-system and /readyz (which the ClusterRole system:public-info-viewer gives to
// everybody), and what runners and live clusters need.
package fleet
