package mustertest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Roles reads ClusterRoles and Roles from YAML files, such as the generated files in the folders rbac. It returns an
// error for a document of another kind and for an unknown field.
func Roles(files ...string) ([]client.Object, error) {
	var roles []client.Object
	for _, path := range files {
		file, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		for document := range bytes.SplitSeq(bytes.TrimPrefix(file, []byte("---\n")), []byte("\n---\n")) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal(document, &kind); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			role := map[string]client.Object{"ClusterRole": &rbacv1.ClusterRole{}, "Role": &rbacv1.Role{}}[kind.Kind]
			if role == nil {
				return nil, fmt.Errorf("%s contains a %q; only ClusterRole and Role are allowed", path, kind.Kind)
			}
			if err := yaml.UnmarshalStrict(document, role); err != nil {
				return nil, fmt.Errorf("%s: %w", path, err)
			}
			roles = append(roles, role)
		}
	}
	return roles, nil
}

// ClusterRole reads a YAML file that contains exactly one ClusterRole.
func ClusterRole(t testing.TB, file string) *rbacv1.ClusterRole {
	t.Helper()
	roles, err := Roles(file)
	require.NoError(t, err)
	require.Len(t, roles, 1)
	require.IsType(t, &rbacv1.ClusterRole{}, roles[0])
	return roles[0].(*rbacv1.ClusterRole)
}

// Grant creates roles, and a binding <user>-<role> for each of them. Existing roles and bindings are not changed. The
// namespaces of Roles must exist.
func Grant(ctx context.Context, admin client.Client, user string, roles ...client.Object) error {
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	for _, role := range roles {
		at := metav1.ObjectMeta{Namespace: role.GetNamespace(), Name: user + "-" + role.GetName()}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()}
		var binding client.Object = &rbacv1.ClusterRoleBinding{ObjectMeta: at, RoleRef: ref, Subjects: subjects}
		if _, is := role.(*rbacv1.Role); is {
			ref.Kind = "Role"
			binding = &rbacv1.RoleBinding{ObjectMeta: at, RoleRef: ref, Subjects: subjects}
		}
		for _, object := range []client.Object{role, binding} {
			if err := client.IgnoreAlreadyExists(admin.Create(ctx, object)); err != nil {
				return fmt.Errorf("grant %s to %s: %w", role.GetName(), user, err)
			}
		}
	}
	return nil
}

// GrantFiles calls Grant with the roles that Roles reads from the files.
func GrantFiles(ctx context.Context, admin client.Client, user string, files ...string) error {
	roles, err := Roles(files...)
	if err != nil {
		return err
	}
	return Grant(ctx, admin, user, roles...)
}
