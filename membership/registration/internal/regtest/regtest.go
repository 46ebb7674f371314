// Package regtest helps the tests of registration to use real control planes, as users with exactly the permissions
// that the code under test declares.
package regtest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// Scheme returns a scheme with the types of Kubernetes and membership. Callers must not modify it.
var Scheme = sync.OnceValue(func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // Two types have the same name, which is a programming error.
		}
	}
	return scheme
})

// Client returns a client without a cache.
func Client(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: Scheme()})
	require.NoError(t, err)
	return c
}

// Create creates objects and deletes them with the test.
func Create(t testing.TB, admin client.Client, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		require.NoError(t, admin.Create(t.Context(), object))
		t.Cleanup(func() {
			require.NoError(t, client.IgnoreNotFound(admin.Delete(context.Background(), object)))
		})
	}
}

// Grant grants a user the permissions of the RBAC markers in the Go files of the test's own folder.
func Grant(t testing.TB, admin client.Client, user string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	rules := map[string][]rbacv1.PolicyRule{} // by namespace
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, marker := range regexp.MustCompile(`(?m)^// \+kubebuilder:rbac:(.*)$`).FindAllStringSubmatch(
			string(source), -1) {
			fields := map[string]string{}
			for field := range strings.SplitSeq(marker[1], ",") {
				name, value, _ := strings.Cut(field, "=")
				fields[name] = strings.Trim(value, `"`)
			}
			rule := rbacv1.PolicyRule{
				APIGroups: []string{fields["groups"]},
				Resources: strings.Split(fields["resources"], ";"),
				Verbs:     strings.Split(fields["verbs"], ";"),
			}
			if names := fields["resourceNames"]; names != "" {
				rule.ResourceNames = strings.Split(names, ";")
			}
			rules[fields["namespace"]] = append(rules[fields["namespace"]], rule)
		}
	}
	require.NotEmpty(t, rules)
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	for namespace, granted := range rules {
		meta := metav1.ObjectMeta{Name: user, Namespace: namespace}
		if namespace == "" {
			Create(t, admin, &rbacv1.ClusterRole{ObjectMeta: meta, Rules: granted}, &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, Subjects: subjects,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
			})
			continue
		}
		Create(t, admin, &rbacv1.Role{ObjectMeta: meta, Rules: granted}, &rbacv1.RoleBinding{
			ObjectMeta: meta, Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		})
	}
}
