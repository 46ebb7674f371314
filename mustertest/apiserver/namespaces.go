package apiserver

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

func (s *Server) observeNamespace(event store.Event) {
	c := &s.controllers
	name := event.Item.Key.Name
	switch {
	case event.Type == store.Deleted:
		delete(c.namespaces, name)
	case deleted(event.Item):
		c.namespaces[name] = true
		c.later(func() { s.reconcileNamespace(name) })
	default:
		c.later(func() { s.fillNamespace(name) })
	}
}

const (
	rootCertificates  = "kube-root-ca.crt"
	controllerManager = "kube-controller-manager"
)

// fillNamespace creates the objects that each namespace contains: the ServiceAccount default and the ConfigMap with the
// certificate authority.
func (s *Server) fillNamespace(name string) {
	item := s.store.Get(store.Key{Resource: namespaces, Name: name})
	if item == nil || deleted(item) {
		return
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: name}}
	// If the namespace is deleted in the meantime, nothing is created.
	_ = s.put(store.Key{Resource: serviceAccounts, Namespace: name, Name: "default"}, account, controllerManager)
	roots := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: rootCertificates, Namespace: name, Annotations: map[string]string{
			"kubernetes.io/description": "Contains a CA bundle that can be used to verify the kube-apiserver when using " +
				"internal " +
				"endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across " +
				"distributions of Kubernetes clusters.",
		}},
		Data: map[string]string{"ca.crt": string(s.authority.pem)},
	}
	_ = s.put(store.Key{Resource: configMaps, Namespace: name, Name: rootCertificates}, roots, controllerManager)
}

// reconcileNamespace deletes the contents of a terminating namespace, and then removes its finalizer.
func (s *Server) reconcileNamespace(name string) {
	key := store.Key{Resource: namespaces, Name: name}
	item := s.store.Get(key)
	if item == nil || !deleted(item) {
		return
	}
	left, finalizers := map[string]int{}, map[string]int{}
	for _, resource := range s.storedResources() {
		kind := s.served.stored(resource)
		if !kind.Namespaced {
			continue
		}
		items, _ := s.store.List(resource, name)
		for _, content := range items {
			if !deleted(content) {
				s.remove(content, metav1.DeletePropagationBackground)
			}
			if kind.Graceful(content.Object) { // no kubelet exists that would complete the deletion
				s.removeNow(content)
			}
			if rest := s.store.Get(content.Key); rest != nil {
				left[resource.String()]++
				for _, finalizer := range finalizersOf(metaOf(rest.Object)) {
					finalizers[finalizer]++
				}
			}
		}
	}
	s.edit(key, func(obj kinds.Object) bool {
		s.namespaceConditions(obj, left, finalizers)
		if len(left) == 0 {
			spec, _ := obj["spec"].(map[string]any)
			list, _ := spec["finalizers"].([]any)
			kept := slices.DeleteFunc(slices.Clone(list), func(f any) bool { return f == "kubernetes" })
			if len(kept) == 0 {
				obj["spec"] = map[string]any{}
			} else {
				obj["spec"] = map[string]any{"finalizers": kept}
			}
		}
		return true
	})
}

func (s *Server) removeNow(item *store.Item) {
	if len(finalizersOf(metaOf(item.Object))) > 0 {
		return
	}
	_ = s.store.Do(func(tx *store.Tx) error { // never returns an error
		tx.Delete(item.Key)
		return nil
	})
}

// namespaceConditions sets the conditions of a terminating namespace that state why its deletion is not complete.
func (s *Server) namespaceConditions(obj kinds.Object, left, finalizers map[string]int) {
	status, _ := obj["status"].(map[string]any)
	if status == nil {
		status = map[string]any{}
		obj["status"] = status
	}
	conditions, _ := status["conditions"].([]any)
	conditions = slices.Clone(conditions)
	set := func(kind corev1.NamespaceConditionType, met bool, reason, message string) {
		value := "False"
		if met {
			value = "True"
		}
		at := slices.IndexFunc(conditions, func(c any) bool {
			fields, _ := c.(map[string]any)
			return fields["type"] == string(kind)
		})
		condition := map[string]any{
			"type": string(kind), "status": value, "reason": reason, "message": message, "lastTransitionTime": s.now(),
		}
		if at < 0 {
			conditions = append(conditions, condition)
			return
		}
		if before, _ := conditions[at].(map[string]any); before["status"] == value {
			condition["lastTransitionTime"] = before["lastTransitionTime"]
		}
		conditions[at] = condition
	}
	set(corev1.NamespaceDeletionDiscoveryFailure, false, "ResourcesDiscovered", "All resources successfully discovered")
	set(corev1.NamespaceDeletionGVParsingFailure, false, "ParsedGroupVersions",
		"All legacy kube types successfully parsed")
	set(corev1.NamespaceDeletionContentFailure, false, "ContentDeleted",
		"All content successfully deleted, may be waiting on finalization")
	if len(left) > 0 {
		set(corev1.NamespaceContentRemaining, true, "SomeResourcesRemain", "Some resources are remaining: "+joinCounts(left,
			func(name string, n int) string {
				return fmt.Sprintf("%s has %d resource instances", name, n)
			}))
	} else {
		set(corev1.NamespaceContentRemaining, false, "ContentRemoved", "All content successfully removed")
	}
	if len(finalizers) > 0 {
		set(corev1.NamespaceFinalizersRemaining, true, "SomeFinalizersRemain",
			"Some content in the namespace has finalizers remaining: "+joinCounts(finalizers, func(name string, n int) string {
				return fmt.Sprintf("%s in %d resource instances", name, n)
			}))
	} else {
		set(corev1.NamespaceFinalizersRemaining, false, "ContentHasNoFinalizers",
			"All content-preserving finalizers finished")
	}
	status["conditions"] = conditions
}

func joinCounts(counts map[string]int, text func(string, int) string) string {
	var parts []string
	for name, n := range counts {
		if !strings.Contains(name, ".") && !strings.Contains(name, "/") {
			name += "."
		}
		parts = append(parts, text(name, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
