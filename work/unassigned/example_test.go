package unassigned_test

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/work/unassigned"
)

// A hub without package assembly adds the controller to its manager. Package assembly adds it to a complete hub.
func ExampleSetupWithManager() {
	setup := func(mgr manager.Manager) error {
		return unassigned.SetupWithManager(mgr, unassigned.Options{})
	}
	_ = setup
}
