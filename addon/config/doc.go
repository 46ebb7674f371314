// Package config determines which configurations apply to an add-on on a member, and merges them. The package is pure:
// it uses no client and no clock.
//
//   - [Effective] selects the configurations that apply, from the defaults of the add-on, the install strategy and the
//     member.
//   - [Resolve] adds the hashes of their contents, computed by [Hash], and reports missing ones.
//   - [Revision] identifies the desired state of the add-on on the member. It changes when that state changes.
//   - [Values] merges AddonConfigs, and [Settings.Apply] applies the result to manifests.
//
// # Selection
//
// The add-on declares the kinds that it supports. For each kind separately, the highest level that lists a
// configuration applies, and lower levels are ignored: defaults, then the install strategy of the member's Placement,
// then the member. Several configurations of one kind keep their order. If one is listed twice, only its last position
// counts, which has the same effect since later ones take precedence. A configuration of an undeclared kind is rejected
// and reported; the others still apply.
//
// # Several AddonConfigs
//
// Later AddonConfigs take precedence over earlier ones:
//
//   - installNamespace: the last one that is set.
//   - variables: the last value of each name. An empty value is a value.
//   - nodePlacement, proxy: the last one that is set, as a whole. An empty one, {}, removes earlier ones.
//   - registries, resources: all entries apply, those of later AddonConfigs first. To exempt an image or a container
//     from an earlier entry, list it in a later one: a registry whose mirror is its source, or empty resources.
//
// # Manifests
//
// [Settings.Apply] changes objects with pods: Deployments, DaemonSets, StatefulSets and ReplicaSets of apps, Jobs and
// CronJobs of batch, Pods and ReplicationControllers.
//
//   - The node selector is merged into that of the pods. The value of the configuration replaces an existing one,
//     because the author of the manifest cannot know the nodes. Tolerations are added unless an identical one exists.
//   - Images of containers, init containers and image volumes come from the mirror of the first matching registry.
//   - Containers and init containers get HTTP_PROXY, HTTPS_PROXY and NO_PROXY, in upper and lower case, because curl
//     and wget read only http_proxy. If a container sets either spelling, it gets neither, because two different values
//     would be worse than none. Variables from a ConfigMap or Secret (envFrom) are not visible here and are overridden.
//   - The resources of the last matching entry replace those of containers and init containers. Empty ones remove them.
//     Kinds match case-insensitively: deployment/web matches Deployment/web.
//
// # Registries
//
// A source is a prefix of an image name up to its end or a '/', '@' or ':' that starts a tag: quay.io/example matches
// quay.io/example/web:1 and quay.io/example@sha256:..., but not quay.io/example2/web; quay.io does not match
// quay.io:5000/web. The mirror replaces the source. The rest of the name, including tag and digest, stays.
//
// Images of Docker Hub have short names. The source docker.io matches all of them: web as docker.io/library/web, and
// example/web as docker.io/example/web. A source can also be a short name as written in the manifest.
//
// An empty source matches all images. The mirror replaces the host of the registry, and the path stays:
// quay.io/example/web and web become mirror/example/web and mirror/library/web, as in pull-through caches.
//
// An image that already comes from a mirror does not change, unless a matching source begins with that mirror and is
// longer. Applying settings twice, as Go agents may do, therefore has no further effect, unless a mirror is itself a
// prefix of a source.
package config
