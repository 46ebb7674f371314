package agent

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// isCustom reports whether a kind is one of custom resources. In its default wave such an object does not hold back
// later waves, applied or not: the operator that makes it ready, or that serves its webhooks, may be in one of them.
func isCustom(kind schema.GroupKind) bool {
	return strings.Contains(kind.Group, ".") && !kubernetesGroups[kind.Group]
}
