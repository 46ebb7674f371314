package selection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestSelect(t *testing.T) {
	h := newHub(t)
	web := map[string]string{"app": "web"}
	h.create(
		h.configMap("a", web), h.configMap("b", nil), h.configMap("c", web),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "key", Labels: web}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "abcdef", Labels: web},
			Type:       "bootstrap.kubernetes.io/token",
		},
		&autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "scale"},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				MaxReplicas:    3,
			}},
	)
	r := h.start()
	for _, tc := range []struct {
		reason    string
		selectors []v1alpha1.ResourceSelector
		want      []string
		problems  []string
	}{
		{"one by its name", of(named("ConfigMap", "a")), []string{"ConfigMap a"}, nil},
		{"all of a kind, but for what every namespace has", of(all("ConfigMap")),
			[]string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}, nil},
		{"an empty selector is none",
			of(v1alpha1.ResourceSelector{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{}}),
			[]string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}, nil},
		{"what never travels is left out of what labels match", of(labeled("Secret", web)), []string{"Secret key"}, nil},
		{
			"who names it wants to hear of it", of(named("Secret", "abcdef"), named("ConfigMap", "kube-root-ca.crt"),
				named("ConfigMap", "b")),
			[]string{"ConfigMap b"}, []string{"Refused", "Refused"},
		},
		{"in order, each once", of(labeled("Secret", web), all("ConfigMap"), named("ConfigMap", "b")),
			[]string{"ConfigMap a", "ConfigMap b", "ConfigMap c", "Secret key"}, nil},
		{"nothing is nothing", nil, nil, nil},
		{"no label matches", of(labeled("ConfigMap", map[string]string{"app": "none"})), nil, nil},
		{"one that is named must be there", of(named("ConfigMap", "nobody"), all("Secret")), []string{"Secret key"},
			[]string{"NotFound"}},
		{"a Namespace comes by its name", of(named("Namespace", h.namespace)), []string{"Namespace " + h.namespace}, nil},
		{
			"the first of two versions counts",
			of(v1alpha1.ResourceSelector{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"},
				v1alpha1.ResourceSelector{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}),
			[]string{"HorizontalPodAutoscaler scale"}, nil,
		},
		{"no kind, no group, no version",
			of(all("Widget"), v1alpha1.ResourceSelector{Group: "none.example.com", Kind: "ConfigMap"}, v1alpha1.ResourceSelector{
				Version: "v7", Kind: "ConfigMap"}), nil, []string{"UnknownKind", "UnknownKind", "UnknownKind"}},
		{"a kind that one can only create", of(v1alpha1.ResourceSelector{Group: "authorization.k8s.io",
			Kind: "LocalSubjectAccessReview"}), nil, []string{"Invalid"}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := r.Select(t.Context(), h.owner("web"), tc.selectors)
			if tc.want == nil {
				tc.want = []string{}
			}
			if tc.problems == nil {
				tc.problems = []string{}
			}
			if diff := cmp.Diff(tc.want, names(got)); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.problems, reasons(got)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}

	got := r.selects("web", v1alpha1.ResourceSelector{Group: "autoscaling", Version: "v1",
		Kind: "HorizontalPodAutoscaler"}, v1alpha1.ResourceSelector{Group: "autoscaling", Version: "v2",
		Kind: "HorizontalPodAutoscaler"})
	require.Equal(t, "v1", got.Objects[0].Version)
	got = r.selects("web", named("ConfigMap", "a"))
	require.JSONEq(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"`+h.namespace+
		`","labels":{"app":"web"}},"data":{"name":"a"}}`, string(got.Objects[0].JSON))
	require.Zero(t, r.called("web"), "who has asked for nothing else hears of nothing: all was there when Select returned")
}

func of(selectors ...v1alpha1.ResourceSelector) []v1alpha1.ResourceSelector { return selectors }
