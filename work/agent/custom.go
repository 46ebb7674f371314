package agent

import (
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// kubernetesGroups are the API groups of Kubernetes itself whose names have a dot.
var kubernetesGroups = map[string]bool{
	"admissionregistration.k8s.io": true, "apiextensions.k8s.io": true, "apiregistration.k8s.io": true,
	"certificates.k8s.io": true,
	"coordination.k8s.io": true, "discovery.k8s.io": true, "events.k8s.io": true, "flowcontrol.apiserver.k8s.io": true,
	"networking.k8s.io": true, "node.k8s.io": true, "rbac.authorization.k8s.io": true, "resource.k8s.io": true,
	"scheduling.k8s.io": true,
	"storage.k8s.io":    true, "storagemigration.k8s.io": true,
}

// isCustom reports whether a kind is one of custom resources. In its default wave, a custom resource does not block
// later waves, whether or not it is applied: the operator that makes it ready, or that serves its webhooks, may be in
// one of them.
func isCustom(kind schema.GroupKind) bool {
	return strings.Contains(kind.Group, ".") && !kubernetesGroups[kind.Group]
}

// statusKinds reads which kinds of custom resources have the subresource status. It sends one discovery request for
// each API version.
type statusKinds struct {
	discovery discovery.DiscoveryInterface

	mu    sync.Mutex
	known map[schema.GroupVersionResource]bool
}

// hasStatus reports whether a resource has the subresource status. While the API server does not respond, it returns
// false: the readiness of an object must not depend on discovery.
func (k *statusKinds) hasStatus(resource schema.GroupVersionResource) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if has, known := k.known[resource]; known {
		return has
	}
	all, err := k.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return false
	}
	named := func(name string) bool {
		return slices.ContainsFunc(all.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	if named(resource.Resource) {
		k.known[resource] = named(resource.Resource + "/status")
	}
	return k.known[resource]
}
