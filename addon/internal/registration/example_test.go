package registration_test

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/addon/internal/registration"
)

// Rules that an agent may have, and a rule that is rejected.
func ExampleValidateRules() {
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
		{APIGroups: []string{"work.muster.dev"}, Resources: []string{"works"}, Verbs: []string{"get"}},
	}
	for _, err := range registration.ValidateRules("backup", rules, field.NewPath("spec", "registration", "rules")) {
		fmt.Println(err)
	}
	// Output:
	// spec.registration.rules[1].resourceNames: Required value: name the secrets that the agent can read: a Secret can contain the credential of another agent, and Kubernetes can be made to store one there
	// spec.registration.rules[2].resources[0]: Forbidden: Works contain the credentials of other add-ons, and their content is applied on the member
}
