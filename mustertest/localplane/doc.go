// Package localplane starts real Kubernetes control planes on this machine, for examples and tests: etcd,
// kube-apiserver and kube-controller-manager. On request it also starts kube-scheduler, and kwok for nodes on which
// pods become ready. It needs only Go, on Linux or macOS.
//
//	plane, err := localplane.Start(ctx, localplane.Options{Nodes: 1})
//	if err != nil {
//		return err
//	}
//	defer plane.Stop()
//	mgr, err := manager.New(plane.Config(), manager.Options{})
//
// In a test, ForTest does all of this in one line. Shared is one plane for all tests of a package. A Pool has several
// planes for parallel tests.
//
// # Behavior
//
// A plane behaves like a cluster: RBAC is enabled, approved CertificateSigningRequests are signed, tokens of service
// accounts expire, namespaces terminate, and the garbage collector deletes dependents of deleted owners. Config and
// Kubeconfig have the permissions of an administrator. User returns a config for any other user. On the nodes that
// Options request, Deployments become available and Jobs complete, although no containers run.
//
// A plane differs from a cluster where the difference makes it faster. etcd does not wait for the disk. The controllers
// have almost no client-side rate limits, and evaluate HorizontalPodAutoscalers each second. Each component has one
// replica. The contents of a deleted namespace are deleted without the delays of several seconds that Kubernetes has
// for clusters with several API servers.
//
// # Faults
//
// KillAPIServer and StartAPIServer crash an API server and start it again with its data. PauseAPIServer suspends it.
// Restore resets a plane to an earlier Snapshot, as an administrator restores a backup of etcd. A Proxy in front of an
// API server, or of any other server, simulates a network that is cut, stalled, slow or healed:
//
//	proxy, err := localplane.NewProxy(plane.Config().Host)
//	...
//	cfg := proxy.Config(plane.Config())
//	proxy.Stall() // A partition: connections stay open, and no data arrives.
//
// # Origin of the programs
//
// The programs come from the folder that KUBEBUILDER_ASSETS names, or else from setup-envtest. Programs that are
// missing there are built once, from sources that this package contains, and are kept in the user's cache. The build
// needs Go, takes some minutes the first time and downloads modules through the Go module proxy (see Binaries).
//
// # Cleanup
//
// Nothing remains after the end of this process, even after kill -9. Each plane has a watchdog, which is a small shell
// process. When this process ends, the watchdog kills the components and removes the plane's folder. Components run in
// separate process groups, so Ctrl-C in the terminal reaches only this process, which can then call Stop.
package localplane
