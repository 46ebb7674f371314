package agent

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// dropNamespaces takes the namespace off the objects whose kind is cluster-scoped, with a warning: many bundles have
// one there, and it can mean but one object. Kinds that the member does not know yet are found out the next time.
func (p *plan) dropNamespaces(mapper meta.RESTMapper) {
	known := map[schema.GroupVersionKind]meta.RESTScopeName{}
	for i := range p.manifests {
		m := &p.manifests[i]
		if m.object < 0 || m.scoped || m.id.Namespace == "" {
			continue
		}
		kind := m.id.GroupVersionKind()
		scope, asked := known[kind]
		if !asked {
			if mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version); err == nil {
				scope = mapping.Scope.Name()
			}
			known[kind] = scope
		}
		if m.scoped = scope != ""; scope != meta.RESTScopeNameRoot {
			continue
		}
		m.warning = fmt.Sprintf("metadata.namespace %s of the manifest is ignored, since %s is cluster-scoped. Remove it from the manifest.",
			m.id.Namespace, m.id.Kind)
		m.id.Namespace = ""
		manifest := p.objects[m.object].Manifest.DeepCopy()
		manifest.SetNamespace("")
		p.objects[m.object].Manifest = manifest
	}
	p.refuseTwins()
}

// refuseTwins refuses an object that is the same as an earlier one now that neither has a namespace.
func (p *plan) refuseTwins() {
	first := map[objectKey]int{}
	for i := range p.manifests {
		m := &p.manifests[i]
		if m.object < 0 {
			continue
		}
		earlier, twin := first[keyOf(m.id)]
		if !twin {
			first[keyOf(m.id)] = i
			continue
		}
		m.refused = fmt.Sprintf("spec.manifests[%d] is %s as well, since the kind is cluster-scoped: remove one of them", earlier, m.id)
		p.objects = append(p.objects[:m.object:m.object], p.objects[m.object+1:]...)
		for j := range p.manifests {
			if p.manifests[j].object > m.object {
				p.manifests[j].object--
			}
		}
		m.object = -1
	}
}
