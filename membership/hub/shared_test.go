package hub_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/mustertest"
)

// TestSharedClusterRoles_Restored checks that the hub corrects the ClusterRoles of agents and of bootstrap credentials
// while it runs.
func TestSharedClusterRoles_Restored(t *testing.T) {
	h := startHub(t, plane.ForTest(t), hub.Options{})
	want := map[string][]rbacv1.PolicyRule{
		membership.AgentClusterRole:     hub.AgentRole().Rules,
		membership.BootstrapClusterRole: registration.BootstrapRole().Rules,
	}
	restored := func(what string) {
		t.Helper()
		for name, rules := range want {
			mustertest.Eventually(t, 2*time.Minute, fmt.Sprintf("ClusterRole %s is restored after %s", name, what),
				func() error {
					role := &rbacv1.ClusterRole{}
					if err := h.client.Get(t.Context(), client.ObjectKey{Name: name}, role); err != nil {
						return err
					}
					if !equality.Semantic.DeepEqual(role.Rules, rules) {
						return fmt.Errorf("the rules are %v", role.Rules)
					}
					return nil
				})
		}
	}
	restored("the start")
	for name, rules := range want {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mustertest.Change(t, h.client, role, func(role *rbacv1.ClusterRole) {
			role.Rules = append(slices.Clone(rules), rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
			})
		})
	}
	restored("an update")
	for name := range want {
		require.NoError(t, h.client.Delete(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	restored("a deletion")
}
