// Package fleet starts a hub and members inside a test's process, so that a product can test its own controllers
// together with muster's.
//
//	hub := fleet.StartHub(t, plane.Config(), fleet.HubOptions{
//		Setups: []func(manager.Manager) error{product.SetupWithManager},
//	})
//	hub.JoinHollow(3, fleet.HollowOptions{})
//
// The hub and the agents are those that package assembly sets up. The API servers are planes of package localplane. A
// member that Join adds applies Works and needs a control plane for itself. The hollow members that JoinHollow adds
// share one control plane and apply no Works, so a test can have thousands of them.
//
// A failure ends the test. Call all functions from the goroutine that runs the test. Everything that a function starts
// ends with the test, in reverse order.
package fleet
