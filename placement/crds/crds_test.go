package crds_test

import (
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "placement-crds"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

// install installs the definitions once, because the API server takes a second to apply them again, for all their
// rules.
var install struct {
	sync.Once
	err error
}

func installed(t *testing.T) client.Client {
	t.Helper()
	c := mustertest.Client(t, plane.ForTest(t).Config(),
		mustertest.Scheme(v1alpha1.AddToScheme, apiextensionsv1.AddToScheme))
	install.Do(func() { install.err = crds.Install(t.Context(), c) })
	require.NoError(t, install.err)
	return c
}

func placement(name string, policy v1alpha1.PlacementPolicy) *v1alpha1.Placement {
	return &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.PlacementSpec{Policy: policy},
	}
}

func TestInstall_IsServedAndIdempotent(t *testing.T) {
	c := installed(t)
	// The kinds are served when Install returns: the next request must not fail with an unknown kind.
	require.NoError(t, c.List(t.Context(), &v1alpha1.PlacementList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.PlacementDecisionList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.WorkSetList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.WorkSetRevisionList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.ClusterPlacementList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.ClusterWorkSetList{}))

	before := crdtest.Versions(t, c)
	require.Equal(t, []string{
		"clusterplacements.placement.muster.dev", "clusterworksets.placement.muster.dev",
		"placementdecisions.placement.muster.dev", "placementevictions.placement.muster.dev",
		"placements.placement.muster.dev",
		"worksetrevisions.placement.muster.dev", "worksets.placement.muster.dev",
	}, slices.Sorted(maps.Keys(before)))
	crdtest.InstallsNothing(t, c, crds.Install)
	require.Equal(t, before, crdtest.Versions(t, c), "a second installation must not write")
}

func TestInstall_EndsWithContext(t *testing.T) {
	c := installed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.ErrorIs(t, crds.Install(ctx, c), context.DeadlineExceeded)
}

// TestAPIServer_RejectsInvalidPolicies checks that the API server rejects each invalid policy once, at the invalid
// field, and with a message that states the remedy.
func TestAPIServer_RejectsInvalidPolicies(t *testing.T) {
	c := installed(t)
	for _, test := range slices.Concat(refusedPolicies, asPreferredTerms(refusedPolicies)) {
		err := c.Create(t.Context(), placement("refused", test.policy), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to reject the object, got %v", test.reason, err)
			continue
		}
		check(t, test, crdtest.Complaints(t, err))
		// The types of the errors are the same. The messages may differ.
		ours := test.policy.Validate(field.NewPath("spec", "policy"))
		for i, theirs := range crdtest.Complaints(t, err) {
			if i < len(ours) && theirs.Kind != string(ours[i].Type) {
				t.Errorf("%s: error of type %s from the API server, of type %s from Validate", test.reason, theirs.Kind,
					ours[i].Type)
			}
		}
	}
}

func TestValidate_RejectsInvalidPolicies(t *testing.T) {
	for _, test := range slices.Concat(refusedPolicies, asPreferredTerms(refusedPolicies)) {
		check(t, test, crdtest.Validated(test.policy.Validate(field.NewPath("spec", "policy"))))
	}
}

func check(t *testing.T, test refused, got []crdtest.Complaint) {
	t.Helper()
	crdtest.One(t, test.reason, crdtest.Complaint{Field: "spec.policy." + test.field, Message: test.want}, got)
}

func TestValidPolicies_Accepted(t *testing.T) {
	for reason, policy := range acceptedPolicies {
		if errs := policy.Validate(nil); len(errs) > 0 {
			t.Errorf("%s: Validate: unexpected errors: %v", reason, errs.ToAggregate())
		}
	}
	c := installed(t)
	for reason, policy := range acceptedPolicies {
		object := placement("accepted", policy)
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s: API server: unexpected error: %v", reason, err)
		} else if errs := object.Spec.Policy.Validate(nil); len(errs) > 0 {
			t.Errorf("%s, with defaults: Validate: unexpected errors: %v", reason, errs.ToAggregate())
		}
	}
}

func TestPlacement_Defaults(t *testing.T) {
	c := installed(t)
	object := placement("defaults", v1alpha1.PlacementPolicy{})
	require.NoError(t, c.Create(t.Context(), object, client.DryRunAll))
	if diff := cmp.Diff(v1alpha1.PlacementSpec{Policy: v1alpha1.PlacementPolicy{Type: v1alpha1.PickAll}},
		object.Spec); diff != "" {
		t.Errorf("a Placement without a spec (-want +got):\n%s", diff)
	}

	object = placement("defaults", v1alpha1.PlacementPolicy{
		Type: v1alpha1.PickN, NumberOfClusters: new(int32(1)),
		Sorters:        []v1alpha1.PropertySorter{{Name: "cost"}},
		Tolerations:    []v1alpha1.Toleration{{Key: "k"}},
		TopologySpread: []v1alpha1.TopologySpreadConstraint{{TopologyKey: "region"}},
		GroupSpread:    []v1alpha1.GroupSpreadConstraint{{Label: "provider"}},
	})
	want := *object.Spec.Policy.DeepCopy()
	want.Sorters[0].Order, want.Sorters[0].Weight = v1alpha1.Descending, 1
	want.Tolerations[0].Operator = corev1.TolerationOpEqual
	want.TopologySpread[0].MaxSkew, want.TopologySpread[0].WhenUnsatisfiable = 1, v1alpha1.DoNotSchedule
	require.NoError(t, c.Create(t.Context(), object, client.DryRunAll))
	if diff := cmp.Diff(want, object.Spec.Policy); diff != "" {
		t.Errorf("entries with the required fields only (-want +got):\n%s", diff)
	}
}

// TestFailoverPolicy checks that the API server and FailoverPolicy.Validate accept and reject the same policies.
func TestFailoverPolicy(t *testing.T) {
	c := installed(t)
	for _, test := range []struct {
		reason string
		policy v1alpha1.FailoverPolicy
		field  string // empty: the policy is valid
	}{
		{"an empty policy", v1alpha1.FailoverPolicy{}, ""},
		{"the largest values", v1alpha1.FailoverPolicy{Replace: v1alpha1.EvictFirst, MaxEvictions: new(int32(10000)),
			PeriodSeconds: new(int32(86400)), Recovery: v1alpha1.Return}, ""},
		{"maxEvictions of 0", v1alpha1.FailoverPolicy{MaxEvictions: new(int32(0))}, "maxEvictions"},
		{"maxEvictions above the maximum", v1alpha1.FailoverPolicy{MaxEvictions: new(int32(10001))}, "maxEvictions"},
		{"periodSeconds of 0", v1alpha1.FailoverPolicy{PeriodSeconds: new(int32(0))}, "periodSeconds"},
		{"periodSeconds of more than a day", v1alpha1.FailoverPolicy{PeriodSeconds: new(int32(86401))}, "periodSeconds"},
		{"an unknown value of replace", v1alpha1.FailoverPolicy{Replace: "Never"}, "replace"},
		{"an unknown value of recovery", v1alpha1.FailoverPolicy{Recovery: "Perhaps"}, "recovery"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			object := placement("failover", v1alpha1.PlacementPolicy{})
			object.Spec.Failover = &test.policy
			errs := test.policy.Validate(field.NewPath("spec", "failover"))
			err := c.Create(t.Context(), object, client.DryRunAll)
			if test.field == "" {
				require.Empty(t, errs)
				require.NoError(t, err)
				return
			}
			require.Len(t, errs, 1)
			require.Equal(t, "spec.failover."+test.field, errs[0].Field)
			require.ErrorContains(t, err, "spec.failover."+test.field)
		})
	}
}

// TestColumns checks the columns of kubectl get, as the API server returns them.
func TestColumns(t *testing.T) {
	c := installed(t)
	object := placement("columns", v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(3))})
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	object.Status = v1alpha1.PlacementStatus{
		ObservedGeneration: object.Generation, SelectedClusters: 0, DesiredClusters: 3, ReadyClusters: 0,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: "Because",
			LastTransitionTime: metav1.Now()}},
	}
	require.NoError(t, c.Status().Update(t.Context(), object))

	set := decoded(t, workSet(t, ""))
	set.Name = "columns"
	require.NoError(t, c.Create(t.Context(), set))
	t.Cleanup(func() { _ = c.Delete(context.Background(), set) })
	none := decoded(t, workSet(t, ""))
	none.Name = "nowhere"
	require.NoError(t, c.Create(t.Context(), none))
	t.Cleanup(func() { _ = c.Delete(context.Background(), none) })
	set.Status = v1alpha1.WorkSetStatus{
		Message: "east cannot apply it", Revision: "web-5f6d",
		Counts:  v1alpha1.ClusterCounts{Total: 3, Updated: 2, Applied: 1, Available: 1, Failed: 1},
		Rollout: v1alpha1.RolloutStatus{Phase: v1alpha1.PhaseProgressing},
	}
	require.NoError(t, c.Status().Update(t.Context(), set))
	none.Status = v1alpha1.WorkSetStatus{ObservedGeneration: 1, Message: "The placements have chosen no clusters."}
	require.NoError(t, c.Status().Update(t.Context(), none))

	ofWorkSets := []string{"Name", "Clusters", "Updated", "Available", "Rollout", "Message", "Revision", "Age"}
	for _, test := range []struct {
		path  string
		order []string
		cells map[string]any
	}{
		{
			"placements/columns",
			[]string{"Name", "Type", "Desired", "Selected", "Ready", "Scheduled", "Age"},
			map[string]any{"Name": "columns", "Type": "PickN", "Desired": 3.0, "Selected": 0.0, "Ready": 0.0,
				"Scheduled": "False"},
		},
		{
			"worksets/columns", ofWorkSets,
			map[string]any{"Name": "columns", "Clusters": 3.0, "Updated": 2.0, "Available": 1.0, "Rollout": "Progressing",
				"Message": "east cannot apply it", "Revision": "web-5f6d"},
		},
		{
			"worksets/nowhere", ofWorkSets, // without clusters, the columns contain 0
			map[string]any{"Name": "nowhere", "Clusters": 0.0, "Updated": 0.0, "Available": 0.0, "Rollout": nil,
				"Message": "The placements have chosen no clusters.", "Revision": nil},
		},
	} {
		order, cells := crdtest.Columns(t, plane.ForTest(t).Config(),
			"/apis/placement.muster.dev/v1alpha1/namespaces/default/"+test.path)
		if diff := cmp.Diff(test.cells, cells); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.path, diff)
		}
		if diff := cmp.Diff(test.order, order); diff != "" {
			t.Errorf("%s: order of the columns (-want +got)\n%s", test.path, diff)
		}
	}
}

// TestShortNames checks the short names: kubectl get pl, kubectl get ws, kubectl get wsr, and kubectl get muster.
func TestShortNames(t *testing.T) {
	c := installed(t)
	for name, short := range map[string]string{"placements.placement.muster.dev": "pl",
		"worksets.placement.muster.dev": "ws", "worksetrevisions.placement.muster.dev": "wsr"} {
		var definition apiextensionsv1.CustomResourceDefinition
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: name}, &definition))
		require.Equal(t, apiextensionsv1.NamespaceScoped, definition.Spec.Scope, name)
		require.Equal(t, []string{short}, definition.Status.AcceptedNames.ShortNames, name)
		require.Equal(t, []string{"muster"}, definition.Status.AcceptedNames.Categories, name)
	}
}
