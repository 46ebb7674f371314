package clusterapi_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/clusterapi"
	"github.com/muster-sdk/muster/membership/push"
)

// A complete hub imports the production Clusters of one namespace, and runs their agents.
func Example() {
	setup := func(ctx context.Context, mgr ctrl.Manager) error {
		return assembly.SetupHub(ctx, mgr, assembly.HubOptions{
			Connections: &assembly.Connections{
				Push: &push.Options{},
				ClusterAPI: &clusterapi.Options{
					Namespaces:   []string{"clusters"},
					Selector:     labels.SelectorFromSet(labels.Set{"env": "production"}),
					LeaveDeleted: true,
				},
			},
		})
	}
	_ = setup // It runs in the program of the hub, with the manager's context.
	fmt.Println(clusterapi.ImportLabel)
	// Output: membership.muster.dev/import
}
