// Package agent applies the Works of one member, reports their status, and deletes their objects on request. It is a
// controller that watches the Works in the member's namespace on the hub, and their objects on the member.
//
//	a, err := agent.New(agent.Options{Hub: hubConfig, Namespace: "member-east", Member: memberConfig})
//	...
//	err = a.Start(ctx) // or mgr.Add(a)
//
// The agent runs on the member and pulls, or runs on the hub and pushes; only the two client configurations differ. As
// a companion of an agent of package membership/agent (package work/companion), it receives the member's credential,
// which is renewed while the agent runs. Package work/leave delays the leave of a member until the objects of its Works
// are deleted.
//
// # Cost
//
// A Work whose objects are as desired costs no request. The agent watches the metadata of the applied objects, by their
// label, and only for the kinds in use. It observes an edit or a deletion through this watch, and corrects or reports
// it immediately; package work/apply describes how metadata alone reveal an edit. The agent reads the status of an
// object after the object has changed, and only if its kind has a status or a readiness rule needs the object.
//
// A new Work costs one write per object on the member, and one write of the AppliedWork before and one after them. On
// the hub it costs the finalizer, unless the Work was created with [v1alpha1.Finalizer], and its status. A status in
// which a condition changes is written immediately, and others at most once in [Options.StatusInterval]. Events about
// Works are sent at a limited rate.
//
// # Order of Works
//
// One worker reconciles a Work at a time, and no Work waits for another. After a failure, the agent retries after one
// second, and doubles this pause up to five minutes. A change of the Work or of one of its objects is reconciled
// immediately. If one manifest fails, the others are still applied; objects that the Work does not contain any more
// stay until all desired objects are applied. While the hub is unreachable, the agent continues to correct objects by
// the Works that it observed last.
//
// Waves wait for each other until all objects of a generation are applied. After that, each object is corrected on its
// own.
//
// A suspended Work is only compared with the member. Its status describes the differences.
//
// A new custom resource whose kind has the subresource status, and of which no readiness rule knows more, is not ready
// until it has a status, for at most [Options.StatusGracePeriod]. A rule in the Work decides without this time.
//
// A Job with ttlSecondsAfterFinished runs once per manifest. If the Job is gone, its Work keeps reporting its result.
// If the Job finished and was deleted while the agent did not run, its result is unknown, and the Work is not complete.
//
// An exported manifest, which has metadata of an API server such as uid, is applied without the fields that belong to
// the cluster that it was read from. The condition Applied names them.
//
// # Deletion
//
// A deleted Work keeps its finalizer until the member has none of its objects; its status names the remaining ones. The
// agent deletes objects only if the deletion is a request of a user. The following are not requests:
//
//   - The Work is missing, for example after a restore of the hub, or because a user removed its finalizer.
//   - The Work was deleted with the namespace of the member, or with the definition of Works.
//   - A controller generates the Work, and the deletion does not have the controller's annotation
//     [v1alpha1.DeletionRequestedByAnnotation].
//   - A Work with another UID, or an earlier generation of the Work, does not contain the object.
//
// In these cases the objects are orphaned: they stay unchanged. The AppliedWork (condition Orphaned, and orphanedTime
// of each object), an Event on the hub, the metric muster_work_orphaned_objects and [Agent.Orphans] report them. A Work
// with the same namespace and name adopts them, and does not write to objects that match its manifests. The annotation
// [v1alpha1.ReleaseAnnotation] on the AppliedWork deletes them, and so does [Options.OrphanGracePeriod]. If the
// AppliedWork is deleted, its orphaned objects are not reported until a Work with the same name finds them by their
// mark.
//
// The agent records a request in the AppliedWork before it deletes the first object, so it completes the request even
// if the Work disappears. It must observe the request twice, one second apart. It deletes an object that the Work does
// not contain any more only after it has read the Work from the API server. [Options.PruneGate] withholds all of these
// deletions.
//
// The deletion of an AppliedWork deletes no object. The agent creates it again from the Work and from the marks on the
// objects. A [Cleaner] deletes all objects of a member whose leave was requested. The definition of AppliedWork stays,
// because another hub may use it; see RemoveFromMember of package work/crds.
//
// # Identity
//
// Without spec.executor, the agent applies objects with its own permissions. With spec.executor, it impersonates this
// ServiceAccount to apply, read and delete them, so the API server rejects what the ServiceAccount may not do. An
// [ExecutorPolicy] decides which ServiceAccounts a Work may name, and whether it must name one. The watch of metadata
// always uses the agent's own permissions.
//
// # Permissions
//
// On the hub, in the member's namespace: [HubRules]. On the member: the file in the folder rbac for the AppliedWorks;
// get, list, watch, create, patch and delete on all objects that Works may contain, or impersonate on the
// ServiceAccounts that executors may name, together with list and watch for the agent itself.
package agent
