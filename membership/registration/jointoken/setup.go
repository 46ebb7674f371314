package jointoken

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Options of the controller. Its zero value is for a hub whose members reach its API server as the manager
// does.
type Options struct {
	// Namespace of JoinTokens and JoinRequests. Default: membership.RegistrationNamespace.
	Namespace string
	// Server is the URL at which members reach the hub's API server. Default: the one that the manager
	// uses, which inside of the hub's own cluster is not one that others can reach.
	Server string
	// CA is the PEM-encoded bundle that members verify the server's certificate by. Default: the manager's.
	CA []byte
	// Clock tells when to renew and when to end. Default: the system's.
	Clock clock.PassiveClock
}

const controllerName = "muster-jointoken"

// SetupWithManager adds the controller of JoinTokens to a manager, whose scheme must know the types of
// membership/v1alpha1, core/v1 and rbac/v1. The ClusterRole registration.BootstrapRole must be on the hub.
//
// The controller watches the registration namespace alone, by a cache of its own that holds the metadata of
// JoinTokens and of what they own, and nothing else of either: what somebody deletes is made again at once, and no Secret is
// held in memory. It decides on what it reads from the API server itself, once something has changed or a
// token's time has come; until then it makes no request.
func SetupWithManager(mgr ctrl.Manager, options Options) error {
	if options.Namespace == "" {
		options.Namespace = membership.RegistrationNamespace
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if !mgr.GetScheme().Recognizes(v1alpha1.GroupVersion.WithKind("JoinToken")) {
		return errors.New("set up the controller of JoinTokens: the manager's scheme lacks membership/v1alpha1: call its AddToScheme")
	}
	hub, err := hubFor(mgr.GetConfig(), options)
	if err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: %w", err)
	}
	objects, err := newCache(mgr, options.Namespace)
	if err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: make its cache: %w", err)
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
	}
	builder := ctrl.NewControllerManagedBy(mgr).Named(controllerName).
		WithOptions(controller.Options{SkipNameValidation: new(true)}) // one program may be the hub of several fleets
	for _, kind := range append(owned(), metadataOf(v1alpha1.GroupVersion.WithKind("JoinToken"))) {
		builder.WatchesRawSource(source.Kind(objects, kind, handler.TypedEnqueueRequestsFromMapFunc(tokenOf)))
	}
	if err := builder.Complete(r); err != nil {
		return fmt.Errorf("set up the controller of JoinTokens: %w", err)
	}
	return nil
}

// hubFor returns what all bootstraps of a hub have in common.
func hubFor(config *rest.Config, options Options) (registration.Bootstrap, error) {
	hub := registration.Bootstrap{Server: options.Server, CA: options.CA, Namespace: options.Namespace}
	if hub.Server == "" {
		server, _, err := rest.DefaultServerUrlFor(config)
		if err != nil {
			return hub, fmt.Errorf("take Options.Server from the manager's config: %w", err)
		}
		hub.Server = server.String()
	}
	if len(hub.CA) == 0 {
		hub.CA = config.CAData
		if len(hub.CA) == 0 && config.CAFile != "" {
			var err error
			if hub.CA, err = os.ReadFile(config.CAFile); err != nil {
				return hub, fmt.Errorf("take Options.CA from the manager's config: %w", err)
			}
		}
	}
	hub.CA = append(bytes.TrimSpace(hub.CA), '\n')
	// The rest is the business of single tokens; here it only has to be valid.
	sample := hub
	sample.TokenName, sample.Token, sample.Key = "sample", "sample", make([]byte, keySize)
	if _, err := sample.Marshal(); err != nil {
		return hub, fmt.Errorf("find out what agents need to reach the hub (Options.Server, Options.CA): %w", err)
	}
	return hub, nil
}

func newCache(mgr ctrl.Manager, namespace string) (cache.Cache, error) {
	exists, err := labels.NewRequirement(membership.JoinTokenLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	byObject := map[client.Object]cache.ByObject{}
	for _, kind := range owned() {
		byObject[kind] = cache.ByObject{Label: labels.NewSelector().Add(*exists)}
	}
	return cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:        mgr.GetHTTPClient(),
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		DefaultNamespaces: map[string]cache.Config{namespace: {}},
		DefaultTransform:  cache.TransformStripManagedFields(),
		ByObject:          byObject,
	})
}

// owned returns the kinds of what a JoinToken owns.
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

// tokenOf returns the JoinToken that an object is or belongs to.
func tokenOf(_ context.Context, object *metav1.PartialObjectMetadata) []reconcile.Request {
	name := object.Name
	if object.Kind != "JoinToken" {
		name = object.Labels[membership.JoinTokenLabel]
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.Namespace, Name: name}}}
}
