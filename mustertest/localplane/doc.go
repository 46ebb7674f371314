// Package localplane starts real Kubernetes control planes on this machine, for examples and tests: etcd,
// kube-apiserver and kube-controller-manager, and on request kube-scheduler and kwok for nodes on
// which pods become ready. It needs Go and nothing else, on Linux or macOS.
//
//	plane, err := localplane.Start(ctx, localplane.Options{Nodes: 1})
//	if err != nil {
//		return err
//	}
//	defer plane.Stop()
//	mgr, err := manager.New(plane.Config(), manager.Options{})
//
// In a test, ForTest does all that in one line. Shared is a plane that all tests of a package use,
// and a Pool is several planes for tests in parallel.
//
// # What a plane does
//
// It behaves as a cluster does: RBAC is on, certificates are signed when a CertificateSigningRequest is approved,
// tokens of service accounts expire, namespaces terminate, owners are followed by garbage collection. Config and
// Kubeconfig are those of an admin, User is anybody else. On the nodes that Options ask for, Deployments become
// available and Jobs complete, though nothing is executed.
//
// It differs from a cluster where that makes it quick: etcd does not wait for the disk, the controllers have
// no client-side rate limits to speak of, there is one of each, and a deleted namespace is emptied without the pauses
// of several seconds that Kubernetes makes for clusters with several API servers.
//
// # Faults
//
// KillAPIServer and StartAPIServer crash an API server and bring it back with its data. PauseAPIServer suspends it.
// Restore puts a plane back to an earlier Snapshot, as an administrator restores a backup of etcd. A Proxy in
// front of it, or of anything else, is a network that can be cut, stall, be slow and heal:
//
//	proxy, err := localplane.NewProxy(plane.Config().Host)
//	...
//	cfg := proxy.Config(plane.Config())
//	proxy.Stall() // A partition: nothing is refused, nothing arrives.
//
// # Where the programs come from
//
// From the folder that KUBEBUILDER_ASSETS names, or else from setup-envtest. Programs that are missing there are built
// once from sources that this package contains, and kept in the user's cache. The build needs Go, takes some minutes
// the first time and downloads modules through the Go module proxy (see Binaries).
//
// # What stays behind
//
// Nothing, also after kill -9 of this process: a watchdog, one small shell for each plane, notices the
// end of this process, kills the components and removes the folder. Components have sessions of their own, so Ctrl-C in
// the terminal reaches only this process, which may then take its time and call Stop.
package localplane
