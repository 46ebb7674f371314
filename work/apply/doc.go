// Package apply brings objects of a cluster to a desired state, detects changes by others, and deletes the objects
// again.
//
// It is an [Engine] for any controller: give it an [Owner], the objects that are wanted and the inventory of
// last time, and carry out the rest as you like:
//
//	engine := apply.New(c, apply.Options{})
//	set := apply.Set{Owner: owner, Objects: objects, Inventory: inventory, Record: store}
//	changes, err := engine.Apply(ctx, set, nil)
//	...
//	pruned, err := engine.Prune(ctx, owner, apply.Stale(changes.Inventory, objects), v1alpha1.DeletePolicy{})
//
// # How it knows what differs
//
// Objects are applied by server-side apply, and the API server keeps account of the fields that each field manager
// has applied. A manager that changes a field takes it from all others. So an object is as it was applied for as long
// as our field manager still has all fields of the manifest, and that is in the object's metadata: no values are
// compared, and neither defaults, nor conversions, nor admission webhooks look like drift. The hash of the manifest
// that was applied last is in an annotation. With a watch of metadata ([Options.Metadata]) it takes no request to
// know that nothing has changed, after a restart either.
//
// # Whose objects
//
// An object belongs to an owner when it has the annotation [Owner.Mark], which is derived from the owner's name, so an owner that
// was deleted and created again still has its objects; or when the inventory has its UID, so that an edit of its metadata is an
// edit like any other. Objects have no owner reference: Kubernetes deletes nothing when the owner goes. One that is there and was
// not applied by this package is taken over, or not, by [Object.Takeover]. Several owners may share an
// object while they want the same of it; where they do not, the later one gets a conflict that names the other's field manager,
// and never takes anything from it by force.
//
// What is written is bound to what was looked at: where nothing was, nothing may be; else the object must have the same UID. So what others
// make in between is seen, and not overwritten.
//
// # What others write
//
// Fields that controllers of Kubernetes write in every cluster are dropped from manifests: revision annotations, the
// rules of aggregated ClusterRoles, placeholders of CA bundles, the data of token Secrets, status. ConfigMap
// kube-root-ca.crt is left to Kubernetes.
//
// An edit is corrected at once. Where the same fields are changed again and again, the pause before the next
// correction doubles from 2 seconds to 5 minutes after three corrections, and the reason is Contested: the message
// names the fields, the other field manager and the remedy. Other fields of the object are still corrected at once.
// The history is in memory and is lost on a restart.
//
// An edit that makes the merge of manifest and object invalid, such as another member of a union, is undone by way of
// the managed fields: the engine takes over the fields that are in the way, in the struct or list item that the API
// server names, and applies again. A takeover takes the fields of the manifest from kubectl, Helm and other deployers.
// Managed fields of an earlier API version are migrated.
//
// With [Object.Additions] the engine reports or removes what others add to an object: fields, keys of maps and items of
// lists that the manifest does not have. With the drift policy Ignore an edit stays until the manifest changes.
//
// A manifest that the API server rejects is sent again after a pause that doubles from a second to 5 minutes, or when
// it changes. The pause after a request that is forbidden is at most 30 seconds, since a permission may be granted at
// any time. A namespace on an object of a cluster-scoped kind is dropped, and the message of the change has a warning. A Job with ttlSecondsAfterFinished runs once for each manifest. With [Object.Recreate] an object is
// deleted and created again when the manifest changes a field that cannot be changed. The annotation
// [v1alpha1.DisabledAnnotation] on an object stops applies or its deletion.
//
// # What is never lost
//
// [Set.Record] stores the inventory before the first object that is not in it is touched, and what is in
// it is only dropped by [Engine.Prune], when the API server has said that it is gone, or that it is not the owner's. So whatever crashes, and
// whenever, all that was applied can be found. Deletions carry the UID and the
// resourceVersion of the object that was observed.
//
// # Order
//
// Kinds come in waves, see [Wave]: namespaces and definitions of custom resources first, which are waited for until they can be
// used; webhooks last. Objects of one wave are applied at the same time. A [Gate] can hold back a wave until the
// one before is ready. Taking back goes the other way, and each wave waits until the one above it is gone.
//
// # What it needs
//
// The permissions get, patch and delete on what it applies, list where it is to save requests, and create: server-side apply needs both
// patch and create where an object is missing. Each request has a deadline; those for what kinds there are have the client's own.
package apply
