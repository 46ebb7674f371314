// Package mustertest tests controllers on real control planes, as muster's own tests do. It needs only Go: no
// containers and no cluster.
//
//	var plane = localplane.Shared{Options: localplane.Options{Name: "shop"}}
//
//	func TestMain(m *testing.M) { mustertest.Main(m, &plane) }
//
//	func TestShop(t *testing.T) {
//		config, scheme := plane.ForTest(t).Config(), mustertest.Scheme(v1alpha1.AddToScheme)
//		c := mustertest.Client(t, config, scheme, crds.Install)
//		namespace := mustertest.Namespace(t, c)
//		mustertest.StartManager(t, config, manager.Options{Scheme: scheme}, shop.SetupWithManager)
//		...
//		mustertest.Eventually(t, time.Minute, "shop in "+namespace+" is open", func() error { ... })
//	}
//
// # Contents
//
//   - [StartPlane] and package localplane: control planes, shared ones, simulated nodes, and faults: an API server that
//     is killed, paused or restored, and a network that is cut, slow or stalled.
//   - Package fleet: a complete hub, members, and thousands of hollow members.
//   - Package apiserver: an API server in memory.
//   - [Grant] and [GrantFiles]: users with the roles that a product ships.
//   - [RequestCounter] and [Crash]: counts of the requests of a controller, and a crash at any of its writes.
//   - [Clock], [Eventually] and [Quiet]: a clock with an offset, and waits.
//
// # Rules
//
// Everything that a function starts ends with the test. A function with a testing.TB parameter ends the test if it
// fails. Call it from the goroutine that runs the test, unless its comment allows other goroutines. Timeouts are
// generous, for machines that run many tests at the same time.
//
// Production code must not import this package.
package mustertest
