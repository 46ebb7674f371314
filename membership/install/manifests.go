package install

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/muster-sdk/muster/internal/crdinstall"
	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
)

// InstalledByLabel is the label of all objects that [Manifests] has created on a member; its value is the UID of the
// MemberCluster.
const InstalledByLabel = crdinstall.InstalledByLabel

// Manifests is an [Installer] of objects: it applies them with server-side apply, and then creates the Secret with the
// bootstrap credential.
//
// It applies Namespaces first, then CustomResourceDefinitions, until they are served, then all other objects in order.
// Then it deletes objects that it applied earlier and that are no longer desired. Applied objects have the
// [InstalledByLabel], and the ConfigMap [InventoryName] in Namespace lists them. An existing Namespace or
// CustomResourceDefinition is used without changing its owner, and is never deleted.
//
// Install fails for a member with a Secret muster-bootstrap that it did not create, because that cluster is a member
// already, or about to become one.
//
// On the member it needs the permissions get, create, patch and delete on the applied objects, on Secrets and
// ConfigMaps in Namespace, and on the namespaces; get and, to delete a definition, list on the resources that it
// defines; and all permissions that the roles among the objects grant.
type Manifests struct {
	// Objects returns the desired objects of a member. The result must be the same for the same target, except for the
	// parts that depend on target.Bootstrap. The caller modifies the returned objects.
	Objects func(target Target) ([]client.Object, error)
	// Version of the objects, such as a hash of their source files. If it changes, agents are installed again.
	Version string
	// Namespace of the bootstrap Secret, which must be among the objects or exist. Empty: muster-system.
	Namespace string
}

var (
	_ Installer   = &Manifests{}
	_ Uninstaller = &Manifests{}
	_ Reviser     = &Manifests{}
	_ Checker     = &Manifests{}
)

// fieldOwner is the field manager of the installed objects.
const fieldOwner = client.FieldOwner("muster-install")

// Revision returns Version.
func (m *Manifests) Revision() string { return m.Version }

// Install applies the objects and the bootstrap credential. Objects in their desired state are not changed.
func (m *Manifests) Install(ctx context.Context, target Target) error {
	site, err := m.site(target)
	if err != nil {
		return err
	}
	if err := site.checkBootstrapSecret(ctx); err != nil {
		return err
	}
	objects, err := m.render(target)
	if err != nil {
		return err
	}
	return site.install(ctx, objects, target.Bootstrap)
}

// Missing returns the first applied Deployment, StatefulSet or DaemonSet that is not rolled out, and the reason.
func (m *Manifests) Missing(ctx context.Context, target Target) (string, error) {
	site, err := m.site(target)
	if err != nil {
		return "", err
	}
	return site.missing(ctx)
}

// Uninstall deletes the objects of Install, the bootstrap credential and the agent's record, and waits for their
// removal. The Namespace of the bootstrap Secret is deleted last, without waiting. A CustomResourceDefinition with
// existing objects stays.
func (m *Manifests) Uninstall(ctx context.Context, target Target) error {
	site, err := m.site(target)
	if err != nil {
		return err
	}
	return site.uninstall(ctx)
}

// render returns the objects for server-side apply.
func (m *Manifests) render(target Target) (out []*unstructured.Unstructured, err error) {
	objects, err := m.Objects(target)
	if err != nil {
		return nil, fmt.Errorf("render the manifests of the agent: %w", err)
	}
	for _, object := range objects {
		u, typed := object.(*unstructured.Unstructured)
		if !typed {
			u = &unstructured.Unstructured{}
			if u.Object, err = runtime.DefaultUnstructuredConverter.ToUnstructured(object); err != nil {
				return nil, fmt.Errorf("convert %T %s: %w", object, object.GetName(), err)
			}
			kind, err := apiutil.GVKForObject(object, clientgoscheme.Scheme)
			if err != nil {
				return nil, fmt.Errorf("determine the kind of %T %s: %w", object, object.GetName(), err)
			}
			u.SetGroupVersionKind(kind)
		}
		unstructured.RemoveNestedField(u.Object, "status")
		unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
		out = append(out, u)
	}
	return out, nil
}

// site is a member with its installed objects.
type site struct {
	client    client.Client
	owner     string // the value of the label
	namespace string
}

func (m *Manifests) site(target Target) (*site, error) {
	c, err := client.New(target.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		return nil, fmt.Errorf("create a client for member %s: %w", target.Cluster.Name, err)
	}
	s := &site{client: c, owner: string(target.Cluster.UID), namespace: m.Namespace}
	if s.namespace == "" {
		s.namespace = agent.DefaultNamespace
	}
	return s, nil
}

// checkBootstrapSecret returns an error if the bootstrap Secret exists and was not created by this package for this
// member.
func (s *site) checkBootstrapSecret(ctx context.Context) error {
	secret, err := s.metadata(ctx, object{APIVersion: "v1", Kind: "Secret", Namespace: s.namespace,
		Name: agent.DefaultBootstrapSecret})
	if err != nil || secret == nil || s.owns(secret) {
		return err
	}
	return fmt.Errorf("the member has a Secret %s/%s that belongs to another installation: the cluster is a member of a "+
		"hub, or about to join one: unjoin the cluster from that hub, or delete the Secret",
		secret.Namespace, secret.Name)
}

func (s *site) owns(o metav1.Object) bool { return o.GetLabels()[InstalledByLabel] == s.owner }

func (s *site) install(ctx context.Context, objects []*unstructured.Unstructured,
	bootstrap *registration.Bootstrap) error {
	namespaces, definitions, others := waves(objects)
	for _, namespace := range namespaces {
		if err := s.applyShared(ctx, namespace); err != nil {
			return err
		}
	}
	before, err := s.inventory(ctx)
	if err != nil {
		return err
	}
	// Write the inventory before the objects are created, so that every created object is in it.
	wanted := inventoryOf(objects)
	ahead := ssa.Ahead(before, wanted, object.key)
	if err := s.record(ctx, before, ahead); err != nil {
		return err
	}
	for _, definition := range definitions {
		if err := s.mark(ctx, definition); err != nil {
			return err
		}
	}
	if err := crdinstall.Apply(ctx, s.client, definitions); err != nil {
		return err
	}
	for _, each := range others {
		each.SetLabels(with(each.GetLabels(), s.owner))
		if err := s.apply(ctx, each); err != nil {
			return err
		}
	}
	for _, stale := range slices.Backward(ssa.Stale(before, wanted, object.key)) {
		if err := s.remove(ctx, stale); err != nil {
			return err
		}
	}
	if err := s.writeBootstrapSecret(ctx, bootstrap); err != nil {
		return err
	}
	return s.record(ctx, ahead, wanted)
}

// mark labels an object that does not exist yet, or was installed by this package. Other existing objects are shared,
// and keep their owner.
func (s *site) mark(ctx context.Context, shared *unstructured.Unstructured) error {
	there, err := s.metadata(ctx, objectOf(shared))
	if err != nil {
		return err
	}
	if there != nil {
		// The value of the label may be that of an earlier member after a forced leave.
		if _, installed := there.Labels[InstalledByLabel]; !installed {
			return nil
		}
	}
	shared.SetLabels(with(shared.GetLabels(), s.owner))
	return nil
}

func (s *site) applyShared(ctx context.Context, shared *unstructured.Unstructured) error {
	if err := s.mark(ctx, shared); err != nil {
		return err
	}
	return s.apply(ctx, shared)
}

func (s *site) apply(ctx context.Context, each *unstructured.Unstructured) error {
	if _, err := ssa.Apply(ctx, s.client, each, fieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("apply %s on the member: %w", objectOf(each), err)
	}
	return nil
}

// writeBootstrapSecret creates or updates the Secret with the bootstrap credential on the member.
func (s *site) writeBootstrapSecret(ctx context.Context, bootstrap *registration.Bootstrap) error {
	if bootstrap == nil {
		return &membership.InvalidError{Field: "Bootstrap", Problem: "must be set"}
	}
	joinYAML, err := bootstrap.Marshal()
	if err != nil {
		return err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: agent.DefaultBootstrapSecret, Labels: with(nil, s.owner)},
		Data:       map[string][]byte{registration.BootstrapKey: joinYAML},
	}
	err = s.client.Create(ctx, secret, fieldOwner)
	if apierrors.IsAlreadyExists(err) { // free has checked its owner
		there := secret.DeepCopy()
		if err = s.client.Get(ctx, client.ObjectKeyFromObject(there), there); err == nil && !s.owns(there) {
			err = errors.New("another client has created a different Secret")
		}
		if err == nil && string(there.Data[registration.BootstrapKey]) != string(joinYAML) {
			there.Data = secret.Data
			err = s.client.Update(ctx, there, fieldOwner)
		}
	}
	if err != nil {
		return fmt.Errorf("write Secret %s/%s on the member: %w", secret.Namespace, secret.Name, err)
	}
	return nil
}

func with(existing map[string]string, owner string) map[string]string {
	return labels.Merge(existing, labels.Set{InstalledByLabel: owner})
}
