package fleet

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

const controllerName = "muster-fleet"

// SetupWithManager adds the connections of a hub to its members to a manager, whose config must connect to the hub.
// The CustomResourceDefinitions must be installed before the manager starts; see package crds. The error names the
// invalid option or the failed step.
//
// The leader runs runners and writes conditions. Replicas that are not the leader connect to members only if their
// [Provider] is started.
//
// The fleet has its own cache of MemberClusters and of the metadata of Secrets in Options.Namespaces.
func SetupWithManager(mgr manager.Manager, o Options) (*Fleet, error) {
	options, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	f, err := newFleet(mgr, options)
	if err != nil {
		return nil, fmt.Errorf("set up the fleet: %w", err)
	}
	if err := f.setup(mgr); err != nil {
		return nil, fmt.Errorf("set up the fleet: %w", err)
	}
	return f, nil
}

func newFleet(mgr manager.Manager, options Options) (*Fleet, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	namespaces := map[string]cache.Config{}
	for _, namespace := range options.Namespaces {
		namespaces[namespace] = cache.Config{}
	}
	// Workers limits the concurrent reads; a rate limit would delay the start of a hub with many members.
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.RateLimiter = -1, nil
	objects, err := cache.New(config, cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject:         map[client.Object]cache.ByObject{secretMetadata(): {Namespaces: namespaces}},
	})
	if err != nil {
		return nil, fmt.Errorf("create the cache of the fleet: %w", err)
	}
	direct, err := client.New(config,
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("create the client of the fleet: %w", err)
	}
	f := &Fleet{
		options: options, cache: objects, client: direct,
		log: mgr.GetLogger().WithName(controllerName), recorder: mgr.GetEventRecorder(controllerName), elected: mgr.Elected(),
		metrics: newMetrics(options.Runners),
	}
	f.goroutines = newGoroutines(func(name string) *member { return newMember(f, name) })
	return f, nil
}

// everywhere makes the manager start a cache in every replica, before its users: a cache with options by kind would
// otherwise start on the leader only.
type everywhere struct{ cache.Cache }

// GetCache identifies the runnable as a cache for the manager.
func (e everywhere) GetCache() cache.Cache { return e.Cache }

func (f *Fleet) setup(mgr manager.Manager) error {
	if err := errors.Join(mgr.Add(everywhere{f.cache}), mgr.Add(f)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: f.options.Workers,
			ReconciliationTimeout:   requestTimeout,
			NeedLeaderElection:      new(false), // it only observes
			SkipNameValidation:      new(true),  // one program may be the hub of several fleets
		}).
		WatchesRawSource(source.Kind(f.cache, &v1alpha1.MemberCluster{},
			&handler.TypedEnqueueRequestForObject[*v1alpha1.MemberCluster]{})).
		WatchesRawSource(source.Kind(f.cache, secretMetadata(),
			handler.TypedEnqueueRequestsFromMapFunc(f.secrets.membersOf))).
		Complete(tracing.Reconciler(controllerName, f))
}
