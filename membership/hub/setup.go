package hub

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/registration/csr"
	"github.com/muster-sdk/muster/membership/registration/identity"
	"github.com/muster-sdk/muster/membership/registration/jointoken"
	"github.com/muster-sdk/muster/membership/registration/token"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// SetupWithManager adds a hub to a manager: the controllers of MemberClusters, JoinRequests and JoinTokens, and the
// watcher of heartbeats. All of them run on the leader only. The manager's config must be that of the hub.
//
// The manager's scheme must contain membership/v1alpha1, and the CustomResourceDefinitions must be installed before the
// manager starts; see package crds. If etcd is restored to an earlier state while the hub runs, which the hub detects
// within ten seconds, the manager ends with an error: the program must start again, so that all caches are rebuilt. The
// hub has its own clients and caches, which contain muster's own objects and other objects with muster's label only.
// The error names the invalid option or the failed step.
func SetupWithManager(mgr manager.Manager, o Options) error {
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("MemberCluster")); err != nil {
		return err
	}
	options, err := o.withDefaults()
	if err != nil {
		return err
	}
	hub, err := newCluster(mgr, options)
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}
	if err := mgr.Add(hub); err != nil {
		return fmt.Errorf("add the hub's caches to the manager: %w", err)
	}
	leases, err := coordinationclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client for Leases: %w", err)
	}
	if options.Issuers == nil {
		options.Issuers = map[v1alpha1.CredentialType]membership.Issuer{
			v1alpha1.CredentialCertificate: &csr.Issuer{Client: hub.GetClient(), Reader: hub.GetAPIReader(),
				Clock: options.Clock},
			v1alpha1.CredentialToken:    &token.Issuer{Client: hub.GetClient(), Reader: hub.GetAPIReader()},
			v1alpha1.CredentialIdentity: identity.Issuer{},
		}
	}

	store := &storeversion.Monitor{
		Reader: hub.GetAPIReader(), List: &v1alpha1.MemberClusterList{}, Watched: &coordinationv1.LeaseList{},
		Server: mgr.GetConfig().Host, Clock: options.Clock,
	}
	if err := mgr.Add(store); err != nil {
		return fmt.Errorf("add the monitor of the hub's store to the manager: %w", err)
	}

	hubID := &hubIdentity{client: hub.GetClient(), reader: hub.GetAPIReader(), namespace: options.RegistrationNamespace}
	left := &tombstones{
		client: hub.GetClient(), reader: hub.GetAPIReader(), namespace: options.RegistrationNamespace,
		ttl: options.TombstoneTTL, limit: options.MaxTombstones, clock: options.Clock,
	}
	roles, err := rbacclient.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client for ClusterRoles: %w", err)
	}
	common := &shared{identity: hubID, tombstones: left, client: hub.GetClient(), reader: hub.GetAPIReader(),
		roles: roles.RESTClient(), options: options}
	if err := mgr.Add(manager.RunnableFunc(common.run(mgr))); err != nil {
		return err
	}

	definitions, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("create a client for the API server's discovery: %w", err)
	}
	members := &members{
		client: hub.GetClient(), reader: hub.GetAPIReader(), options: options,
		recorder: mgr.GetEventRecorder("muster-hub"), extensions: newExtensions(options),
		deletions: deletions{discovery: definitions},
		retries: retries{
			conflicts: newConflictPauses(), cache: hub.GetClient(), reader: hub.GetAPIReader(), store: store,
		},
		tombstones: left,
		epochs: &consistency{
			identity: hubID, cache: hub.GetClient(), reader: hub.GetAPIReader(), clock: options.Clock, stale: store.Report,
		},
	}
	late := &lateQueue{}
	watcher := heartbeat.NewWatcher(notedLeases{leases.Leases(""), store.Note}, members.memory.names.member,
		heartbeat.WatcherOptions{
			Policy: options.Heartbeat, OnChange: late.add,
			OnOutage: recordOutage(mgr.GetEventRecorder("muster-hub"), options.RegistrationNamespace), Clock: options.Clock,
			Log: log(mgr, "heartbeat"),
		})
	members.heartbeats = watcher
	if err := mgr.Add(watcher); err != nil {
		return fmt.Errorf("add the watcher of heartbeats to the manager: %w", err)
	}
	if err := members.setup(mgr, hub, late); err != nil {
		return fmt.Errorf("set up the controller of MemberClusters: %w", err)
	}

	metrics := exposed(watcher, &members.memory.phases, &members.memory.orphans)
	if err := mgr.Add(manager.RunnableFunc(metrics)); err != nil {
		return fmt.Errorf("add the metrics to the manager: %w", err)
	}

	requests := &joinRequestController{
		client: hub.GetClient(), reader: hub.GetAPIReader(), options: options,
		recorder: mgr.GetEventRecorder("muster-hub"),
		identity: hubID, tombstones: left, conflicts: newConflictPauses(),
		limits: newRequestLimits(options.MaxRequestsPerToken), excess: &lateQueue{},
	}
	if err := requests.setup(mgr, hub); err != nil {
		return fmt.Errorf("set up the controller of JoinRequests: %w", err)
	}
	if len(options.NamespaceQuota) > 0 {
		quotas := &namespaceQuotas{
			client: hub.GetClient(), reader: hub.GetAPIReader(), hard: options.NamespaceQuota,
			prefix: options.NamespacePrefix, clock: options.Clock,
		}
		if err := quotas.setup(mgr, hub, options.Workers); err != nil {
			return fmt.Errorf("set up the controller of ResourceQuotas: %w", err)
		}
	}
	tokens := &identityTokens{
		client: hub.GetClient(), reader: hub.GetAPIReader(), namespace: options.RegistrationNamespace,
	}
	if err := tokens.setup(mgr, hub, options.Workers); err != nil {
		return fmt.Errorf("set up the controller of JoinTokens for identities: %w", err)
	}
	if err := jointoken.SetupWithManager(mgr, jointoken.Options{
		Server: options.Server, CA: options.CA, Namespace: options.RegistrationNamespace, Clock: options.Clock,
		BootstrapTokens: options.BootstrapTokens, HubID: hubID.id,
	}); err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: %w", err)
	}
	return nil
}

// newCluster connects to the hub with a separate scheme, client and caches: a manager's caches may be restricted to
// the objects of its product, and Namespaces and RoleBindings without muster's label must not be kept in memory.
func newCluster(mgr manager.Manager, options Options) (cluster.Cluster, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	ours, err := labels.NewRequirement(membership.MemberLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	labeled := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	return cluster.New(mgr.GetConfig(), func(o *cluster.Options) {
		o.Scheme, o.Logger = scheme, mgr.GetLogger()
		o.Cache.DefaultTransform = withoutManagedFields
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&corev1.Namespace{}:     labeled,
			&rbacv1.RoleBinding{}:   labeled,
			&corev1.ResourceQuota{}: labeled,
			&v1alpha1.JoinRequest{}: {Transform: boundedRequest},
			tokenMetadata():         {Namespaces: map[string]cache.Config{options.RegistrationNamespace: {}}},
		}
	})
}

// maxMetadata limits the labels and annotations, and the finalizers, of a JoinRequest in the cache, in bytes each. The
// client that created the request can set as many as etcd accepts.
const maxMetadata = 8 << 10

// boundedRequest removes the fields of a JoinRequest that the hub does not use: owner references, managed fields, and
// labels and annotations beyond the limit. An Acceptor can read the others. If there are too many finalizers, it keeps
// one, so that the hub still removes all of them.
func boundedRequest(in any) (any, error) {
	request, is := in.(*v1alpha1.JoinRequest)
	if !is {
		return withoutManagedFields(in)
	}
	request.ManagedFields, request.OwnerReferences = nil, nil
	size := 0
	for _, all := range []map[string]string{request.Labels, request.Annotations} {
		for key, value := range all {
			size += len(key) + len(value)
		}
	}
	if size > maxMetadata {
		request.Labels, request.Annotations = nil, nil
	}
	size = 0
	for _, finalizer := range request.Finalizers {
		size += len(finalizer)
	}
	if size > maxMetadata {
		request.Finalizers = []string{strings.Clone(request.Finalizers[0])}
	}
	return request, nil
}

func withoutManagedFields(in any) (any, error) {
	if object, err := meta.Accessor(in); err == nil {
		object.SetManagedFields(nil)
	}
	return in, nil
}

// controllerOptions are the common options of the hub's controllers.
func controllerOptions(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		ReconciliationTimeout:   reconcileTimeout,
		// One program may be the hub of several fleets, each with a separate manager.
		SkipNameValidation: new(true),
	}
}

// run returns a runnable that ensures the objects that all members share, and retries until it succeeds: a hub that
// starts together with its API server must not end because the API server is not ready yet.
func (s *shared) run(mgr manager.Manager) func(context.Context) error {
	logger := log(mgr, "hub")
	return func(ctx context.Context) error {
		backoff := wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.1, Steps: 8, Cap: 30 * time.Second}
		for {
			attempt, cancel := context.WithTimeout(ctx, reconcileTimeout)
			err := s.ensure(attempt)
			cancel()
			if err == nil {
				s.watchRoles(ctx, logger)
				return nil
			}
			logger.Error(err, "Cannot create the shared objects of all members, trying again")
			select {
			case <-ctx.Done():
				return nil
			case <-s.options.Clock.After(backoff.Step()):
			}
		}
	}
}
