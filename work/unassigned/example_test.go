package unassigned_test

import (
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/work/unassigned"
)

// A hub that is set up part by part adds the controller to its manager. A complete hub, see package assembly, has it.
func ExampleSetupWithManager() {
	setup := func(mgr manager.Manager) error {
		return unassigned.SetupWithManager(mgr, unassigned.Options{})
	}
	_ = setup
}
