package jointoken

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/internal/requiredkinds"
	"github.com/muster-sdk/muster/internal/tracing"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/registration/jointoken/internal/bootstrapsecret"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Options are the options of the controller. Zero Options are for a hub whose members use the same address of its API
// server as the manager.
type Options struct {
	// Namespace of JoinTokens and JoinRequests. Default: membership.RegistrationNamespace.
	Namespace string
	// Server is the URL at which members reach the hub's API server. Default: that of the manager's config, which inside
	// of the hub's own cluster is not reachable for other clusters.
	Server string
	// CA is the PEM-encoded bundle that verifies the server's certificate. Default: the manager's.
	CA []byte
	// BootstrapTokens enables JoinTokens of type BootstrapToken. Their Secrets are in kube-system, so the controller
	// needs the Role muster-hub-bootstrap-tokens there (membership/hub/rbac/bootstrap-tokens.yaml); see the package
	// documentation for the extent of these permissions. False: such a JoinToken is not ready, with the reason
	// NotEnabled.
	BootstrapTokens bool
	// HubID returns the identity of the hub for each join.yaml. Nil: a join.yaml contains none.
	HubID func(context.Context) (string, error)
	// Clock determines when to renew and to end credentials. Default: the system clock.
	Clock clock.PassiveClock
}

const controllerName = "muster-jointoken"

// SetupWithManager adds the controller of JoinTokens to a manager, whose scheme must contain the types of
// membership/v1alpha1, core/v1 and rbac/v1. The ClusterRole registration.BootstrapRole must exist on the hub.
//
// The controller watches the registration namespace only, with a separate cache of the metadata of JoinTokens and of
// their objects: an object that a user deletes is created again immediately, and no Secret is kept in memory. It
// decides on objects that it reads from the API server, when an object has changed or a token is due. At other times
// it sends no requests.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	if options.Namespace == "" {
		options.Namespace = membership.RegistrationNamespace
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if err := requiredkinds.Check(mgr.GetScheme(), v1alpha1.GroupVersion.WithKind("JoinToken")); err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: %w", err)
	}
	hub, err := HubFor(mgr.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: %w", err)
	}
	if options.BootstrapTokens && options.Namespace == bootstrapsecret.Namespace {
		return fmt.Errorf("set up the controller of JoinTokens: Options.Namespace cannot be %s, where bootstrap tokens "+
			"have Secrets of the same names", options.Namespace)
	}
	objects, err := newCache(mgr, options)
	if err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: create its cache: %w", err)
	}
	if err := mgr.Add(objects); err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: add its cache: %w", err)
	}
	r := &reconciler{
		reader:   mgr.GetAPIReader(),
		client:   mgr.GetClient(),
		recorder: mgr.GetEventRecorder(controllerName),
		clock:    options.Clock,
		random:   rand.Reader,
		hub:      hub,
		hubID:    options.HubID,

		bootstrapTokens: options.BootstrapTokens,
	}
	builder := ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		WithOptions(controller.Options{SkipNameValidation: new(true)}) // one program may be the hub of several fleets
	for _, kind := range append(owned(), metadataOf(v1alpha1.GroupVersion.WithKind("JoinToken"))) {
		builder.WatchesRawSource(
			source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(tokenIn(options.Namespace))))
	}
	if err := builder.Complete(tracing.Reconciler(controllerName, r)); err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: %w", err)
	}
	return nil
}

// HubFor returns the common part of the bootstraps of a hub: all fields except TokenName, Token, Key and
// ExpirationTime. Config is that of the manager. The error names the missing or invalid option.
func HubFor(config *rest.Config, options Options) (registration.Bootstrap, error) {
	hub := registration.Bootstrap{Server: options.Server, CA: options.CA, Namespace: options.Namespace}
	if hub.Server == "" {
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return hub, fmt.Errorf("read Options.Server from the manager's config: %w", err)
		}
		hub.Server = server.String()
	}
	if len(hub.CA) == 0 {
		hub.CA = config.CAData
		if len(hub.CA) == 0 && config.CAFile != "" {
			var err error
			if hub.CA, err = os.ReadFile(config.CAFile); err != nil {
				return hub, fmt.Errorf("read Options.CA from the manager's config: %w", err)
			}
		}
	}
	hub.CA = append(bytes.TrimSpace(hub.CA), '\n')
	// The other fields depend on the token. The sample only needs valid ones.
	sample := hub
	sample.TokenName, sample.Token, sample.Key = "sample", "sample", make([]byte, keySize)
	if _, err := sample.Marshal(); err != nil {
		return hub, fmt.Errorf("determine the address of the hub for agents (Options.Server, Options.CA): %w", err)
	}
	return hub, nil
}

func newCache(mgr ctrl.Manager, options Options) (cache.Cache, error) {
	exists, err := labels.NewRequirement(membership.JoinTokenLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	byObject := map[client.Object]cache.ByObject{}
	for _, kind := range owned() {
		of := cache.ByObject{Label: labels.NewSelector().Add(*exists)}
		if kind.Kind == "Secret" && options.BootstrapTokens {
			of = cache.ByObject{Namespaces: map[string]cache.Config{
				options.Namespace: {LabelSelector: of.Label},
				// Includes Secrets of administrators, which have no label.
				bootstrapsecret.Namespace: {FieldSelector: fields.OneTermEqualSelector("type",
					string(bootstrapapi.SecretTypeBootstrapToken))},
			}}
		}
		byObject[kind] = of
	}
	return cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:        mgr.GetHTTPClient(),
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{options.Namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject:          byObject,
	})
}

// owned returns the kinds of the objects that a JoinToken owns.
func owned() []*metav1.PartialObjectMetadata {
	return []*metav1.PartialObjectMetadata{
		metadataOf(corev1.SchemeGroupVersion.WithKind("ServiceAccount")),
		metadataOf(rbacv1.SchemeGroupVersion.WithKind("RoleBinding")),
		metadataOf(corev1.SchemeGroupVersion.WithKind("Secret")),
	}
}

func metadataOf(kind schema.GroupVersionKind) *metav1.PartialObjectMetadata {
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(kind)
	return metadata
}

// tokenIn maps an object to its JoinToken in a namespace. A bootstrap token has the name of its JoinToken.
func tokenIn(namespace string) handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request] {
	return func(_ context.Context, object *metav1.PartialObjectMetadata) []reconcile.Request {
		name := object.Name
		if object.Kind != "JoinToken" && object.Namespace == namespace {
			name = object.Labels[membership.JoinTokenLabel]
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}}
	}
}
