// Package config says which configurations count for an add-on on a member, and what they say. It is pure: no client, no clock.
//
//   - [Effective] picks the configurations that count, of the add-on's defaults, the install strategy and the member.
//   - [Resolve] gives them the hashes of what they say, by [Hash], and tells which are missing.
//   - [Revision] names all that the add-on is to be on the member, so that it has changed when the name has.
//   - [Values] makes one of several AddonConfigs, and [Settings.Apply] puts it into manifests.
//
// # Which count
//
// The add-on declares the kinds that it takes. For each of them, by itself, the highest level that names any configuration counts, and all that the
// lower ones name of that kind does not: defaults, above them the install strategy's for the Placement that the member is in, above them the
// member's own. Several of one kind keep their order. One that is named twice counts once, where it is named last: since what comes later goes before,
// that is what twice would come to. A configuration of a kind that the add-on does not declare is refused and told of;
// the others count as ever.
//
// # Several AddonConfigs
//
// What a later one says goes before what an earlier one says:
//
//   - installNamespace: the last one that is set.
//   - variables: each name by itself. An empty value is a value.
//   - nodePlacement, proxy: the last one that is there, as a whole, for a selector or a proxy is of one piece. An empty one, {}, takes
//     away what earlier ones say.
//   - registries, resources: all of them count, those of later ones first. To have an image or a container left alone that an earlier one
//     changes, let a later one name it: a registry whose mirror is its source, or resources that are empty.
//
// # What becomes of manifests
//
// [Settings.Apply] changes what has pods: Deployments, DaemonSets, StatefulSets and ReplicaSets of apps, Jobs and CronJobs of batch, Pods and
// ReplicationControllers.
//
//   - The node selector is added to that of the pods. Where both have the same label the configuration's value counts: who has written the manifest
//     cannot know the nodes. Tolerations are added, but not those that are there already, to the letter.
//   - Images of containers, init containers and image volumes come from the mirror of the first registry that they match.
//   - Containers and init containers get HTTP_PROXY, HTTPS_PROXY and NO_PROXY, each also in lower case, since curl and wget heed http_proxy
//     alone. A container that has either of the two itself keeps what it has and gets neither, for two that differ would be worse than none. What
//     it has from a ConfigMap or Secret, by envFrom, cannot be seen here, and loses.
//   - Containers and init containers get the resources of the last entry that matches, in place of all that they have; empty ones take them away.
//     Kinds match in any case of letters, so that deployment/web is Deployment/web.
//
// # Registries
//
// A source is the beginning of an image's name, up to the end or a '/', '@' or ':' that begins a tag: quay.io/example is that of
// quay.io/example/web:1 and quay.io/example@sha256:..., and of neither quay.io/example2/web nor, in the case of quay.io, quay.io:5000/web. The mirror takes its
// place, and all behind it stays, the tag and the digest too.
//
// Images of Docker Hub have short names. The source docker.io is that of them all, of web as docker.io/library/web and of example/web as
// docker.io/example/web; a source may be a short name as well, as it is written in the manifest.
//
// An empty source is that of all images. The mirror takes the place of the registry's host, and the path stays: quay.io/example/web and web become
// mirror/example/web and mirror/library/web, as registries that mirror others have them.
//
// An image that comes from a mirror already stays what it is, unless the source that it matches begins with that mirror and says more. So to apply
// settings twice is the same as once, for Go agents that do it themselves; but for a mirror that is itself the beginning of a source.
package config
