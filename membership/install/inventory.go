package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/ssa"
)

// InventoryName is the name of the ConfigMap on a member with the names of the objects that [Manifests] has applied.
const InventoryName = "muster-installed"

// inventoryKey contains one line per object, in the order in which they were applied.
const inventoryKey = "objects"

// object is the name of an object.
type object struct {
	APIVersion, Kind, Namespace, Name string
}

func (o object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

func (o object) kind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
}

func (o object) groupKind() schema.GroupKind { return o.kind().GroupKind() }

func (o object) objectKey() client.ObjectKey {
	return client.ObjectKey{Namespace: o.Namespace, Name: o.Name}
}

func (o object) key() ssa.Key {
	return ssa.Key{Group: o.kind().Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

func objectOf(o client.Object) object {
	apiVersion, kind := o.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return object{APIVersion: apiVersion, Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// waves separates namespaces, CustomResourceDefinitions and all other objects.
func waves(objects []*unstructured.Unstructured) (namespaces, definitions, others []*unstructured.Unstructured) {
	for _, each := range objects {
		switch objectOf(each).groupKind() {
		case ssa.NamespaceKind:
			namespaces = append(namespaces, each)
		case ssa.DefinitionKind:
			definitions = append(definitions, each)
		default:
			others = append(others, each)
		}
	}
	return namespaces, definitions, others
}

// inventory is the list of applied objects, in order.
type inventory []object

// inventoryOf returns the inventory of the objects in the order in which they are applied. Each object is listed once.
func inventoryOf(objects []*unstructured.Unstructured) inventory {
	namespaces, definitions, others := waves(objects)
	var out inventory
	for _, each := range slices.Concat(namespaces, definitions, others) {
		out = append(out, objectOf(each))
	}
	return ssa.Ahead(nil, out, object.key)
}

func (i inventory) String() string {
	var out strings.Builder
	for _, one := range i {
		fmt.Fprintf(&out, "%s %s %s/%s\n", one.APIVersion, one.Kind, one.Namespace, one.Name)
	}
	return out.String()
}

// parseInventory parses the output of String, and ignores invalid lines.
func parseInventory(text string) (out inventory) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue
		}
		namespace, name, ok := strings.Cut(fields[2], "/")
		if ok {
			out = append(out, object{APIVersion: fields[0], Kind: fields[1], Namespace: namespace, Name: name})
		}
	}
	return out
}

// inventoryObject is the ConfigMap with the inventory.
func (s *site) inventoryObject() object {
	return object{APIVersion: "v1", Kind: "ConfigMap", Namespace: s.namespace, Name: InventoryName}
}

// inventory reads the inventory; empty: this package has installed nothing.
func (s *site) inventory(ctx context.Context) (inventory, error) {
	there := &corev1.ConfigMap{}
	err := s.client.Get(ctx, s.inventoryObject().objectKey(), there)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("get ConfigMap %s/%s of the member: %w", s.namespace, InventoryName, err)
	}
	// The inventory may contain objects of an earlier member, for example after a forced leave. They are adopted.
	return parseInventory(there.Data[inventoryKey]), nil
}

// record writes an inventory if it has changed.
func (s *site) record(ctx context.Context, before, after inventory) error {
	if before.String() == after.String() {
		return nil
	}
	one := s.inventoryObject()
	u := ssa.New(one.kind(), one.objectKey())
	u.SetLabels(with(nil, s.owner))
	u.Object["data"] = map[string]any{inventoryKey: after.String()}
	return s.apply(ctx, u)
}
