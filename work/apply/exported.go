package apply

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// Exported converts an object that was read from a cluster, for example with kubectl get -o yaml, to a manifest for
// other clusters. The manifest has no status, no fields that the API server writes or that controllers allocate, and no
// marks of muster. The object is not changed. Exported is pure.
//
// If the object is useless in another cluster, the manifest is nil, and the reason explains why: objects that a
// controller has created from another object, token Secrets of ServiceAccounts, kube-root-ca.crt, endpoints, Events,
// Leases and Nodes.
func Exported(object *unstructured.Unstructured) (manifest *unstructured.Unstructured, reason string) {
	if reason := unportable(object); reason != "" {
		return nil, reason
	}
	manifest = prepared(object).DeepCopy()
	delete(manifest.Object, "status")
	metadata, _ := manifest.Object["metadata"].(map[string]any)
	for _, field := range []string{
		"uid", "resourceVersion", "generation", "creationTimestamp", "selfLink", "managedFields", "ownerReferences",
		"deletionTimestamp",
		"deletionGracePeriodSeconds",
	} {
		delete(metadata, field)
	}
	dropKeys(manifest, clusterSpecific, "metadata", "annotations")
	dropKeys(manifest, func(name string) bool {
		return name == v1alpha1.AppliedLabel || name == "kubernetes.io/metadata.name"
	}, "metadata", "labels")
	dropFinalizers(manifest, func(name string) bool { return strings.HasPrefix(name, "kubernetes.io/") })
	if clean := cleaners[manifest.GroupVersionKind().GroupKind()]; clean != nil {
		clean(manifest)
	}
	return manifest, ""
}

func unportable(object *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return fmt.Sprintf("%s is created by %s %s: export the owner instead", identifier(object), owner.Kind, owner.Name)
	}
	kind, _, _ := unstructured.NestedString(object.Object, "type")
	switch {
	case Object{Manifest: object}.published():
		return "Kubernetes publishes ConfigMap kube-root-ca.crt in every namespace"
	case isKind(object, "", "Secret") && kind == "kubernetes.io/service-account-token":
		return identifier(object).String() + " is a token that is only valid in the cluster that issued it"
	case isKind(object, "", "Event"), isKind(object, "events.k8s.io", "Event"), isKind(object, "coordination.k8s.io",
		"Lease"),
		isKind(object, "", "Endpoints"), isKind(object, "discovery.k8s.io", "EndpointSlice"), isKind(object, "", "Node"):
		return identifier(object).String() + " describes the state of its cluster"
	}
	return ""
}

// clusterSpecific reports whether an annotation was written by a controller of the cluster, by kubectl or by muster.
func clusterSpecific(name string) bool {
	return revisionAnnotation(name) || strings.HasPrefix(name, annotationPrefix) || strings.HasPrefix(name,
		"pv.kubernetes.io/") ||
		name == v1alpha1.DisabledAnnotation || name == "kubectl.kubernetes.io/last-applied-configuration" ||
		name == "volume.kubernetes.io/selected-node" || name == "volume.kubernetes.io/storage-provisioner" ||
		name == "volume.beta.kubernetes.io/storage-provisioner" || name == "batch.kubernetes.io/job-tracking"
}

// cleaners remove the fields that belong to one cluster, by kind.
var cleaners = map[schema.GroupKind]func(*unstructured.Unstructured){
	{Group: "batch", Kind: "Job"}: cleanJob,
	{Kind: "Service"}: func(m *unstructured.Unstructured) {
		if address, _, _ := unstructured.NestedString(m.Object, "spec", "clusterIP"); address != "None" {
			unstructured.RemoveNestedField(m.Object, "spec", "clusterIP")
			unstructured.RemoveNestedField(m.Object, "spec", "clusterIPs")
		}
		unstructured.RemoveNestedField(m.Object, "spec", "healthCheckNodePort")
	},
	{Kind: "PersistentVolumeClaim"}: func(m *unstructured.Unstructured) {
		unstructured.RemoveNestedField(m.Object, "spec", "volumeName")
	},
	{Kind: "PersistentVolume"}: func(m *unstructured.Unstructured) {
		unstructured.RemoveNestedField(m.Object, "spec", "claimRef")
	},
	{Kind: "ServiceAccount"}: func(m *unstructured.Unstructured) { delete(m.Object, "secrets") },
	{Kind: "Namespace"}:      func(m *unstructured.Unstructured) { delete(m.Object, "spec") },
	{Kind: "Pod"}: func(m *unstructured.Unstructured) {
		unstructured.RemoveNestedField(m.Object, "spec", "nodeName")
	},
}

// cleanJob removes the selector and the labels with the UID and the name of the Job, unless the selector is manual.
func cleanJob(m *unstructured.Unstructured) {
	if manual, _, _ := unstructured.NestedBool(m.Object, "spec", "manualSelector"); manual {
		return
	}
	unstructured.RemoveNestedField(m.Object, "spec", "selector")
	ofTheRun := func(name string) bool {
		name = strings.TrimPrefix(name, "batch.kubernetes.io/")
		return name == "controller-uid" || name == "job-name"
	}
	dropKeys(m, ofTheRun, "metadata", "labels")
	dropKeys(m, ofTheRun, "spec", "template", "metadata", "labels")
}
