package crds_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

const appliedWorks = "appliedworks.work.muster.dev"

// definitionOf returns the definition of AppliedWork; nil: it does not exist.
func definitionOf(t *testing.T, c client.Client) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	err := c.Get(t.Context(), client.ObjectKey{Name: appliedWorks}, definition)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(t, err)
	return definition
}

func TestRemoveFromMember(t *testing.T) {
	c := installed(t)
	inventory := &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "anothers"},
		Spec: v1alpha1.AppliedWorkSpec{Work: v1alpha1.WorkReference{Hub: "another", Namespace: "member-east",
			Name: "web", UID: "u"}, FieldOwner: "muster-work-u"},
	}
	for _, test := range []struct {
		reason  string
		before  func()
		kept    string // the reason why the definition is kept; empty: it is deleted
		restore func()
	}{
		{"unused definition", func() {}, "", func() {}},
		{"no definition", func() {}, "", func() { require.NoError(t, crds.InstallOnMember(t.Context(), c)) }},
		{
			"an AppliedWork exists",
			func() { require.NoError(t, c.Create(t.Context(), inventory)) },
			"there is AppliedWork anothers",
			func() { require.NoError(t, c.Delete(t.Context(), inventory)) },
		},
		{
			"definition installed by a hub",
			func() { edit(t, c, map[string]any{"membership.muster.dev/installed-by": "a-member"}, "muster-crds") },
			"a hub has installed it",
			func() { require.NoError(t, crds.InstallOnMember(t.Context(), c)) },
		},
		{
			"definition applied by kubectl after the installation",
			func() { edit(t, c, nil, "kubectl-client-side-apply") },
			"kubectl-client-side-apply manages it",
			func() { require.NoError(t, c.Delete(t.Context(), definitionOf(t, c))) },
		},
		{
			"definition managed by kubectl only",
			func() {
				require.Eventually(t, func() bool { return definitionOf(t, c) == nil }, time.Minute, 50*time.Millisecond)
				edit(t, c, nil, "kubectl")
			},
			"kubectl manages it",
			func() {
				require.NoError(t, c.Delete(t.Context(), definitionOf(t, c)))
				require.Eventually(t, func() bool { return definitionOf(t, c) == nil }, time.Minute, 50*time.Millisecond)
				require.NoError(t, crds.InstallOnMember(t.Context(), c))
			},
		},
		{"definition installed again", func() {}, "", func() { require.NoError(t, crds.InstallOnMember(t.Context(), c)) }},
	} {
		test.before()
		kept, err := crds.RemoveFromMember(t.Context(), c)
		require.NoError(t, err, test.reason)
		if test.kept == "" {
			require.Empty(t, kept, test.reason)
			require.Nil(t, definitionOf(t, c), test.reason)
		} else {
			require.Equal(t, appliedWorks+": "+test.kept, kept, test.reason)
			require.Nil(t, definitionOf(t, c).DeletionTimestamp, test.reason)
		}
		test.restore()
	}
	require.NoError(t, c.List(t.Context(), &v1alpha1.AppliedWorkList{}),
		"the definition is served to the same client after the installation")
}

// TestInstall_WaitsForDeletionOfFormerDefinition checks an agent that is installed again immediately after a leave: the
// former definition is served until it is deleted.
func TestInstall_WaitsForDeletionOfFormerDefinition(t *testing.T) {
	c := installed(t)
	blocked := &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/hold"}},
		Spec: v1alpha1.AppliedWorkSpec{Work: v1alpha1.WorkReference{Hub: "hub", Namespace: "member-east", Name: "web",
			UID: "u"}, FieldOwner: "muster-work-u"},
	}
	require.NoError(t, c.Create(t.Context(), blocked))
	last := definitionOf(t, c)
	require.NoError(t, c.Delete(t.Context(), last))
	done := make(chan error, 1)
	go func() { done <- crds.InstallOnMember(t.Context(), c) }()
	require.Eventually(t, func() bool {
		return c.Get(t.Context(), client.ObjectKeyFromObject(blocked), blocked) == nil && blocked.DeletionTimestamp != nil
	}, time.Minute, 50*time.Millisecond, "the AppliedWorks are deleted with their definition")
	blocked.Finalizers = nil
	require.NoError(t, c.Update(t.Context(), blocked))
	require.NoError(t, <-done)
	require.NotEqual(t, last.UID, definitionOf(t, c).UID)
	require.NoError(t, c.List(t.Context(), &v1alpha1.AppliedWorkList{}))
}

// edit applies the definition as another client.
func edit(t *testing.T, c client.Client, labels map[string]any, manager client.FieldOwner) {
	t.Helper()
	data, err := crds.Member.ReadFile("work.muster.dev_appliedworks.yaml")
	require.NoError(t, err)
	definition := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(data, &definition.Object))
	if labels != nil {
		require.NoError(t, unstructured.SetNestedMap(definition.Object, labels, "metadata", "labels"))
	}
	require.NoError(t, c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(definition), manager,
		client.ForceOwnership))
}

// TestRemoveFromMember_Permissions checks that the documented permissions of RemoveFromMember are sufficient, and that
// each of them is necessary.
func TestRemoveFromMember_Permissions(t *testing.T) {
	admin := installed(t)
	needed := []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{appliedWorks}, Verbs: []string{"get"}},
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
			ResourceNames: []string{appliedWorks}, Verbs: []string{"delete"}},
		{APIGroups: []string{v1alpha1.GroupName}, Resources: []string{"appliedworks"}, Verbs: []string{"list"}},
	}
	user := func(name string, rules []rbacv1.PolicyRule) client.Client {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
		create(t, admin, role)
		create(t, admin, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole",
				Name: name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
		})
		c, err := client.New(plane.ForTest(t).User(name), client.Options{Scheme: runtime.NewScheme()})
		require.NoError(t, err)
		return c
	}
	for i, missing := range []string{"get", "delete", "list"} {
		rules := append(append([]rbacv1.PolicyRule{}, needed[:i]...), needed[i+1:]...)
		_, err := crds.RemoveFromMember(t.Context(), user("remover-without-"+missing, rules))
		require.True(t, apierrors.IsForbidden(err), "without %s: %v", missing, err)
		require.Nil(t, definitionOf(t, admin).DeletionTimestamp, missing)
	}
	remover := user("remover", needed)
	require.Eventually(t, func() bool { // the authorizer observes the role after a while
		kept, err := crds.RemoveFromMember(t.Context(), remover)
		return err == nil && kept == ""
	}, time.Minute, 50*time.Millisecond)
	require.Nil(t, definitionOf(t, admin))
	err := remover.Delete(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "works.work.muster.dev"},
	}})
	require.True(t, apierrors.IsForbidden(err), "another definition: %v", err)
	require.NoError(t, crds.InstallOnMember(t.Context(), admin))
}
