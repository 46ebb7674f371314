// Package apply brings objects of a cluster to a desired state, detects changes by other clients, and deletes the
// objects on request.
//
// An [Engine] can be used by any controller. The controller passes an [Owner], the desired objects and the inventory of
// the last apply:
//
//	engine := apply.New(c, apply.Options{})
//	set := apply.Set{Owner: owner, Objects: objects, Inventory: inventory, Record: store}
//	result, err := engine.Sync(ctx, set, nil, v1alpha1.DeletePolicy{})
//
// [Engine.Sync] applies the objects and deletes those that the set no longer contains. [Engine.Apply] and
// [Engine.Prune] are the two parts of it. An owner can be an object of this or of another cluster, in any namespace, or
// no object at all.
//
// # Detection of differences
//
// The engine uses server-side apply, and the API server records the fields that each field manager has applied. A
// manager that changes a field becomes its only owner. So an object is unchanged while the engine's field manager owns
// all fields of the manifest, which the metadata of the object show. The engine compares no values, so defaults,
// conversions and admission webhooks do not look like drift. An annotation contains the hash of the manifest that was
// applied last. With a watch of metadata ([Options.Metadata]), an unchanged object costs no request, also after a
// restart.
//
// # Ownership
//
// An object belongs to an owner if it has the annotation [Owner.Mark], or if the inventory contains its UID. The mark
// is derived from the name of the owner, so an owner that was deleted and created again still has its objects. Because
// of the UID, an edit of the metadata is corrected like any other edit. Objects have no owner reference: Kubernetes
// deletes nothing when the owner is deleted. [Object.Takeover] decides whether the engine takes over an existing object
// that it has not applied. Several owners can share an object while their manifests agree. Otherwise, the later owner
// gets a conflict that names the field manager of the other one, and its manifest is never forced.
//
// Each write is bound to the observed state. A creation fails if the object exists, and an update fails if the object
// has another UID. So the engine does not overwrite an object that another client creates meanwhile.
//
// # Writes of other clients
//
// The engine drops fields from manifests that controllers of Kubernetes write in every cluster: revision annotations,
// the rules of aggregated ClusterRoles, placeholders of CA bundles, the data of token Secrets, the selector and labels
// with the UID of a Job, the finalizer of the Job controller on pods, and status. It does not apply the ConfigMap
// kube-root-ca.crt.
//
// The engine corrects an edit immediately. If the same fields are changed repeatedly, the pause before the next
// correction doubles from 2 seconds to 5 minutes after three corrections, and the reason is Contested: the message
// names the fields, the other field manager and the remedy. Other fields of the object, and edits by other field
// managers, are still corrected immediately. The history is in memory and is lost on a restart.
//
// An edit can make the merge of manifest and object invalid, for example by another member of a union. Then the engine
// uses the managed fields: it takes over the fields that conflict, in the struct or list item that the API server
// names, and applies again. A takeover of an object takes the fields of the manifest from kubectl, Helm and other
// deployers. Managed fields of an earlier API version are migrated.
//
// [Object.Additions] decides whether the engine reports or removes additions to an object: fields, keys of maps and
// items of lists that the manifest does not have. With the drift policy Ignore, an edit stays until the manifest
// changes.
//
// A manifest that the API server rejects is sent again when it changes, or after a pause that doubles from one second
// to 5 minutes. The pause after a forbidden request is at most 30 seconds, because a permission may be granted at any
// time. The engine drops the namespace of an object of a cluster-scoped kind, and adds a warning to the message of the
// change. A Job with ttlSecondsAfterFinished runs once per manifest. With [Object.Recreate], an object is deleted and
// created again when the manifest changes an immutable field. The annotation [v1alpha1.DisabledAnnotation] on an object
// stops its apply or its deletion.
//
// # Crash safety
//
// [Set.Record] stores the inventory before the engine writes the first object that is not in it. [Engine.Prune] removes
// an entry only after the API server has responded that the object does not exist, or that it belongs to another owner.
// So every applied object can be found after a crash at any time. Deletions have the UID and the resourceVersion of the
// observed object as preconditions.
//
// # Order
//
// Kinds are applied in waves, see [Wave]. Namespaces and CustomResourceDefinitions are first, and the engine waits
// until they can be used; webhooks are last. The objects of a wave are applied concurrently. A [Gate] can delay a wave
// until the one before is ready. Objects are deleted in the reverse order, and each wave waits until the objects of the
// one before are gone.
//
// # Permissions
//
// The engine needs get, create, patch and delete on the kinds that it applies, because server-side apply of a missing
// object requires create and patch. It uses list, if permitted, to save requests. Each request has a deadline. Requests
// of the discovery client have the deadline of that client.
package apply
