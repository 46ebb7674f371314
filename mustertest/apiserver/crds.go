package apiserver

import (
	"fmt"
	"slices"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// terminating reports whether the CustomResourceDefinition of a resource is being deleted.
func (s *Server) terminating(resource schema.GroupResource) bool {
	item := s.store.Get(store.Key{Resource: customResourceDefinitions, Name: resource.String()})
	return item != nil && deleted(item)
}

func markTerminating(obj kinds.Object, now string) {
	setCRDCondition(obj, crdCondition{string(apiextensionsv1.Terminating), "True", "InstanceDeletionPending",
		"CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"}, now)
}

// crdCondition is a condition of a CustomResourceDefinition.
type crdCondition struct{ kind, value, reason, message string }

func setCRDCondition(obj kinds.Object, c crdCondition, now string) {
	kind, value, reason, message := c.kind, c.value, c.reason, c.message
	status, _ := obj["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		obj["status"] = status
	}
	list, _ := status["conditions"].([]any)
	list = slices.Clone(list)
	condition := map[string]any{
		"type": kind, "status": value, "reason": reason, "message": message, "lastTransitionTime": now,
	}
	at := slices.IndexFunc(list, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["type"] == kind
	})
	if at < 0 {
		list = append(list, condition)
	} else {
		if before, _ := list[at].(map[string]any); before["status"] == value {
			condition["lastTransitionTime"] = before["lastTransitionTime"]
		}
		list[at] = condition
	}
	status["conditions"] = list
}

// definition is a stored CustomResourceDefinition.
type definition struct {
	crd   *apiextensionsv1.CustomResourceDefinition // never changed
	err   error                                     // crd cannot be decoded
	kinds func() ([]*kinds.Kind, error)
}

// definitionOf decodes a CustomResourceDefinition once for all servers that have the same item from a Snapshot.
func definitionOf(item *store.Item) *definition {
	decoded, _ := item.Memo(func(obj map[string]any) any {
		d := &definition{crd: &apiextensionsv1.CustomResourceDefinition{}}
		d.err = kinds.FromObject(obj, d.crd)
		d.kinds = sync.OnceValues(func() ([]*kinds.Kind, error) { return kinds.FromCRD(d.crd) })
		return d
	}).(*definition)
	return decoded
}

// reconcileCRD serves the kinds of a CustomResourceDefinition, or deletes its instances if the definition is being
// deleted.
func (s *Server) reconcileCRD(name string) {
	key := store.Key{Resource: customResourceDefinitions, Name: name}
	item := s.store.Get(key)
	if item == nil {
		delete(s.controllers.crds, name)
		s.serveCRD(name, nil)
		return
	}
	d := definitionOf(item)
	if d.err != nil {
		return
	}
	crd := d.crd
	if crd.DeletionTimestamp != nil {
		s.controllers.crds[name] = true
		s.finalizeCRD(key, crd)
		return
	}
	message := s.nameConflict(crd)
	now := s.now()
	s.edit(key, func(obj kinds.Object) bool {
		if message != "" {
			setCRDCondition(obj, crdCondition{"NamesAccepted", "False", "NameConflict", message}, now)
			setCRDCondition(obj, crdCondition{"Established", "False", "NotAccepted", "not all names are accepted"}, now)
			return true
		}
		status, _ := obj["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
			obj["status"] = status
		}
		spec, _ := obj["spec"].(map[string]any)
		status["acceptedNames"] = runtime.DeepCopyJSONValue(spec["names"])
		stored, _ := status["storedVersions"].([]any)
		for _, version := range crd.Spec.Versions {
			if version.Storage && !slices.Contains(stored, any(version.Name)) {
				status["storedVersions"] = append(slices.Clone(stored), version.Name)
			}
		}
		setCRDCondition(obj, crdCondition{"NamesAccepted", "True", "NoConflicts", "no conflicts found"}, now)
		setCRDCondition(obj, crdCondition{"Established", "True", "InitialNamesAccepted",
			"the initial names have been accepted"}, now)
		return true
	})
	if message == "" {
		s.serveCRD(name, d)
	}
}

// nameConflict returns a message if another CustomResourceDefinition of the group uses a name of the definition.
// Otherwise it returns an empty string.
func (s *Server) nameConflict(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, kind := range s.served.inOrder() {
		if kind.Resource.Group != crd.Spec.Group || kind.Resource.Resource == crd.Spec.Names.Plural {
			continue
		}
		if kind.GVK.Kind == crd.Spec.Names.Kind {
			return fmt.Sprintf("%q is already in use", crd.Spec.Names.Kind)
		}
		for _, short := range crd.Spec.Names.ShortNames {
			if slices.Contains(kind.Names.ShortNames, short) {
				return fmt.Sprintf("%q is already in use", short)
			}
		}
	}
	return ""
}

// serveCRD replaces the served kinds of a CustomResourceDefinition. If d is nil, none of its kinds is served.
func (s *Server) serveCRD(name string, d *definition) {
	var served []*kinds.Kind
	if d != nil {
		compiled, err := d.kinds()
		if err != nil {
			return // the definition was validated when it was created; only a restore can bring an invalid one
		}
		served = slices.Clone(compiled)
	}
	s.served.replace(name, served)
}

func (s *Server) resyncCRDs() {
	for _, name := range s.served.definitions() {
		s.serveCRD(name, nil)
	}
	items, _ := s.store.List(customResourceDefinitions, "")
	for _, item := range items {
		if d := definitionOf(item); d.err == nil && len(d.crd.Status.AcceptedNames.Plural) > 0 {
			s.serveCRD(d.crd.Name, d)
		}
	}
}

// finalizeCRD deletes the instances of a CustomResourceDefinition, and removes its finalizer when no instance exists.
func (s *Server) finalizeCRD(key store.Key, crd *apiextensionsv1.CustomResourceDefinition) {
	if !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return
	}
	resource := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	items, _ := s.store.List(resource, "")
	for _, item := range items {
		s.remove(item, metav1.DeletePropagationBackground)
	}
	items, _ = s.store.List(resource, "")
	now := s.now()
	s.edit(key, func(obj kinds.Object) bool {
		if len(items) > 0 {
			setCRDCondition(obj, crdCondition{"Terminating", "True", "InstanceDeletionInProgress",
				"CustomResource deletion is in progress"}, now)
			return true
		}
		setCRDCondition(obj, crdCondition{"Terminating", "False", "InstanceDeletionCompleted", "removed all instances"}, now)
		finalizers := finalizersOf(metaOf(obj))
		setFinalizers(metaOf(obj), slices.DeleteFunc(finalizers, func(f string) bool {
			return f == apiextensionsv1.CustomResourceCleanupFinalizer
		}))
		return true
	})
}
