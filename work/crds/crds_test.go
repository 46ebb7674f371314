package crds_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall/crdtest"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

var plane = localplane.Shared{Options: localplane.Options{Name: "work-crds"}}

func TestMain(m *testing.M) { os.Exit(localplane.Run(m, &plane)) }

// installed returns a client of a plane that is both hub and member.
func installed(t *testing.T) client.Client {
	t.Helper()
	return mustertest.Client(t, plane.ForTest(t).Config(), mustertest.Scheme(v1alpha1.AddToScheme,
		apiextensionsv1.AddToScheme), crds.InstallOnHub, crds.InstallOnMember)
}

func named(name string, spec v1alpha1.WorkSpec) *v1alpha1.Work {
	return &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: spec}
}

func TestInstall_ServedAtOnceAndIdempotent(t *testing.T) {
	c := installed(t)
	// The next call must not fail because of an unknown kind.
	require.NoError(t, c.List(t.Context(), &v1alpha1.WorkList{}))
	require.NoError(t, c.List(t.Context(), &v1alpha1.AppliedWorkList{}))

	var before, after apiextensionsv1.CustomResourceDefinitionList
	require.NoError(t, c.List(t.Context(), &before))
	require.Len(t, before.Items, 2)
	crdtest.InstallsNothing(t, c, crds.InstallOnHub)
	crdtest.InstallsNothing(t, c, crds.InstallOnMember)
	require.NoError(t, c.List(t.Context(), &after))
	if diff := cmp.Diff(before.Items, after.Items); diff != "" {
		t.Errorf("the second installation changed definitions (-before +after):\n%s", diff)
	}
}

func TestInstall_DeadlineExceeded(t *testing.T) {
	c := installed(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	require.ErrorIs(t, crds.InstallOnHub(ctx, c), context.DeadlineExceeded)
	require.ErrorIs(t, crds.InstallOnMember(ctx, c), context.DeadlineExceeded)
}

func validated(spec v1alpha1.WorkSpec) []crdtest.Complaint {
	return crdtest.Validated(spec.Validate())
}

// TestValidation_InvalidSpecs checks that the API server and Validate reject each invalid Work, once, at the invalid
// field, and with a message that names the next step.
func TestValidation_InvalidSpecs(t *testing.T) {
	c := installed(t)
	for _, test := range refusedSpecs {
		byValidate := validated(test.spec)
		check(t, "Validate: "+test.reason, test, byValidate)

		err := c.Create(t.Context(), named("refused", test.spec), client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			t.Errorf("%s: API server: want an invalid error, got %v", test.reason, err)
			continue
		}
		byServer := crdtest.Complaints(t, err)
		check(t, "API server: "+test.reason, test, byServer)
		if len(byValidate) == 1 && len(byServer) == 1 && byValidate[0].Kind != byServer[0].Kind {
			t.Errorf("%s: API server: kind of error %s, Validate: %s", test.reason, byServer[0].Kind, byValidate[0].Kind)
		}
	}
}

func check(t *testing.T, title string, test refused, got []crdtest.Complaint) {
	t.Helper()
	crdtest.One(t, title, crdtest.Complaint{Field: test.field, Message: test.want}, got)
}

func TestValidation_ValidSpecs(t *testing.T) {
	c := installed(t)
	for reason, spec := range acceptedSpecs {
		if errs := spec.Validate(); len(errs) > 0 {
			t.Errorf("%s: Validate: unexpected errors: %v", reason, errs.ToAggregate())
		}
		object := named("accepted", spec)
		if err := c.Create(t.Context(), object, client.DryRunAll); err != nil {
			t.Errorf("%s: API server: unexpected error: %v", reason, err)
		} else if errs := object.Spec.Validate(); len(errs) > 0 {
			t.Errorf("%s: Validate with defaults: unexpected errors: %v", reason, errs.ToAggregate())
		}
	}
}

func TestDefaults(t *testing.T) {
	c := installed(t)
	object := named("defaults", v1alpha1.WorkSpec{Manifests: []v1alpha1.Manifest{}})
	require.NoError(t, c.Create(t.Context(), object, client.DryRunAll))
	want := v1alpha1.WorkSpec{
		Manifests: []v1alpha1.Manifest{},
		Apply: v1alpha1.ApplyPolicy{Mode: v1alpha1.ServerSideApply, Takeover: v1alpha1.TakeoverNever,
			Drift: v1alpha1.DriftCorrect},
		Waves:  v1alpha1.WavePolicy{TimeoutSeconds: 600},
		Delete: v1alpha1.DeletePolicy{Action: v1alpha1.DeleteObject, Propagation: metav1.DeletePropagationForeground},
	}
	if diff := cmp.Diff(want, object.Spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// OptionsFor applies the same defaults to a spec that was never sent to an API server.
	var empty v1alpha1.WorkSpec
	if diff := cmp.Diff(want.OptionsFor(v1alpha1.ResourceIdentifier{}),
		empty.OptionsFor(v1alpha1.ResourceIdentifier{})); diff != "" {
		t.Errorf("OptionsFor (-of the API server +of Go)\n%s", diff)
	}
	require.Equal(t, want.Waves.Timeout(), empty.Waves.Timeout())
}
