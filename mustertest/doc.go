// Package mustertest has what the tests of controllers on real control planes need: clients and namespaces, users with generated roles, managers
// that end with their test, waits that say what was wrong, and wires, which count the requests of a controller or end it at any of them.
//
//	var plane = localplane.Shared{Options: localplane.Options{Name: "shop"}}
//
//	func TestMain(m *testing.M) { mustertest.Main(m, &plane) }
//
//	func TestShop(t *testing.T) {
//		config, scheme, wire := plane.ForTest(t).Config(), mustertest.Scheme(v1alpha1.AddToScheme), &mustertest.Wire{}
//		c := mustertest.Client(t, config, scheme, crds.Install)
//		namespace := mustertest.Namespace(t, c)
//		config.Wrap(wire.Over)
//		stop := mustertest.StartManager(t, config, manager.Options{Scheme: scheme}, shop.SetupWithManager)
//		...
//		mustertest.Quiet(t, time.Second, func() string { return fmt.Sprint(wire.Writes()) })
//	}
//
// What it starts ends with the test. It fails the test where something cannot be done, so it is called by the goroutine that runs it, unless
// a function says otherwise. All deadlines are generous, for machines that have more to do.
package mustertest
