package crds_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/localplane"
	"github.com/muster-sdk/muster/placement/crds"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "placement-crds"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

func installed(t *testing.T) client.Client {
	t.Helper()
	config := plane.ForTest(t).Config()
	scheme := runtime.NewScheme()
	require.NoError(t, clientgoscheme.AddToScheme(scheme))
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	require.NoError(t, crds.Install(t.Context(), c))
	return c
}

func placement(name string, policy v1alpha1.PlacementPolicy) *v1alpha1.Placement {
	return &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       v1alpha1.PlacementSpec{Policy: policy},
	}
}

func TestInstallIsServedAtOnceAndIdempotent(t *testing.T) {
	c := installed(t)
	// Served: the very next call must not be refused for an unknown kind.
	require.NoError(t, c.List(t.Context(), &v1alpha1.PlacementList{}))

	var before, after apiextensionsv1.CustomResourceDefinitionList
	require.NoError(t, c.List(t.Context(), &before))
	require.Len(t, before.Items, 2)
	require.NoError(t, crds.Install(t.Context(), c))
	require.NoError(t, c.List(t.Context(), &after))
	if diff := cmp.Diff(before.Items, after.Items); diff != "" {
		t.Errorf("installing again wrote something (-before +after):\n%s", diff)
	}
}

func TestInstallEndsWhenItMay(t *testing.T) {
	c := installed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.ErrorIs(t, crds.Install(ctx, c), context.DeadlineExceeded)
}

// complaint is what the API server and Validate have in common.
type complaint struct{ kind, field, message string }

// Each policy is refused by the API server, once, at the field that is wrong, and in words that say what to do.
func TestAPIServerRefuses(t *testing.T) {
	c := installed(t)
	for _, test := range slices.Concat(refusedPolicies, preferredToo(refusedPolicies)) {
		err := c.Create(t.Context(), placement("refused", test.policy), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: want the API server to refuse it, got %v", test.reason, err)
			continue
		}
		check(t, test, complaintsOf(t, err))
		// Both say the same, each in its own words where those are its own.
		ours := test.policy.Validate(field.NewPath("spec", "policy"))
		for i, theirs := range complaintsOf(t, err) {
			if i < len(ours) && theirs.kind != string(ours[i].Type) {
				t.Errorf("%s: the API server says %s, Validate %s", test.reason, theirs.kind, ours[i].Type)
			}
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	for _, test := range slices.Concat(refusedPolicies, preferredToo(refusedPolicies)) {
		var got []complaint
		for _, e := range test.policy.Validate(field.NewPath("spec", "policy")) {
			got = append(got, complaint{string(e.Type), e.Field, e.ErrorBody()})
		}
		check(t, test, got)
	}
}

func check(t *testing.T, test refused, got []complaint) {
	t.Helper()
	want := "spec.policy." + test.field
	if len(got) != 1 || !strings.HasPrefix(got[0].field, want) || !strings.Contains(got[0].message, test.want) {
		t.Errorf("%s: want one complaint about %s that says %q, got %+v", test.reason, want, test.want, got)
	}
}

func complaintsOf(t *testing.T, err error) []complaint {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	var found []complaint
	for _, cause := range status.ErrStatus.Details.Causes {
		// Not about a field: that rules were skipped because of the other complaints.
		if cause.Field != "<nil>" {
			found = append(found, complaint{string(cause.Type), cause.Field, cause.Message})
		}
	}
	return found
}

func TestBothAccept(t *testing.T) {
	for reason, policy := range acceptedPolicies {
		if errs := policy.Validate(nil); len(errs) > 0 {
			t.Errorf("%s: Validate says %v", reason, errs.ToAggregate())
		}
	}
	c := installed(t)
	for reason, policy := range acceptedPolicies {
		object := placement("accepted", policy)
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s: the API server says %v", reason, err)
		} else if errs := object.Spec.Policy.Validate(nil); len(errs) > 0 {
			t.Errorf("%s: with its defaults, Validate says %v", reason, errs.ToAggregate())
		}
	}
}

func TestDefaults(t *testing.T) {
	c := installed(t)
	object := placement("defaults", v1alpha1.PlacementPolicy{})
	require.NoError(t, c.Create(t.Context(), object, client.DryRunAll))
	if diff := cmp.Diff(v1alpha1.PlacementSpec{Policy: v1alpha1.PlacementPolicy{Type: v1alpha1.PickAll}}, object.Spec); diff != "" {
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
		t.Errorf("entries that say no more than they must (-want +got):\n%s", diff)
	}
}

// The API server and FailoverPolicy.Validate refuse the same, and accept the same.
func TestFailoverPolicy(t *testing.T) {
	c := installed(t)
	for _, test := range []struct {
		reason string
		policy v1alpha1.FailoverPolicy
		field  string // empty: it is valid
	}{
		{"all of it has defaults", v1alpha1.FailoverPolicy{}, ""},
		{"the most that is possible", v1alpha1.FailoverPolicy{Replace: v1alpha1.EvictFirst, MaxEvictions: new(int32(10000)), PeriodSeconds: new(int32(86400)), Recovery: v1alpha1.Return}, ""},
		{"never to evict is no failover", v1alpha1.FailoverPolicy{MaxEvictions: new(int32(0))}, "maxEvictions"},
		{"more than can be chosen", v1alpha1.FailoverPolicy{MaxEvictions: new(int32(10001))}, "maxEvictions"},
		{"a period that is none", v1alpha1.FailoverPolicy{PeriodSeconds: new(int32(0))}, "periodSeconds"},
		{"a period of more than a day", v1alpha1.FailoverPolicy{PeriodSeconds: new(int32(86401))}, "periodSeconds"},
		{"no such order", v1alpha1.FailoverPolicy{Replace: "Never"}, "replace"},
		{"no such recovery", v1alpha1.FailoverPolicy{Recovery: "Perhaps"}, "recovery"},
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

// What kubectl get shows, as the API server has it.
func TestColumns(t *testing.T) {
	c := installed(t)
	object := placement("columns", v1alpha1.PlacementPolicy{Type: v1alpha1.PickN, NumberOfClusters: new(int32(3))})
	require.NoError(t, c.Create(t.Context(), object))
	t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	object.Status = v1alpha1.PlacementStatus{
		ObservedGeneration: object.Generation, SelectedClusters: 0, DesiredClusters: 3, ReadyClusters: 0,
		Conditions: []metav1.Condition{{Type: v1alpha1.ConditionScheduled, Status: metav1.ConditionFalse, Reason: "Because", LastTransitionTime: metav1.Now()}},
	}
	require.NoError(t, c.Status().Update(t.Context(), object))

	table := getTable(t, plane.ForTest(t).Config(), "/apis/placement.muster.dev/v1alpha1/namespaces/default/placements/columns")
	got := map[string]any{}
	var order []string
	for i, column := range table.ColumnDefinitions {
		got[column.Name] = table.Rows[0].Cells[i]
		order = append(order, column.Name)
	}
	delete(got, "Age")
	want := map[string]any{"Name": "columns", "Type": "PickN", "Desired": 3.0, "Selected": 0.0, "Ready": 0.0, "Scheduled": "False"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Name", "Type", "Desired", "Selected", "Ready", "Scheduled", "Age"}, order); diff != "" {
		t.Errorf("in which order (-want +got)\n%s", diff)
	}
}

// kubectl get pl, and kubectl get muster.
func TestShortNames(t *testing.T) {
	c := installed(t)
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "placements.placement.muster.dev"}, &definition))
	require.Equal(t, apiextensionsv1.NamespaceScoped, definition.Spec.Scope)
	require.True(t, slices.Equal(definition.Status.AcceptedNames.ShortNames, []string{"pl"}), definition.Status.AcceptedNames)
	require.True(t, slices.Equal(definition.Status.AcceptedNames.Categories, []string{"muster"}), definition.Status.AcceptedNames)
}

func getTable(t *testing.T, config *rest.Config, path string) *metav1.Table {
	t.Helper()
	config.GroupVersion, config.NegotiatedSerializer = &v1alpha1.GroupVersion, clientgoscheme.Codecs
	c, err := rest.UnversionedRESTClientFor(config)
	require.NoError(t, err)
	data, err := c.Get().AbsPath(path).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	require.NoError(t, err)
	var table metav1.Table
	require.NoError(t, json.Unmarshal(data, &table))
	require.Len(t, table.Rows, 1)
	return &table
}
