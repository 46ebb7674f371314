package registration

import (
	"cmp"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
)

// Kinds returns one object of each kind that a Registrar creates, for watches; see [MemberAddonOf].
func Kinds() []client.Object {
	return []client.Object{&rbacv1.Role{}, &rbacv1.RoleBinding{}, &coordinationv1.Lease{}, &corev1.ServiceAccount{},
		&corev1.Secret{}}
}

// NewCache adds a cache to a manager that contains only objects of Registrars: the objects of [Kinds] that have the
// label of an add-on and, for Secrets, those in the namespace of [Options] that contains the credentials (empty: the
// default). Use it for the Cache of [Options] and for watches. The manager's own cache may be restricted, and must not
// contain all Secrets of a hub.
func NewCache(mgr manager.Manager, namespace string) (cache.Cache, error) {
	addons, err := labels.NewRequirement(v1alpha1.AddonLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	options := cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform: cache.TransformStripManagedFields(), ByObject: map[client.Object]cache.ByObject{},
	}
	for _, kind := range Kinds() {
		of := cache.ByObject{Label: labels.NewSelector().Add(*addons)}
		if _, secret := kind.(*corev1.Secret); secret {
			of.Namespaces = map[string]cache.Config{cmp.Or(namespace, membership.RegistrationNamespace): {}}
		}
		options.ByObject[kind] = of
	}
	objects, err := cache.New(mgr.GetConfig(), options)
	if err == nil {
		err = mgr.Add(objects)
	}
	if err != nil {
		return nil, fmt.Errorf("create the cache of registrations: %w", err)
	}
	return objects, nil
}
