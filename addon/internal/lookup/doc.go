// Package lookup reads the configurations that add-ons reference, of any kind, and reports when they change.
//
// [Finder.Find] registers the references of a user, and [Options].Changed is called when the result of Find has
// changed: an object was created or deleted, its content by [config.Hash] has changed, or its state became unknown or
// known. Changes of metadata and status are not reported.
//
// # Memory
//
// AddonConfigs and AddonTemplates come from the manager's cache. For all other kinds the cache contains only metadata,
// and referenced objects are read from the API server: once for each version, regardless of the number of users, and
// kept while there is a user. Of Secrets and ConfigMaps, only metadata is cached, which cache.Options.DefaultTransform
// can reduce, for example by managedFields.
//
// # Unknown configurations
//
// If the hub does not have a kind, does not permit its use, or is slow, the objects of that kind are a [Problem]. This
// is neither an error nor treated as a missing object. The condition is detected within five seconds and checked again
// every fifteen seconds, once for all users, and Changed reports its end: a definition that is installed later is found
// without a restart. The exception is a kind that returns in other versions only, because the manager's mapper keeps
// the versions that it has read.
//
// A manager's cache does not report that a watch has stopped working. If permissions are removed after a kind was first
// listed, this is detected when an object must be read again.
//
// # Permissions
//
// The hub's controller needs get, list and watch for all kinds that add-ons declare in spec.configs: cluster-wide, or
// in the namespaces of the manager's cache if the cache is restricted. An object in another namespace is a Problem.
package lookup
