package template

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// clusterScoped are the cluster-scoped kinds of Kubernetes. A test compares them with the source of Kubernetes.
var clusterScoped = kinds(map[string][]string{
	"": {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		"MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"ValidatingWebhookConfiguration"},
	"apiextensions.k8s.io":         {"CustomResourceDefinition"},
	"apiregistration.k8s.io":       {"APIService"},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
	"internal.apiserver.k8s.io":    {"StorageVersion"},
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  {"RuntimeClass"},
	"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      {"StorageVersionMigration"},
})

func kinds(groups map[string][]string) sets.Set[schema.GroupKind] {
	all := sets.New[schema.GroupKind]()
	for group, kinds := range groups {
		for _, kind := range kinds {
			all.Insert(schema.GroupKind{Group: group, Kind: kind})
		}
	}
	return all
}

var (
	definition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	namespace  = schema.GroupKind{Kind: "Namespace"}
)

// definedIn returns the scopes of kinds with a CustomResourceDefinition, as values of [v1alpha1.ScopeAnnotation].
func definedIn(lists ...[]*unstructured.Unstructured) map[schema.GroupKind]string {
	defined := map[schema.GroupKind]string{}
	for _, object := range slices.Concat(lists...) {
		if object.GroupVersionKind().GroupKind() == definition {
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			defined[schema.GroupKind{Group: group, Kind: kind}], _, _ = unstructured.NestedString(object.Object, "spec", "scope")
		}
	}
	return defined
}

// setNamespaces sets the namespace of namespaced objects without one.
func setNamespaces(objects []*unstructured.Unstructured, defined map[schema.GroupKind]string, into string) {
	for _, object := range objects {
		if object.GetNamespace() != "" {
			continue
		}
		kind := object.GroupVersionKind().GroupKind()
		scope := object.GetAnnotations()[v1alpha1.ScopeAnnotation]
		if scope == "" {
			scope = defined[kind]
		}
		if scope == v1alpha1.ScopeNamespaced || scope == "" && !clusterScoped.Has(kind) {
			object.SetNamespace(into)
		}
	}
}

// WithNamespace prepends the Namespace to the objects, unless it is one of them or exists in every cluster: an add-on
// must not own such a Namespace.
func WithNamespace(objects []*unstructured.Unstructured, name string) []*unstructured.Unstructured {
	switch name {
	case "default", "kube-system", "kube-public", "kube-node-lease":
		return objects
	}
	if slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().GroupKind() == namespace && o.GetName() == name
	}) {
		return objects
	}
	added := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": name}}}
	return slices.Insert(objects, 0, added)
}
