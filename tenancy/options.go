package tenancy

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/internal/requiredkinds"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// Options are the options of the controllers. The zero value is a working default.
type Options struct {
	// WithoutGlobal omits the ClusterSet global. Default false: the hub creates it at its start if it does not exist.
	WithoutGlobal bool
	// Now returns the time for conditions. Nil: time.Now.
	Now func() time.Time
}

// SetupWithManager adds the controllers of ClusterSets and ClusterSetBindings to a manager, and returns the resulting
// rules. The manager's scheme must have tenancy/v1alpha1, placement/v1alpha1 and membership/v1alpha1. The
// CustomResourceDefinitions of all three must be served when the manager starts. The controllers run on the leader
// only.
func SetupWithManager(mgr manager.Manager, o Options) (*Grants, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("ClusterSet"),
		placementv1alpha1.GroupVersion.WithKind("PlacementDecision"),
		membershipv1alpha1.GroupVersion.WithKind("MemberCluster")); err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("create the discovery client: %w", err)
	}
	grants := newGrants(func(ctx context.Context) (bool, error) {
		state, err := definition.Of(ctx, d, v1alpha1.GroupVersion.WithResource("clustersetbindings"))
		return state == definition.Served, err
	})
	grants.cache, grants.log = mgr.GetCache(), mgr.GetLogger().WithName("muster-tenancy")
	return grants, setupControllers(mgr, o)
}
