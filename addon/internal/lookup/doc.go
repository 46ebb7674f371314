// Package lookup finds the configurations that the references of add-ons name, of any kind, and tells when they change.
//
// A [Finder] is told by [Finder.Find] what a user asks for, and calls [Options].Changed when that has become something else: an object
// is there or gone, its content is another one by [config.Hash], or nobody knows any more, or knows again. It is silent when only metadata or status has changed.
//
// # What is kept
//
// AddonConfigs and AddonTemplates come from the manager's cache, which has them for the controllers. Any other kind is watched there by its
// metadata alone, and what somebody asks for is read from the API server: once for each version, however many ask, and kept for as long as
// one does. So of the hub's Secrets and ConfigMaps nothing is in memory but their metadata, and of that cache.Options.DefaultTransform can leave
// out more, such as managedFields.
//
// # What cannot be known
//
// A kind that the hub does not have, that may not be read, or that is slow is a [Problem] of what is of that kind, and neither an error nor
// a reason to take an object for missing. It is found out within five seconds, tried again every fifteen for all users together, and
// Changed says when it is over: a definition that is installed later is found without a restart. A kind that comes back in other versions alone is not, as the
// manager's mapper keeps those that it has seen.
//
// What a manager's cache does not say is that a watch has stopped to work. That permissions were taken away after a kind was first listed is seen when an object
// has to be read again, and not before.
//
// # Permissions
//
// The hub's controller needs get, list and watch on all kinds that add-ons declare in spec.configs: in the whole cluster or, where the manager's cache
// is restricted to namespaces, in these. An object in another namespace is a Problem.
package lookup
