package hub_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/mustertest"
)

// TestSharedClusterRoles_Restored checks that the hub corrects the ClusterRoles of agents and of bootstrap credentials
// while it runs.
func TestSharedClusterRoles_Restored(t *testing.T) {
	testkit.Virtual(t, testSharedClusterRolesRestored)
}

func testSharedClusterRolesRestored(t *testing.T) {
	h := startHub(t, newMemory(t), hub.Options{})
	h.requireRoles("the start")
	for name, rules := range sharedRules() {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		mustertest.Change(t, h.Client, role, func(role *rbacv1.ClusterRole) {
			role.Rules = append(slices.Clone(rules), rbacv1.PolicyRule{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"},
			})
		})
	}
	h.requireRoles("an update")
	h.deleteRoles()
	h.requireRoles("a deletion")
}

// TestSharedClusterRoles_DeletedBeforeTheFirstList checks that the hub creates ClusterRoles again that are deleted
// after it has created them, and before it has observed them: no watch event reports this deletion.
func TestSharedClusterRoles_DeletedBeforeTheFirstList(t *testing.T) {
	testkit.Virtual(t, testSharedClusterRolesDeletedBeforeTheFirstList)
}

func testSharedClusterRolesDeletedBeforeTheFirstList(t *testing.T) {
	listing, proceed := make(chan struct{}, 8), make(chan struct{})
	delayed := func(config *rest.Config) *rest.Config {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/clusterroles") {
					select {
					case listing <- struct{}{}:
					default:
					}
					select {
					case <-proceed:
					case <-r.Context().Done():
					}
				}
				return next.RoundTrip(r)
			})
		})
		return config
	}
	h := startHub(t, newMemory(t), hub.Options{}, delayed)
	for range sharedRules() {
		select {
		case <-listing:
		case <-time.After(2 * time.Minute):
			t.Fatal("the hub does not list ClusterRoles")
		}
	}
	h.deleteRoles()
	close(proceed)
	h.requireRoles("a deletion before the first list")
}

// sharedRules returns the rules of the ClusterRoles that all members share.
func sharedRules() map[string][]rbacv1.PolicyRule {
	return map[string][]rbacv1.PolicyRule{
		membership.AgentClusterRole:     hub.AgentRole().Rules,
		membership.BootstrapClusterRole: registration.BootstrapRole().Rules,
	}
}

func (h *testHub) deleteRoles() {
	h.T.Helper()
	for name := range sharedRules() {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		require.NoError(h.T, h.Client.Delete(h.T.Context(), role))
	}
}

func (h *testHub) requireRoles(after string) {
	h.T.Helper()
	for name, rules := range sharedRules() {
		h.Eventually(fmt.Sprintf("ClusterRole %s is restored after %s", name, after),
			func() error {
				role := &rbacv1.ClusterRole{}
				if err := h.Client.Get(h.T.Context(), client.ObjectKey{Name: name}, role); err != nil {
					return err
				}
				if !equality.Semantic.DeepEqual(role.Rules, rules) {
					return fmt.Errorf("the rules are %v", role.Rules)
				}
				return nil
			})
	}
}
