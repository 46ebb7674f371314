// Package revision stores the history of WorkSets: the contents that their clusters have received, so that a rollout
// knows the previous content and can be rolled back.
//
// A revision is a [Content]: objects, overrides, the division of replicas, and the options of Works. Its name contains
// its [Content.Hash], so equal contents are the same revision, independently of the time and the process that saves
// them. A revision never changes. The hash is stable across releases: it does not depend on the order of objects, on
// fields that are empty or have their defaults, or on fields that later releases add. If an upgrade changed the hash,
// it would roll out every WorkSet of the hub to all clusters.
//
// Content.Hash, [Name] and [Prune] are pure. A [Store] reads and writes revisions on the hub. A controller calls
// [Store.List], computes the desired Content, and calls [Store.Save] if the newest revision has another hash. It reads
// the content to roll out with [Store.Load]. Then it deletes the revisions that Prune returns.
//
// # Objects on the hub
//
// A revision consists of one or more [v1alpha1.WorkSetRevision] objects in the namespace of the WorkSet. The WorkSet
// owns them, so they are deleted with it. The API server rejects changes of their spec. A revision with more than about
// [workv1alpha1.MaxManifestBytes] of objects has several parts, and is complete when all of them exist. The objects of
// web-5f6d8c9b7a12 are:
//
//	web-5f6d8c9b7a12                         or, for three parts, web-5f6d8c9b7a12-1, -2 and -3
//	placement.muster.dev/workset=web         label, by v1alpha1.LabelValue
//	placement.muster.dev/revision=...        label, by v1alpha1.LabelValue
//	placement.muster.dev/revision-hash       annotation: the complete hash
//	placement.muster.dev/revision-part       annotation: 1/3
//	placement.muster.dev/revision-objects    annotation: the number of objects of the revision
//	placement.muster.dev/revision-number     annotation: the highest number of the parts applies
//
// The annotations repeat the spec and the field number for clients that read only metadata. spec.content contains the
// version of its format. If a later release has written a format that this release does not know, the Store returns an
// error and changes nothing.
//
// # Changes by other clients
//
// A client that changes labels or annotations can hide a revision from List, but does not affect the result of Load.
// The next Save of the content repairs the metadata. Save never changes a WorkSetRevision that another object controls.
// If a WorkSet was deleted and created again, the WorkSetRevisions of the deleted one are deleted with it: Save returns
// an error until the garbage collector has deleted them, and does not adopt objects that it may be about to delete.
// WorkSetRevisions that remain after a deletion with --cascade=orphan are adopted if they have the expected spec.
//
// # Secrets
//
// A revision contains all objects of its WorkSet, including Secrets, and a user who can read the revision can read all
// of them. The ClusterRoles view, edit and admin of Kubernetes include ControllerRevisions, but neither
// WorkSetRevisions nor Works. WorkSetRevisions can be read by users with an explicit rule: cluster-admin, the
// controller, and users who may read all resources of placement.muster.dev. So grant users worksets and not *, and do
// not aggregate a rule for worksetrevisions to view, unless all users with view may read the Secrets, too.
//
// An EncryptionConfiguration that names secrets does not cover custom resources. If a hub encrypts Secrets at rest, add
// to its list of resources:
//
//   - worksetrevisions.placement.muster.dev
//   - works.work.muster.dev
//
// Existing objects are not encrypted until they are written again without changes by kubectl replace.
package revision
