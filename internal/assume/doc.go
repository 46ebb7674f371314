// Package assume keeps what this process has written until its watches report it.
//
// The cache of an informer lags behind the last write. A controller that decides from it can repeat a write, or take
// one back. A [Cache] contains the newest version of each object that this process knows, from a watch or from the
// response to a write. [Versions] is for controllers that read from the cache of their manager: it reports whether this
// cache contains the last write.
//
// Both compare resourceVersions. That versions can be compared is a promise of Kubernetes since 1.35, and what all API
// servers did before. Of a server that breaks it, the version that came last counts as the newer one.
package assume
