package clusterprofile

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
	Resource: "customresourcedefinitions"}

// watchDefinition returns an informer for the CustomResourceDefinition of a kind, and no other. The watch transfers
// whole definitions and not only their metadata, because only the status shows whether the API server serves the kind.
// The informer keeps a small part of them.
func (e *exporter) watchDefinition(k kind) toolscache.SharedIndexInformer {
	name := k.resource.GroupResource().String()
	informer := dynamicinformer.NewFilteredDynamicInformer(e.dynamic, definitions, "", 0, toolscache.Indexers{},
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
		}).Informer()
	// These calls fail only if the informer runs already.
	_ = informer.SetTransform(removeSchemas)
	_ = informer.SetWatchErrorHandlerWithContext(e.failed(name))
	look := func(any) { e.recheckDefinitions() }
	_, _ = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: look, DeleteFunc: look, UpdateFunc: func(any, any) { e.recheckDefinitions() },
	})
	return informer
}

// crd is the part of a CustomResourceDefinition that the export reads.
type crd struct {
	Spec struct {
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// removeSchemas removes the schemas from a CustomResourceDefinition, which are most of its size.
func removeSchemas(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		u.SetManagedFields(nil)
		u.SetAnnotations(nil)
		versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
		items, _ := versions.([]any)
		for _, item := range items {
			if v, ok := item.(map[string]any); ok {
				delete(v, "schema")
			}
		}
	}
	return object, nil
}

// servedAs returns the UID of the only definition in a store if the API server serves its kind in the exported version.
// Otherwise it returns an empty UID.
func servedAs(store toolscache.Store) types.UID {
	for _, item := range store.List() {
		u, ok := item.(*unstructured.Unstructured)
		if !ok || u.GetDeletionTimestamp() != nil {
			continue
		}
		var d crd
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
			continue
		}
		established := slices.ContainsFunc(d.Status.Conditions, func(c metav1.Condition) bool {
			return c.Type == "Established" && c.Status == metav1.ConditionTrue
		})
		for _, v := range d.Spec.Versions {
			if v.Name == version && v.Served && established {
				return u.GetUID()
			}
		}
	}
	return ""
}
