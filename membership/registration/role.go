package registration

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// BootstrapRole returns the ClusterRole for clients that may create JoinRequests. Bind it in the registration
// namespace only. The verb get permits a client to read the answer to a request whose name it knows; the role does not
// permit list.
func BootstrapRole() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: membership.BootstrapClusterRole},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{v1alpha1.GroupName},
			Resources: []string{"joinrequests"},
			Verbs:     []string{"create", "get"},
		}},
	}
}
