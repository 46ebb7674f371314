// Package mustertest tests controllers on real control planes, as muster's own tests do. It needs Go and nothing else:
// no containers, and no cluster.
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
//   - [StartPlane] and package localplane: control planes, shared ones, nodes without machines, and faults such as a
//     killed, paused or restored API server and a network that is cut, slow or silent.
//   - Package fleet: a complete hub, members, and thousands of hollow members.
//   - Package apiserver: an API server in memory.
//   - [Grant] and [GrantFiles]: users with the roles that a product ships.
//   - [RequestCounter] and [Crash]: the requests of a controller, and its end at any of them.
//   - [Clock], [Eventually] and [Quiet]: time.
//
// # Rules
//
// Everything that a function starts ends with the test. A function that takes a testing.TB ends the test if it fails,
// so the goroutine that runs the test must call it, unless its comment says otherwise. Timeouts are generous, for
// machines that run many tests at once.
//
// Production code must not import this package.
package mustertest
