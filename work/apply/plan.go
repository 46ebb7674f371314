package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/ssa"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// task is one object of a set while it is applied or pruned.
type task struct {
	Object
	index      int
	wave       int32
	id         v1alpha1.ResourceIdentifier
	hash       string
	recorded   recorded
	definition definitionInSet
	err        error
	warning    string // about a manifest that is applied nevertheless
	observed   *observation
	fetched    bool // observed is a response of the API server in this pass
	assumed    bool // the object is assumed not to exist, and the API server was not asked
}

// recorded is what the inventory contains about an object.
type recorded struct {
	uid types.UID // empty: the object is not known to have existed
	ran string    // the hash of the manifest with which a Job with a TTL ran; empty: it did not run
}

// definitionInSet is the definition of the kind of an object, if an object of the same set defines the kind.
type definitionInSet struct {
	index   *int // of the object that defines the kind; nil: the set has none
	changed bool // the definition has just changed, so an earlier rejection is void
}

type tasks []task

// ErrInvalid is wrapped by errors about an invalid set.
var ErrInvalid = errors.New("invalid set")

func (e *Engine) plan(ctx context.Context, set Set) (tasks, error) {
	resolve := e.resolver(ctx)
	if err := set.check(); err != nil {
		return nil, err
	}
	entries := inventory(set.Inventory).byKey()
	defined := definedKinds(set.Objects)
	plan := make(tasks, len(set.Objects))
	first := map[ssa.Key]int{}
	for i, object := range set.Objects {
		object.Manifest = prepared(object.Manifest)
		warning := dropNamespace(&object, defined, resolve)
		t := task{Object: object, index: i, wave: object.wave(), id: identifier(object.Manifest), warning: warning}
		t.recorded.uid = entries[keyOf(t.id)].UID
		if removesItself(object.Manifest) {
			t.recorded.ran = entries[keyOf(t.id)].RanHash
		}
		if by, ok := defined[t.id.GroupVersionKind()]; ok {
			t.definition.index = &by.index
		}
		if t.err = checkManifest(object.Manifest); t.err == nil {
			t.hash, t.err = object.hash()
		}
		if earlier, twin := first[keyOf(t.id)]; twin && t.err == nil {
			t.err = &ManifestError{Field: "metadata.namespace", Problem: fmt.Sprintf(
				"objects[%d] is the same object, because %s is cluster-scoped: remove one of the manifests", earlier, t.id.Kind)}
		}
		first[keyOf(t.id)] = i
		if t.err == nil && t.definition.index == nil {
			t.err = t.resolveKind(resolve)
		}
		plan[i] = t
	}
	return plan, nil
}

// objects returns the objects of a set as they are applied.
func (p tasks) objects() []Object {
	objects := make([]Object, len(p))
	for i := range p {
		objects[i] = p[i].Object
	}
	return objects
}

// waves splits the tasks into waves, the lowest first. A wave has the order of the set.
func (p tasks) waves() [][]task {
	sorted := slices.Clone(p)
	slices.SortStableFunc(sorted, func(a, b task) int { return cmp.Compare(a.wave, b.wave) })
	var waves [][]task
	for len(sorted) > 0 {
		n := slices.IndexFunc(sorted, func(t task) bool { return t.wave != sorted[0].wave })
		if n < 0 {
			n = len(sorted)
		}
		waves = append(waves, sorted[:n])
		sorted = sorted[n:]
	}
	return waves
}

// resolver returns the REST mapping of a kind.
type resolver func(schema.GroupVersionKind) (*meta.RESTMapping, error)

// resolver returns a resolver that resolves each kind once.
func (e *Engine) resolver(ctx context.Context) resolver {
	mapper := meta.ToRESTMapperWithContext(e.client.RESTMapper())
	type answer struct {
		mapping *meta.RESTMapping
		err     error
	}
	answers := map[schema.GroupVersionKind]answer{}
	return func(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
		a, known := answers[kind]
		if !known {
			if a.err = ctx.Err(); a.err == nil {
				a.mapping, a.err = mapper.RESTMappingWithContext(ctx, kind.GroupKind(), kind.Version)
			}
			answers[kind] = a
		}
		return a.mapping, a.err
	}
}

func namespaced(mapping *meta.RESTMapping) bool {
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace
}

// resolveKind resolves the kind of an object, and checks that the namespace of the object suits its kind.
func (t *task) resolveKind(resolve resolver) error {
	mapping, err := resolve(t.id.GroupVersionKind())
	if err != nil {
		return err
	}
	t.id.Resource = mapping.Resource.Resource
	invalid := func(problem string) error { return &ManifestError{Field: "metadata.namespace", Problem: problem} }
	switch {
	case namespaced(mapping) && t.id.Namespace == "":
		return invalid("is required because " + t.id.Kind + " is namespaced")
	case !namespaced(mapping) && t.id.Namespace != "": // its definition in the set says otherwise
		return invalid("must not be set because " + t.id.Kind + " is cluster-scoped on the member")
	}
	return nil
}

// definedKind is a kind that an object of the set defines.
type definedKind struct {
	index   int  // of the definition
	cluster bool // the kind is cluster-scoped
}

// dropNamespace removes the namespace from an object of a cluster-scoped kind and returns a warning; empty: nothing was
// removed. Many bundles have such a namespace, and it is clear which object is meant.
func dropNamespace(o *Object, defined map[schema.GroupVersionKind]definedKind, resolve resolver) (warning string) {
	namespace, kind := o.Manifest.GetNamespace(), o.Manifest.GroupVersionKind()
	if namespace == "" || o.Manifest.GetName() == "" {
		return ""
	}
	by, inSet := defined[kind]
	cluster := by.cluster
	if !inSet {
		mapping, err := resolve(kind)
		cluster = err == nil && !namespaced(mapping)
	}
	if !cluster {
		return ""
	}
	o.Manifest = o.Manifest.DeepCopy()
	o.Manifest.SetNamespace("")
	return fmt.Sprintf("metadata.namespace %s of the manifest is ignored because %s is cluster-scoped. Remove the "+
		"namespace from the manifest.",
		namespace, kind.Kind)
}

// definedKinds returns the kinds that the CustomResourceDefinitions of a set define.
func definedKinds(objects []Object) map[schema.GroupVersionKind]definedKind {
	kinds := map[schema.GroupVersionKind]definedKind{}
	for i, object := range objects {
		if object.Manifest.GroupVersionKind().GroupKind() != ssa.DefinitionKind {
			continue
		}
		kind, versions := ssa.DefinedKind(object.Manifest)
		scope, _, _ := unstructured.NestedString(object.Manifest.Object, "spec", "scope")
		for _, version := range versions {
			kinds[kind.WithVersion(version)] = definedKind{i, scope == "Cluster"}
		}
	}
	return kinds
}

// hash returns the hash of the manifest and its options. The object is applied when the hash changes.
func (o Object) hash() (string, error) {
	data, err := json.Marshal(o.Manifest.Object) // the keys of maps are sorted
	if err != nil {
		return "", fmt.Errorf("encode the manifest: %w", err)
	}
	for _, path := range o.IgnoredFields {
		data = append(append(data, 0), path.String()...)
	}
	return digest(data), nil
}

// checkManifest rejects manifests that can never be applied, or whose fields would be lost.
func checkManifest(manifest *unstructured.Unstructured) error {
	for field, value := range map[string]string{
		"apiVersion": manifest.GetAPIVersion(), "kind": manifest.GetKind(), "metadata.name": manifest.GetName(),
	} {
		if value == "" {
			return &ManifestError{Field: field, Problem: "is required"}
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		if _, _, err := unstructured.NestedStringMap(manifest.Object, "metadata", field); err != nil {
			return &ManifestError{Field: "metadata." + field,
				Problem: "must have strings as values: put quotes around numbers, true, false, yes and no"}
		}
	}
	for _, field := range []string{"uid", "resourceVersion", "managedFields"} {
		if _, found, _ := unstructured.NestedFieldNoCopy(manifest.Object, "metadata", field); found {
			return &ManifestError{Field: "metadata." + field, Problem: "must not be set because the API server sets it"}
		}
	}
	if len(manifest.GetOwnerReferences()) > 0 {
		return &ManifestError{Field: "metadata.ownerReferences",
			Problem: "must not be set because the UIDs of owners are specific to one cluster"}
	}
	return nil
}

// prepared returns the manifest without the fields that a controller of Kubernetes, or an injector that the manifest
// names in an annotation, writes in every cluster. Applying them would start a contest that has no end. The manifest is
// not changed; prepared returns the same manifest if there is nothing to drop.
func prepared(manifest *unstructured.Unstructured) *unstructured.Unstructured {
	var dropped *unstructured.Unstructured
	for _, writer := range platformWriters {
		if !writer.writes(manifest) {
			continue
		}
		if dropped == nil {
			dropped = manifest.DeepCopy()
		}
		writer.drop(dropped)
	}
	if dropped == nil {
		return manifest
	}
	return dropped
}
