package install

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

func (o object) groupKind() schema.GroupKind {
	return schema.FromAPIVersionAndKind(o.APIVersion, o.Kind).GroupKind()
}

// same reports whether both names identify the same object, regardless of the version.
func (o object) same(other object) bool {
	return o.groupKind() == other.groupKind() && o.Namespace == other.Namespace && o.Name == other.Name
}

func objectOf(u *unstructured.Unstructured) object {
	return object{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func metadataOf(o object) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
	out.APIVersion, out.Kind = o.APIVersion, o.Kind
	return out
}

var (
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
)

// waves separates namespaces, CustomResourceDefinitions and all other objects.
func waves(objects []*unstructured.Unstructured) (namespaces, definitions, others []*unstructured.Unstructured) {
	for _, each := range objects {
		switch objectOf(each).groupKind() {
		case namespaceKind:
			namespaces = append(namespaces, each)
		case definitionKind:
			definitions = append(definitions, each)
		default:
			others = append(others, each)
		}
	}
	return namespaces, definitions, others
}

// inventory is the list of applied objects, in order.
type inventory []object

func inventoryOf(objects []*unstructured.Unstructured) inventory {
	namespaces, definitions, others := waves(objects)
	var out inventory
	for _, each := range slices.Concat(namespaces, definitions, others) {
		out = append(out, objectOf(each))
	}
	return out
}

func (i inventory) has(one object) bool { return slices.ContainsFunc(i, one.same) }

// without returns the objects that are not in the other inventory.
func (i inventory) without(other inventory) inventory {
	return slices.DeleteFunc(slices.Clone(i), other.has)
}

// with returns the union, without duplicates.
func (i inventory) with(other inventory) inventory { return append(i.without(other), other...) }

func (i inventory) backwards() inventory {
	out := slices.Clone(i)
	slices.Reverse(out)
	return out
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

// inventory reads the inventory; empty: this package has installed nothing.
func (s *site) inventory(ctx context.Context) (inventory, error) {
	there := &corev1.ConfigMap{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: InventoryName}, there)
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
	u := &unstructured.Unstructured{}
	u.SetAPIVersion("v1")
	u.SetKind("ConfigMap")
	u.SetNamespace(s.namespace)
	u.SetName(InventoryName)
	u.SetLabels(with(nil, s.owner))
	u.Object["data"] = map[string]any{inventoryKey: after.String()}
	return s.apply(ctx, u)
}
