package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

var web = v1alpha1.ResourceIdentifier{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments",
	Namespace: "shop", Name: "web"}

func TestManifestSelector_Selects(t *testing.T) {
	node := v1alpha1.ResourceIdentifier{Version: "v1", Kind: "Node", Name: "n"}
	for _, test := range []struct {
		reason   string
		selector v1alpha1.ManifestSelector
		object   v1alpha1.ResourceIdentifier
		want     bool
	}{
		{"empty selector", v1alpha1.ManifestSelector{}, web, true},
		{"equal group", v1alpha1.ManifestSelector{Group: new("apps")}, web, true},
		{"different group", v1alpha1.ManifestSelector{Group: new("batch")}, web, false},
		{"core group does not select other groups", v1alpha1.ManifestSelector{Group: new("")}, web, false},
		{"core group", v1alpha1.ManifestSelector{Group: new("")}, node, true},
		{"equal kind", v1alpha1.ManifestSelector{Kind: "Deployment"}, web, true},
		{"kind in lower case", v1alpha1.ManifestSelector{Kind: "deployment"}, web, false},
		{"equal namespace", v1alpha1.ManifestSelector{Namespace: "shop"}, web, true},
		{"different namespace", v1alpha1.ManifestSelector{Namespace: "web"}, web, false},
		{"namespace does not select cluster-scoped objects", v1alpha1.ManifestSelector{Namespace: "shop"}, node, false},
		{"equal name", v1alpha1.ManifestSelector{Name: "web"}, web, true},
		{"prefix of the name", v1alpha1.ManifestSelector{Name: "we"}, web, false},
		{"all fields equal",
			v1alpha1.ManifestSelector{Group: new("apps"), Kind: "Deployment", Namespace: "shop", Name: "web"}, web,
			true},
		{"all fields except the name equal",
			v1alpha1.ManifestSelector{Group: new("apps"), Kind: "Deployment", Namespace: "shop", Name: "api"},
			web, false},
	} {
		if got := test.selector.Selects(test.object); got != test.want {
			t.Errorf("%s: want %t", test.reason, test.want)
		}
	}
}

func TestWorkSpec_OptionsFor(t *testing.T) {
	all, other := v1alpha1.ManifestSelector{Kind: "Deployment"}, v1alpha1.ManifestSelector{Name: "api"}
	defaults := v1alpha1.EffectiveOptions{
		Mode: v1alpha1.ServerSideApply, Takeover: v1alpha1.TakeoverNever, Drift: v1alpha1.DriftCorrect,
		Recreate: v1alpha1.RecreateNever, Additions: v1alpha1.AdditionsKeep,
		Delete: v1alpha1.DeleteObject, Propagation: metav1.DeletePropagationForeground,
	}
	defaultsWith := func(change func(*v1alpha1.EffectiveOptions)) v1alpha1.EffectiveOptions {
		options := defaults
		change(&options)
		return options
	}
	full := v1alpha1.ManifestOption{
		Select: all, Mode: v1alpha1.Observe, Takeover: v1alpha1.TakeoverAlways, Drift: v1alpha1.DriftReport,
		Delete:        v1alpha1.OrphanObject,
		IgnoredFields: []string{".spec.a"}, Readiness: &v1alpha1.ReadinessRule{CEL: "a"},
		Feedback: []v1alpha1.FeedbackRule{{Name: "a", JSONPath: ".a"}}, FeedbackWellKnown: true, Wave: new(int32(5)),
	}
	effective := v1alpha1.EffectiveOptions{
		Mode: v1alpha1.Observe, Takeover: v1alpha1.TakeoverAlways, Drift: v1alpha1.DriftReport,
		Recreate: v1alpha1.RecreateNever, Additions: v1alpha1.AdditionsKeep, Delete: v1alpha1.OrphanObject,
		Propagation:   metav1.DeletePropagationForeground,
		IgnoredFields: []string{".spec.a"}, Readiness: &v1alpha1.ReadinessRule{CEL: "a"},
		Feedback: []v1alpha1.FeedbackRule{{Name: "a", JSONPath: ".a"}}, FeedbackWellKnown: true, Wave: new(int32(5)),
	}
	forOther := full
	forOther.Select = other
	for _, test := range []struct {
		reason string
		spec   v1alpha1.WorkSpec
		want   v1alpha1.EffectiveOptions
	}{
		{"defaults", v1alpha1.WorkSpec{}, defaults},
		{
			"policies of the spec",
			v1alpha1.WorkSpec{
				Apply: v1alpha1.ApplyPolicy{Mode: v1alpha1.CreateOnly, Takeover: v1alpha1.TakeoverIfNoDiff,
					Drift: v1alpha1.DriftReport, KeepConflicts: true},
				Delete: v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject, Propagation: metav1.DeletePropagationBackground},
			},
			v1alpha1.EffectiveOptions{
				Mode: v1alpha1.CreateOnly, Takeover: v1alpha1.TakeoverIfNoDiff, Drift: v1alpha1.DriftReport,
				Recreate: v1alpha1.RecreateNever, Additions: v1alpha1.AdditionsKeep, KeepConflicts: true,
				Delete: v1alpha1.OrphanObject, Propagation: metav1.DeletePropagationBackground,
			},
		},
		{"option for this manifest", v1alpha1.WorkSpec{Apply: v1alpha1.ApplyPolicy{Mode: v1alpha1.CreateOnly},
			ManifestOptions: []v1alpha1.ManifestOption{full}}, effective},
		{"option for another manifest", v1alpha1.WorkSpec{ManifestOptions: []v1alpha1.ManifestOption{forOther}}, defaults},
		{
			"empty option changes nothing",
			v1alpha1.WorkSpec{ManifestOptions: []v1alpha1.ManifestOption{full, {Select: all}}}, effective,
		},
		{
			"later option replaces the fields that it sets",
			v1alpha1.WorkSpec{ManifestOptions: []v1alpha1.ManifestOption{
				{Select: all, Mode: v1alpha1.Observe, Drift: v1alpha1.DriftReport, Wave: new(int32(5))},
				{Select: all, Mode: v1alpha1.ReportDiff, Wave: new(int32(0))},
			}},
			defaultsWith(func(o *v1alpha1.EffectiveOptions) {
				o.Mode, o.Drift, o.Wave = v1alpha1.ReportDiff, v1alpha1.DriftReport, new(int32(0))
			}),
		},
		{
			"later option replaces lists",
			v1alpha1.WorkSpec{ManifestOptions: []v1alpha1.ManifestOption{
				{Select: all, IgnoredFields: []string{".a", ".b"}, Feedback: []v1alpha1.FeedbackRule{{Name: "a"}, {Name: "b"}},
					Readiness: &v1alpha1.ReadinessRule{CEL: "a"}},
				{Select: all, IgnoredFields: []string{".c"}, Feedback: []v1alpha1.FeedbackRule{{Name: "c"}},
					Readiness: &v1alpha1.ReadinessRule{CEL: "c"}},
			}},
			defaultsWith(func(o *v1alpha1.EffectiveOptions) {
				o.IgnoredFields, o.Feedback, o.Readiness = []string{".c"}, []v1alpha1.FeedbackRule{{Name: "c"}},
					&v1alpha1.ReadinessRule{CEL: "c"}
			}),
		},
	} {
		if diff := cmp.Diff(test.want, test.spec.OptionsFor(web)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", test.reason, diff)
		}
	}
}

func TestWorkSpec_Orphan(t *testing.T) {
	for _, test := range []struct {
		reason  string
		spec    v1alpha1.WorkSpec
		changed bool
	}{
		{"objects are deleted by default", v1alpha1.WorkSpec{}, true},
		{"option Delete is removed", v1alpha1.WorkSpec{Delete: v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject},
			ManifestOptions: []v1alpha1.ManifestOption{{}, {Delete: v1alpha1.DeleteObject}}}, true},
		{"objects are orphaned already", v1alpha1.WorkSpec{Delete: v1alpha1.DeletePolicy{Action: v1alpha1.OrphanObject},
			ManifestOptions: []v1alpha1.ManifestOption{{Mode: v1alpha1.Observe}}}, false},
	} {
		require.Equal(t, test.changed, test.spec.Orphan(), test.reason)
		require.Equal(t, v1alpha1.OrphanObject, test.spec.OptionsFor(v1alpha1.ResourceIdentifier{Kind: "ConfigMap",
			Name: "a"}).Delete, test.reason)
		require.False(t, test.spec.Orphan(), test.reason)
	}
}

func TestWavePolicy_Timeout(t *testing.T) {
	for seconds, want := range map[int32]time.Duration{0: 10 * time.Minute, 1: time.Second, 86400: 24 * time.Hour} {
		if got := (v1alpha1.WavePolicy{TimeoutSeconds: seconds}).Timeout(); got != want {
			t.Errorf("%d: want %s, got %s", seconds, want, got)
		}
	}
}
