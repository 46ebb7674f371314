package agent

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dropNamespaces removes the namespace from objects whose kind is cluster-scoped, with a warning: many bundles set
// one there, and the object is unambiguous without it. Kinds that the member does not serve yet are looked up again
// at the next reconcile.
//
// With an ObjectPolicy, the scope that the member serves has precedence over the scope that the Work defines: a Work
// must not declare a cluster-scoped object as namespaced.
func (p *plan) dropNamespaces(mapper meta.RESTMapper, memberFirst bool) {
	defined, known := p.definedScopes(), map[schema.GroupVersionKind]meta.RESTScopeName{}
	for i := range p.manifests {
		m := &p.manifests[i]
		if m.object < 0 || m.scoped || m.id.Namespace == "" {
			continue
		}
		kind := m.id.GroupVersionKind()
		scope, asked := known[kind]
		if !asked {
			scope = defined[kind]
		}
		if !asked && (scope == "" || memberFirst) {
			if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
				scope = mapping.Scope.Name()
			}
		}
		known[kind] = scope
		if m.scoped = scope != ""; scope != meta.RESTScopeNameRoot {
			continue
		}
		m.warning = strings.TrimSpace(m.warning + fmt.Sprintf(
			" metadata.namespace %s of the manifest is ignored because %s is cluster-scoped. Remove the namespace from the "+
				"manifest.",
			m.id.Namespace, m.id.Kind))
		m.id.Namespace = ""
		manifest := p.objects[m.object].Manifest.DeepCopy()
		manifest.SetNamespace("")
		p.objects[m.object].Manifest = manifest
	}
	p.rejectDuplicates()
}

// definedScopes returns the scopes of the kinds that manifests of the Work define. The member may not serve them yet.
func (p *plan) definedScopes() map[schema.GroupVersionKind]meta.RESTScopeName {
	scopes := map[schema.GroupVersionKind]meta.RESTScopeName{}
	for _, object := range p.objects {
		if object.Manifest.GetKind() != "CustomResourceDefinition" {
			continue
		}
		text := func(fields ...string) string {
			value, _, _ := unstructured.NestedString(object.Manifest.Object, fields...)
			return value
		}
		scope := meta.RESTScopeNameNamespace
		if text("spec", "scope") == "Cluster" {
			scope = meta.RESTScopeNameRoot
		}
		versions, _, _ := unstructured.NestedFieldNoCopy(object.Manifest.Object, "spec", "versions")
		list, _ := versions.([]any)
		for _, entry := range list {
			version, _ := entry.(map[string]any)
			if name, ok := version["name"].(string); ok {
				scopes[schema.GroupVersionKind{Group: text("spec", "group"), Version: name, Kind: text("spec", "names",
					"kind")}] = scope
			}
		}
	}
	return scopes
}

// rejectDuplicates rejects an object that is identical to an earlier one after the namespaces of both were removed.
func (p *plan) rejectDuplicates() {
	first := map[objectKey]int{}
	for i := range p.manifests {
		m := &p.manifests[i]
		if m.object < 0 {
			continue
		}
		earlier, duplicate := first[keyOf(m.id)]
		if !duplicate {
			first[keyOf(m.id)] = i
			continue
		}
		m.refused = fmt.Sprintf("spec.manifests[%d] is %s as well because the kind is cluster-scoped: remove one of them",
			earlier, m.id)
		p.drop(m)
	}
}
