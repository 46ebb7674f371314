package agent

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The agent needs these permissions on the member in addition to those on the objects that it applies. The file in
// the folder rbac is generated from the marker.

// +kubebuilder:rbac:groups=work.muster.dev,resources=appliedworks,verbs=get;list;watch;create;update;delete

// HubRules returns the permissions that an agent needs in its namespace on the hub.
func HubRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		// patch is for the finalizer, and delete for Works that have completed and have a TTL.
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"works"}, Verbs: []string{"get", "list", "watch",
			"patch", "delete"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"works/status"}, Verbs: []string{"patch"}},
		// The deletion of a Work with its namespace is not a request, so the agent reads the namespace. A RoleBinding in
		// a namespace grants access only to the Namespace object of that name.
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}
