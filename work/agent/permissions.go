package agent

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The permissions that an agent needs on the member besides those on what it applies, from which the file in the folder
// rbac is made.

// +kubebuilder:rbac:groups=work.muster.dev,resources=appliedworks,verbs=get;list;watch;create;update;delete

// HubRules are the permissions that an agent needs in its namespace on the hub.
func HubRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		// patch is for the finalizer, and delete for Works that have completed and have a TTL.
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"works"}, Verbs: []string{"get", "list", "watch",
			"patch", "delete"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"works/status"}, Verbs: []string{"patch"}},
		// A Work that is deleted with the namespace is not deleted on request. A RoleBinding in a namespace grants access to
		// the object of that namespace alone.
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}
