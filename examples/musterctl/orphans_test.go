package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/admin"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestOrphans_ReleasedOnRequest checks that get orphans shows only AppliedWorks with orphaned objects, and that release
// marks only the named AppliedWorks.
func TestOrphans_ReleasedOnRequest(t *testing.T) {
	plane := hub.ForTest(t)
	c, err := newClient(plane.Config())
	require.NoError(t, err)
	require.NoError(t, workcrds.InstallOnMember(t.Context(), c))
	since := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	for _, name := range []string{"shop", "cart", "kept"} {
		applied := &workv1alpha1.AppliedWork{ObjectMeta: metav1.ObjectMeta{Name: name}}
		applied.Spec.Work = workv1alpha1.WorkReference{Hub: "hub", Namespace: "member-east", Name: name, UID: "uid"}
		applied.Spec.FieldOwner = "muster"
		resource := workv1alpha1.AppliedResource{}
		resource.Version, resource.Kind, resource.Resource, resource.Name = "v1", "ConfigMap", "configmaps", name
		if name != "kept" {
			resource.OrphanedTime = &since
			applied.Status.Conditions = []metav1.Condition{{
				Type: workv1alpha1.ConditionOrphaned, Status: metav1.ConditionTrue, Reason: workv1alpha1.ReasonWorkNotFound,
				LastTransitionTime: since, Message: "Kept.",
			}}
		}
		applied.Status.Resources = []workv1alpha1.AppliedResource{resource}
		require.NoError(t, c.Create(t.Context(), applied))
		t.Cleanup(func() { _ = c.Delete(t.Context(), applied) })
	}
	member := []string{"--member-kubeconfig", plane.Kubeconfig()}

	code, out, errs := call(t, "", append([]string{"get", "orphans"}, member...)...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "member-east/shop")
	require.Contains(t, out, "WorkNotFound")
	require.NotContains(t, out, "kept")

	code, _, errs = call(t, "", append([]string{"release", "missing", "--yes"}, member...)...)
	require.NotZero(t, code)
	require.Contains(t, errs, admin.ErrNotFound.Error())

	code, _, _ = call(t, "n\n", append([]string{"release", "shop"}, member...)...)
	require.NotZero(t, code, "the answer n changes nothing")
	require.Empty(t, releases(t, c))

	code, out, errs = call(t, "", append([]string{"release", "member-east/shop", "--yes"}, member...)...)
	require.Zero(t, code, errs)
	require.Equal(t, "appliedwork/shop released\n", out)
	require.Equal(t, []string{"shop"}, releases(t, c))
}

// releases returns the names of the AppliedWorks whose release annotation contains their UID.
func releases(t *testing.T, c client.Client) (names []string) {
	t.Helper()
	var list workv1alpha1.AppliedWorkList
	require.NoError(t, c.List(t.Context(), &list))
	for i := range list.Items {
		if applied := &list.Items[i]; applied.Annotations[workv1alpha1.ReleaseAnnotation] == string(applied.UID) {
			names = append(names, applied.Name)
		}
	}
	return names
}
