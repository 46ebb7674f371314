package selection_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestSelect(t *testing.T) {
	h := newHubOnPlane(t)
	web := map[string]string{"app": "web"}
	h.Create(
		h.configMap("a", web), h.configMap("b", nil), h.configMap("c", web),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "key", Labels: web}},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "abcdef", Labels: web},
			Type:       "bootstrap.kubernetes.io/token",
		},
		&autoscalingv1.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "scale"},
			Spec: autoscalingv1.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv1.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"},
				MaxReplicas:    3,
			}},
	)
	// kube-controller-manager creates this ConfigMap in each namespace, a moment after the namespace.
	h.Holds("ConfigMap kube-root-ca.crt exists", func() bool {
		key := client.ObjectKey{Namespace: h.Namespace, Name: "kube-root-ca.crt"}
		return h.Client.Get(t.Context(), key, &corev1.ConfigMap{}) == nil
	})
	r := h.start()
	for _, tc := range []struct {
		reason    string
		selectors []v1alpha1.ResourceSelector
		want      []string
		problems  []string
	}{
		{"an object by name", of(named("ConfigMap", "a")), []string{"ConfigMap a"}, nil},
		{"all objects of a kind, except for those of every namespace", of(all("ConfigMap")),
			[]string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}, nil},
		{"an empty label selector",
			of(v1alpha1.ResourceSelector{Kind: "ConfigMap", LabelSelector: &metav1.LabelSelector{}}),
			[]string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}, nil},
		{"objects that are never distributed are omitted from labels",
			of(labeled("Secret", web)), []string{"Secret key"}, nil},
		{
			"a refused object that is selected by name is a problem",
			of(named("Secret", "abcdef"), named("ConfigMap", "kube-root-ca.crt"), named("ConfigMap", "b")),
			[]string{"ConfigMap b"}, []string{"Refused", "Refused"},
		},
		{"objects are sorted and listed once", of(labeled("Secret", web), all("ConfigMap"), named("ConfigMap", "b")),
			[]string{"ConfigMap a", "ConfigMap b", "ConfigMap c", "Secret key"}, nil},
		{"no selectors", nil, nil, nil},
		{"no label matches", of(labeled("ConfigMap", map[string]string{"app": "none"})), nil, nil},
		{"an object that is selected by name must exist",
			of(named("ConfigMap", "absent"), all("Secret")), []string{"Secret key"},
			[]string{"NotFound"}},
		{"a Namespace by name", of(named("Namespace", h.Namespace)), []string{"Namespace " + h.Namespace}, nil},
		{
			"an object of two versions is listed once",
			of(v1alpha1.ResourceSelector{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"},
				v1alpha1.ResourceSelector{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}),
			[]string{"HorizontalPodAutoscaler scale"}, nil,
		},
		{"unknown kinds, groups and versions",
			of(all("Widget"), v1alpha1.ResourceSelector{Group: "none.example.com", Kind: "ConfigMap"}, v1alpha1.ResourceSelector{
				Version: "v7", Kind: "ConfigMap"}), nil, []string{"UnknownKind", "UnknownKind", "UnknownKind"}},
		{"a kind that cannot be listed", of(v1alpha1.ResourceSelector{Group: "authorization.k8s.io",
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

	got := r.selectFor("web", v1alpha1.ResourceSelector{Group: "autoscaling", Version: "v1",
		Kind: "HorizontalPodAutoscaler"}, v1alpha1.ResourceSelector{Group: "autoscaling", Version: "v2",
		Kind: "HorizontalPodAutoscaler"})
	require.Equal(t, "v1", got.Objects[0].Version)
	got = r.selectFor("web", named("ConfigMap", "a"))
	require.JSONEq(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"`+h.Namespace+
		`","labels":{"app":"web"}},"data":{"name":"a"}}`, string(got.Objects[0].JSON))
	require.Zero(t, r.changedCalls("web"), "Changed must not be called for objects that Select returned")
}

func of(selectors ...v1alpha1.ResourceSelector) []v1alpha1.ResourceSelector { return selectors }
