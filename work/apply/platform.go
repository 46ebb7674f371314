package apply

import (
	"bytes"
	"encoding/base64"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// prepared returns the manifest as it is applied: without the fields that a controller of Kubernetes, or one that is
// named by an annotation of the object, writes in every cluster. To apply them would start a contest that cannot be
// won. The manifest is not changed; it is returned as it is if there is nothing to drop.
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

// platformWriter is a controller that writes fields of certain objects in every cluster.
type platformWriter struct {
	writes func(manifest *unstructured.Unstructured) bool // reports whether the manifest has such fields
	drop   func(manifest *unstructured.Unstructured)
}

var platformWriters = []platformWriter{
	// The deployment controller counts revisions in annotations of Deployments and ReplicaSets.
	{
		func(m *unstructured.Unstructured) bool {
			return m.GroupVersionKind().Group == "apps" && hasKey(m, revisionAnnotation, "metadata", "annotations")
		},
		func(m *unstructured.Unstructured) { dropKeys(m, revisionAnnotation, "metadata", "annotations") },
	},
	// The aggregation controller writes the rules of a ClusterRole with an aggregation rule.
	{
		func(m *unstructured.Unstructured) bool {
			_, has := m.Object["rules"]
			return has && isKind(m, "rbac.authorization.k8s.io", "ClusterRole") && m.Object["aggregationRule"] != nil
		},
		func(m *unstructured.Unstructured) { delete(m.Object, "rules") },
	},
	// CA injectors, and API servers that publish their own CA, replace placeholders. Without an annotation that names
	// an injector, a bundle with a certificate in it is meant as it is.
	{
		func(m *unstructured.Unstructured) bool {
			found := false
			eachCABundle(m, func(map[string]any) { found = true })
			return found
		},
		func(m *unstructured.Unstructured) {
			eachCABundle(m, func(holder map[string]any) { delete(holder, "caBundle") })
		},
	},
	// The token controller fills the Secrets of ServiceAccounts, and deletes those with the UID of another cluster's
	// account.
	{
		func(m *unstructured.Unstructured) bool {
			kind, _, _ := unstructured.NestedString(m.Object, "type")
			return isKind(m, "", "Secret") && kind == "kubernetes.io/service-account-token" &&
				(hasKey(m, tokenKey, "data") || hasKey(m, tokenAnnotation, "metadata", "annotations"))
		},
		func(m *unstructured.Unstructured) {
			dropKeys(m, tokenKey, "data")
			dropKeys(m, tokenAnnotation, "metadata", "annotations")
		},
	},
	// The Job controller selects pods by the UID of the Job. The API server rejects those of another one.
	{
		func(m *unstructured.Unstructured) bool {
			manual, _, _ := unstructured.NestedBool(m.Object, "spec", "manualSelector")
			return isKind(m, "batch", "Job") && !manual && (hasKey(m, uidLabel, "spec", "selector", "matchLabels") ||
				hasKey(m, uidLabel, "spec", "template", "metadata", "labels"))
		},
		func(m *unstructured.Unstructured) { cleanJob(m) },
	},
	// The API server keeps no status that is applied with the rest of an object of Kubernetes' own kinds.
	{
		func(m *unstructured.Unstructured) bool {
			group := m.GroupVersionKind().Group
			_, has := m.Object["status"]
			return has && (!strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io"))
		},
		func(m *unstructured.Unstructured) { delete(m.Object, "status") },
	},
}

func isKind(m *unstructured.Unstructured, group, kind string) bool {
	return m.GroupVersionKind().GroupKind() == schema.GroupKind{Group: group, Kind: kind}
}

func revisionAnnotation(name string) bool {
	return strings.HasPrefix(name, "deployment.kubernetes.io/") || name == "deprecated.daemonset.template.generation"
}

func tokenKey(name string) bool { return name == "token" || name == "ca.crt" || name == "namespace" }

func tokenAnnotation(name string) bool { return name == "kubernetes.io/service-account.uid" }

func uidLabel(name string) bool {
	return strings.TrimPrefix(name, "batch.kubernetes.io/") == "controller-uid"
}

func hasKey(m *unstructured.Unstructured, is func(string) bool, path ...string) bool {
	fields, _, _ := unstructured.NestedFieldNoCopy(m.Object, path...)
	entries, _ := fields.(map[string]any)
	for name := range entries {
		if is(name) {
			return true
		}
	}
	return false
}

// dropKeys removes keys of a map, and the map if it becomes empty.
func dropKeys(m *unstructured.Unstructured, is func(string) bool, path ...string) {
	fields, _, _ := unstructured.NestedFieldNoCopy(m.Object, path...)
	entries, _ := fields.(map[string]any)
	for name := range entries {
		if is(name) {
			delete(entries, name)
		}
	}
	if entries != nil && len(entries) == 0 {
		unstructured.RemoveNestedField(m.Object, path...)
	}
}

// injectors are the annotations that name who fills in the CA bundles of an object.
var injectors = []string{
	"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// eachCABundle visits the maps with a caBundle that another client fills in.
func eachCABundle(m *unstructured.Unstructured, visit func(holder map[string]any)) {
	injected := false
	for _, annotation := range injectors {
		_, has := m.GetAnnotations()[annotation]
		injected = injected || has
	}
	check := func(holder any) {
		fields, _ := holder.(map[string]any)
		if bundle, has := fields["caBundle"]; has && (injected || isPlaceholder(bundle)) {
			visit(fields)
		}
	}
	nested := func(object map[string]any, path ...string) any {
		value, _, _ := unstructured.NestedFieldNoCopy(object, path...)
		return value
	}
	switch m.GroupVersionKind().GroupKind() {
	case definition:
		check(nested(m.Object, "spec", "conversion", "webhook", "clientConfig"))
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		check(nested(m.Object, "spec"))
	case schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}:
		webhooks, _ := nested(m.Object, "webhooks").([]any)
		for _, entry := range webhooks {
			if webhook, ok := entry.(map[string]any); ok {
				check(webhook["clientConfig"])
			}
		}
	}
}

// isPlaceholder reports whether a CA bundle has no certificate in it.
func isPlaceholder(bundle any) bool {
	text, ok := bundle.(string)
	if !ok {
		return bundle == nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && !bytes.Contains(data, []byte("-----BEGIN"))
}

// published reports whether Kubernetes itself keeps the object in every namespace, with values of the cluster that it
// is in.
func (o Object) published() bool {
	return isKind(o.Manifest, "", "ConfigMap") && o.Manifest.GetName() == "kube-root-ca.crt"
}
