package crds_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// Objects after an API server has stored them.

// stored creates an object for the time of the test.
func stored[T client.Object](t *testing.T, c client.Client, object T) T {
	t.Helper()
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	return object
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

// TestDefaults checks that an object with only required fields gets the documented defaults.
func TestDefaults(t *testing.T) {
	c := installed(t)
	for _, test := range []struct {
		reason string
		object client.Object
		want   string
	}{
		{"an Addon", &v1alpha1.Addon{ObjectMeta: meta("", "a")}, `
			{installNamespace: muster-addons, install: {type: Manual}, health: {type: Works}, removal: {deadlineSeconds: 900}}`},
		{"an Addon with a placement", &v1alpha1.Addon{ObjectMeta: meta("", "a"), Spec: v1alpha1.AddonSpec{
			Configs: []v1alpha1.ConfigKind{{Resource: "configmaps"}},
			Install: v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements,
				Placements: []v1alpha1.PlacementInstall{{Namespace: "fleet", Name: "all"}}},
		}}, `
			{installNamespace: muster-addons, configs: [{group: "", resource: configmaps}], health: {type: Works},
			  removal: {deadlineSeconds: 900},
			install: {type: Placements, placements: [{namespace: fleet, name: all, rollout: {type: All,
			  progressDeadlineSeconds: 600, onFailure: Halt, state: Run}}]}}`},
		{"a MemberAddon", &v1alpha1.MemberAddon{ObjectMeta: meta("default", "a")}, `{}`},
		{"an AddonConfig", &v1alpha1.AddonConfig{ObjectMeta: meta("default", "a")}, `{}`},
		{"an AddonTemplate", &v1alpha1.AddonTemplate{ObjectMeta: meta("", "a"), Spec: v1alpha1.AddonTemplateSpec{
			Manifests: template(t, `manifests: []`).Manifests, Registration: &v1alpha1.TemplateRegistration{},
		}}, `
			{manifests: [], apply: {mode: ServerSideApply, takeover: Never, drift: Correct}, waves: {timeoutSeconds: 600},
			  registration: {credential: Token}}`},
	} {
		require.NoError(t, c.Create(t.Context(), test.object, client.DryRunAll), test.reason)
		// The object as the API server returns it: Go types omit empty fields.
		text, err := json.Marshal(test.object)
		require.NoError(t, err)
		var got, want map[string]any
		require.NoError(t, json.Unmarshal(text, &got))
		require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(test.want, "\t", " ")), &want))
		spec, _ := got["spec"].(map[string]any)
		if spec == nil {
			spec = map[string]any{}
		}
		if diff := cmp.Diff(want, spec); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.reason, diff)
		}
	}
}

func template(t *testing.T, text string) v1alpha1.AddonTemplateSpec {
	t.Helper()
	var spec v1alpha1.AddonTemplateSpec
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &spec))
	return spec
}

// TestNames checks names: the name of an add-on is part of other names, and a MemberAddon has the name of its Addon.
func TestNames(t *testing.T) {
	c := installed(t)
	for _, test := range []struct {
		object client.Object
		want   string // empty: the name is valid
	}{
		{&v1alpha1.Addon{ObjectMeta: meta("", as(50))}, ""},
		{&v1alpha1.Addon{ObjectMeta: meta("", as(51))}, "must be a DNS label of at most 50 characters"},
		{&v1alpha1.Addon{ObjectMeta: meta("", "a.b")}, "must be a DNS label of at most 50 characters"},
		{&v1alpha1.Addon{ObjectMeta: meta("", "heartbeat")}, "the Lease heartbeat is the member's own"},
		{&v1alpha1.MemberAddon{ObjectMeta: meta("default", as(50))}, ""},
		{&v1alpha1.MemberAddon{ObjectMeta: meta("default", as(51))}, "a MemberAddon must have the name of its Addon"},
		{&v1alpha1.MemberAddon{ObjectMeta: meta("default", "a.b")}, "a MemberAddon must have the name of its Addon"},
		{&v1alpha1.AddonConfig{ObjectMeta: meta("default", "a.b"+as(60))}, ""},
		{&v1alpha1.AddonTemplate{ObjectMeta: meta("", "metrics-v1.2.3"), Spec: template(t, `manifests: []`)}, ""},
	} {
		err := c.Create(t.Context(), test.object, client.DryRunAll)
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%T %s: %v", test.object, test.object.GetName(), err)
		case test.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%T %s: want an error with %q, got %v", test.object, test.object.GetName(), test.want, err)
		}
	}
}

// `kubectl get muster` lists all kinds, and only the status subresource changes a status.
func TestScopesAndSubresources(t *testing.T) {
	c := installed(t)
	for name, want := range map[string]struct {
		scope  apiextensionsv1.ResourceScope
		status bool
	}{
		"addons":         {apiextensionsv1.ClusterScoped, true},
		"memberaddons":   {apiextensionsv1.NamespaceScoped, true},
		"addonconfigs":   {apiextensionsv1.NamespaceScoped, false},
		"addontemplates": {apiextensionsv1.ClusterScoped, false},
	} {
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name + ".addon.muster.dev"}, &definition))
		require.Equal(t, want.scope, definition.Spec.Scope, name)
		subresources := definition.Spec.Versions[0].Subresources
		require.Equal(t, want.status, subresources != nil && subresources.Status != nil, name)
		require.Equal(t, []string{"muster"}, definition.Status.AcceptedNames.Categories, name)
	}

	addon := stored(t, c, &v1alpha1.Addon{ObjectMeta: meta("", "status")})
	addon.Status.Message, addon.Spec.DisplayName = "well", "Status"
	require.NoError(t, c.Update(t.Context(), addon))
	require.Empty(t, addon.Status.Message, "an update of the spec does not change the status")
	require.EqualValues(t, 2, addon.Generation)
	addon.Status.Message, addon.Spec.DisplayName = "well", "Other"
	require.NoError(t, c.Status().Update(t.Context(), addon))
	require.Equal(t, "well", addon.Status.Message)
	require.Equal(t, "Status", addon.Spec.DisplayName, "an update of the status does not change the spec")
	require.EqualValues(t, 2, addon.Generation)
}

// TestApprovalsOfSeveralPeople checks that each of two approvers owns one approval and removes only that one.
func TestApprovalsOfSeveralPeople(t *testing.T) {
	c := installed(t)
	addon := stored(
		t,
		c,
		&v1alpha1.Addon{ObjectMeta: meta("", "approvals"), Spec: v1alpha1.AddonSpec{Install: v1alpha1.InstallStrategy{
			Type: v1alpha1.InstallPlacements, Placements: []v1alpha1.PlacementInstall{{Namespace: "fleet", Name: "all"}},
		}}},
	)
	approve := func(approver string, approvals ...any) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "addon.muster.dev/v1alpha1", "kind": "Addon",
			"metadata": map[string]any{"name": addon.Name},
			"spec": map[string]any{"install": map[string]any{"type": "Placements", "placements": []any{
				map[string]any{"namespace": "fleet", "name": "all", "approvals": approvals},
			}}},
		}}
		require.NoError(
			t,
			c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(approver)),
			approver,
		)
	}
	stages := func() (found []string) {
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(addon), addon))
		for _, approval := range addon.Spec.Install.Placements[0].Approvals {
			found = append(found, approval.Stage)
		}
		return found
	}
	approval := func(stage string) any {
		return map[string]any{"revision": "metrics-1", "stage": stage, "gate": "Before"}
	}
	approve("anna", approval("canary"))
	approve("bert", approval("rest"))
	require.Equal(t, []string{"canary", "rest"}, stages())
	approve("anna")
	require.Equal(t, []string{"rest"}, stages())
}
