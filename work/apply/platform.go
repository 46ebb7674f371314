package apply

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/internal/ssa"
)

// platformWriter is a component that writes fields of certain objects in every cluster.
type platformWriter struct {
	writes func(manifest *unstructured.Unstructured) bool // reports whether the manifest has fields to drop
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
	// CA injectors replace placeholders of CA bundles. A bundle that contains a certificate is only dropped if an
	// annotation names an injector.
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
	// The token controller writes the data of token Secrets. It deletes a Secret that has the UID of an account of
	// another cluster.
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
	// The API server sets the selector and labels with the UID of the Job, and rejects the UID of another Job.
	{
		func(m *unstructured.Unstructured) bool {
			manual, _, _ := unstructured.NestedBool(m.Object, "spec", "manualSelector")
			return isKind(m, "batch", "Job") && !manual && (hasKey(m, uidLabel, "spec", "selector", "matchLabels") ||
				hasKey(m, uidLabel, "spec", "template", "metadata", "labels"))
		},
		func(m *unstructured.Unstructured) { cleanJob(m) },
	},
	// The Job controller removes its finalizer from pods that belong to no Job.
	{
		func(m *unstructured.Unstructured) bool {
			return isKind(m, "", "Pod") && slices.ContainsFunc(m.GetFinalizers(), jobFinalizer)
		},
		func(m *unstructured.Unstructured) { dropFinalizers(m, jobFinalizer) },
	},
	// The API server ignores the status in an apply of Kubernetes' own kinds, which have the subresource status.
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

func jobFinalizer(name string) bool { return name == "batch.kubernetes.io/job-tracking" }

// dropFinalizers removes finalizers, and their list if it becomes empty.
func dropFinalizers(m *unstructured.Unstructured, is func(string) bool) {
	finalizers := slices.DeleteFunc(m.GetFinalizers(), is)
	if m.SetFinalizers(finalizers); len(finalizers) == 0 {
		unstructured.RemoveNestedField(m.Object, "metadata", "finalizers")
	}
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

// injectors are the annotations by which an object requests that an injector writes its CA bundles.
var injectors = []string{
	"cert-manager.io/inject-ca-from", "cert-manager.io/inject-ca-from-secret", "cert-manager.io/inject-apiserver-ca",
	"service.beta.openshift.io/inject-cabundle",
}

// eachCABundle visits the maps with a caBundle that an injector writes.
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
	case ssa.DefinitionKind:
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

// isPlaceholder reports whether a CA bundle contains no certificate.
func isPlaceholder(bundle any) bool {
	text, ok := bundle.(string)
	if !ok {
		return bundle == nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	return err == nil && !bytes.Contains(data, []byte("-----BEGIN"))
}

// published reports whether Kubernetes publishes the object in every namespace, with values of the cluster.
func (o Object) published() bool {
	return isKind(o.Manifest, "", "ConfigMap") && o.Manifest.GetName() == "kube-root-ca.crt"
}
