// Package agent applies the Works of one member, reports on them, and takes them back: a controller that watches Works in the
// member's namespace on the hub, and their objects on the member.
//
//	a, err := agent.New(agent.Options{Hub: hubConfig, Namespace: "member-east", Member: memberConfig})
//	...
//	err = a.Start(ctx) // or mgr.Add(a)
//
// Whether it runs on the member and pulls, or on the hub and pushes, is only a matter of which of the two configs is the far
// one. Beside an agent of membership it is a companion of that, which gives it the hub with a credential that is
// renewed under it; package leave has what makes a leave wait for it.
//
// # What it costs
//
// A Work that is as it shall be costs no request. The agent watches the metadata of the objects that it has applied, by
// their label and only of the kinds that are in use; an edit or a deletion is seen by that watch and healed, or reported, at once:
// see package apply for how metadata alone tell. The status of an object is read when the object has changed, and only
// if its kind has one or a rule asks for it.
//
// A new Work costs the member its objects, one write before them and one after them (the AppliedWork), and the hub the finalizer,
// unless the Work was made with [v1alpha1.Finalizer], and its status: at once when a condition turns, else once in
// [Options.StatusInterval].
//
// # Which Work gets what
//
// Each Work is looked at by one worker at a time and waits for no other. After a failure it is tried again after a
// second, doubled each time up to five minutes; a change of it, or of an object of it, is looked at right away. One
// that does not become well for a manifest of its own still has its other manifests applied; only what it no longer
// wants is kept until all that it does want is there. While the hub is unreachable, the agent goes on repairing
// objects by the Works that it observed last.
//
// Waves wait for each other until all of a generation has been applied; from then on each object is healed by itself.
//
// A suspended Work is only compared with the member: its status says what would be changed.
//
// A Job that deletes itself (ttlSecondsAfterFinished) looks like a Job that a user deleted, and is created again.
//
// # Taking back
//
// A Work that is deleted goes when the member holds nothing of it any more, which its status tells about. Its objects are deleted only
// if the deletion is a request of a user. These are not:
//
//   - The Work is missing, for example after a restore of the hub, or because its finalizer was removed by hand.
//   - The Work was deleted with the namespace of the member, or with the definition of Works.
//   - A controller generates the Work, and the deletion does not have the controller's note
//     [v1alpha1.DeletionRequestedByAnnotation].
//   - A Work with another UID, or an earlier generation of the Work, does not have the object.
//
// The objects are orphaned then: they stay as they are. The AppliedWork (condition Orphaned, and orphanedTime of each object), an Event
// on the hub, the metric muster_work_orphaned_objects and [Agent.Orphans] report them. A Work with the same namespace and name adopts
// them, and does not write to those that match. The annotation [v1alpha1.ReleaseAnnotation] on the AppliedWork deletes them, or
// [Options.OrphanGracePeriod]. An orphaned object whose AppliedWork is deleted is not reported any more, until a Work of the name
// finds it by its mark.
//
// A request is recorded in the AppliedWork before the first object is deleted, so it is carried out even if the Work vanishes
// meanwhile. It must be observed twice, a second apart. What a Work no longer has is deleted after a live read of the Work.
// [Options.PruneGate] withholds all of that.
//
// The deletion of an AppliedWork deletes no object. The agent creates it again from the Work and the marks on the objects. A [Cleaner]
// deletes everything for a member whose leave was requested. The definition of AppliedWork stays, since it may be in use by another
// hub; see RemoveFromMember of package work/crds.
//
// # In whose name
//
// Without spec.executor objects are applied by the agent's own permissions. With one they are applied, read and
// deleted by impersonation of that ServiceAccount, so the API server refuses what the ServiceAccount may not do. An
// [ExecutorPolicy] decides which ServiceAccounts a Work may name, and whether it must name one. The watch of metadata
// is the agent's own in any case.
//
// # Permissions
//
// On the hub, in the member's namespace: [HubRules]. On the member: the file in the folder rbac for the inventory;
// get, list, watch, create, patch and delete on all that Works shall contain, or impersonate on the serviceaccounts that may be named by
// executors with list and watch for the agent itself.
package agent
