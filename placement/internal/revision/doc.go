// Package revision keeps the history of WorkSets: what their clusters have got, so that a rollout knows what it comes
// from and can go back.
//
// A revision is a [Content]: objects, overrides, the division of replicas, and how Works treat them. It is named for
// its [Content.Hash], so the same content is the same revision, whenever and by whichever process it is saved, and
// none is ever changed. The hash is made to last: of the order of objects, of what is empty or has its default, and
// of fields that later releases add it knows nothing, since a hash that changes with an upgrade would roll out every
// WorkSet of the hub to all clusters.
//
// Hash, [Name] and [Prune] are pure; a [Store] keeps revisions on the hub. A controller calls [Store.List], makes the
// Content that is wanted now, and calls [Store.Save] if the list does not begin with its hash; what it rolls out it has
// from [Store.Load]; then it deletes what Prune says.
//
// # On the hub
//
// A revision is one or more [v1alpha1.WorkSetRevision] objects, in the namespace of the WorkSet, which owns them:
// they go with it. The API server refuses changes of their spec. A revision with more than about
// [workv1alpha1.MaxManifestBytes] of objects has several parts, and counts when all of them are there. For
// web-5f6d8c9b7a12 they are
//
//	web-5f6d8c9b7a12                         or, of three, web-5f6d8c9b7a12-1, -2 and -3
//	placement.muster.dev/workset=web         label, by v1alpha1.LabelValue
//	placement.muster.dev/revision=...        label, by v1alpha1.LabelValue
//	placement.muster.dev/revision-hash       annotation: the whole hash
//	placement.muster.dev/revision-part       annotation: 1/3
//	placement.muster.dev/revision-objects    annotation: how many the revision has
//	placement.muster.dev/revision-number     annotation: the highest of the parts counts
//
// The annotations repeat the spec, and the field number, for who reads metadata alone. spec.content has a version of
// its format; a release that does not know what a later one has written says so, and touches nothing.
//
// # Others
//
// What others do to labels or annotations can hide a revision from List, but changes nothing of what Load returns, and
// the next Save of that content mends it. Save never touches a WorkSetRevision that another object controls. Those of a
// WorkSet that was deleted and made anew go with the deleted one: Save returns an error until the garbage collector has
// taken them away, rather than adopt what it may be about to delete. Those that were left when a WorkSet was deleted
// with --cascade=orphan are adopted, if their spec is what it would be.
//
// # Secrets
//
// A revision has all objects of its WorkSet in it, Secrets too, and who may read it reads them all. The ClusterRoles
// view, edit and admin of Kubernetes do not include WorkSetRevisions, as they do ControllerRevisions; nor do they
// include Works. They are read by who has a rule for them: cluster-admin, the controller, and users who may read all
// resources of placement.muster.dev. So grant people worksets and not *, and aggregate no rule for worksetrevisions
// to view, unless all who view may read the Secrets, too.
//
// An EncryptionConfiguration that names secrets does not cover custom resources. Where a hub encrypts Secrets at rest,
// let its list of resources also have
//
//   - worksetrevisions.placement.muster.dev
//   - works.work.muster.dev
//
// What was stored before stays as it was until it is written again, as it is, by kubectl replace.
package revision
