package selection_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestSilentWithoutNews checks that continuous changes of the status of a Deployment are not reported.
func TestSilentWithoutNews(t *testing.T) {
	h := newHub(t)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	h.create(web, h.configMap("last", nil))
	r := h.start()
	deployments := v1alpha1.ResourceSelector{Group: "apps", Kind: "Deployment"}
	before := r.selects("web", deployments, all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap last", "Deployment web"}, names(before))

	for i := range 10 {
		change(h, web, func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "deployment.kubernetes.io/revision", fmt.Sprint(i))
			d.Finalizers = append(d.Finalizers, fmt.Sprintf("example.com/f-%d", i))
		})
		before := web.DeepCopy()
		web.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Tested", Status: corev1.ConditionTrue,
			Message: fmt.Sprint(i)}}
		require.NoError(t, h.client.Status().Patch(t.Context(), web, client.MergeFrom(before)))
	}
	require.NoError(t, h.client.Delete(t.Context(), web), "it is being deleted, which its finalizers hold up")
	h.create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "e"},
		InvolvedObject: corev1.ObjectReference{Namespace: h.namespace}})

	// Watches are in order, so the change that counts comes after all that do not.
	change(h, web, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	require.Equal(t, 1, r.hears("web", 0))
	after := r.selects("web", deployments, all("ConfigMap"))
	require.Equal(t, names(before), names(after), "it is there until it is gone")
	require.Equal(t, before.Objects[0], after.Objects[0])
	require.NotEqual(t, before.Objects[1].Hash, after.Objects[1].Hash)
	require.NotContains(t, string(after.Objects[1].JSON), "deletion")

	change(h, web, func(d *appsv1.Deployment) { d.Finalizers = nil })
	require.Equal(t, 2, r.hears("web", 1))
	after = r.selects("web", deployments)
	require.Empty(t, names(after), "now it is")
	require.Empty(t, after.Problems)
}

// TestSilentAboutWhatNeverTravels checks that changes of objects that are never distributed are not reported unless a
// selector names the object.
func TestSilentAboutWhatNeverTravels(t *testing.T) {
	h := newHub(t)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "abcdef"},
		Type: "bootstrap.kubernetes.io/token"}
	r := h.start()
	require.Empty(t, names(r.selects("all", all("Secret"))))
	require.Equal(t, []string{selection.ReasonNotFound}, reasons(r.selects("one", named("Secret", "abcdef"))))

	h.create(token)
	r.hears("one", 0)
	got := r.selects("one", named("Secret", "abcdef"))
	require.Equal(t, []string{selection.ReasonRefused}, reasons(got))
	require.Equal(t, "Secret "+h.namespace+
		"/abcdef cannot be distributed: the token lets clusters or nodes join the hub: remove the "+
		"selector", got.Problems[0].Message)
	require.NoError(t, h.client.Delete(t.Context(), token))
	r.hears("one", 1)
	require.Equal(t, []string{selection.ReasonNotFound}, reasons(r.selects("one", named("Secret", "abcdef"))))

	h.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "key"}})
	require.Equal(t, 1, r.hears("all", 0))
}

func TestObjectsComeAndGo(t *testing.T) {
	h := newHub(t)
	web := map[string]string{"app": "web"}
	a, b := h.configMap("a", web), h.configMap("b", web)
	h.create(a, b)
	r := h.start()
	selectors := of(labeled("ConfigMap", web))
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selects("web", selectors...)))
	require.Equal(t, []string{"ConfigMap a"}, names(r.selects("one", named("ConfigMap", "a"))))

	change(h, a, func(c *corev1.ConfigMap) { c.Labels["app"] = "old" })
	r.hears("web", 0)
	require.Equal(t, []string{"ConfigMap b"}, names(r.selects("web", selectors...)), "it moved out of the selector")
	r.hears("one", 0)
	change(h, a, func(c *corev1.ConfigMap) { c.Labels = web })
	r.hears("web", 1)
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selects("web", selectors...)), "and back")
	h.create(h.configMap("c", web))
	r.hears("web", 2)
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}, names(r.selects("web", selectors...)))

	r.hears("one", 1)
	require.NoError(t, h.client.Delete(t.Context(), a))
	r.hears("web", 3)
	got := r.selects("web", selectors...)
	require.Equal(t, []string{"ConfigMap b", "ConfigMap c"}, names(got))
	require.Empty(t, got.Problems, "who selects by labels has it no more")
	r.hears("one", 2)
	got = r.selects("one", named("ConfigMap", "a"))
	require.Equal(t, []selection.Problem{{
		Reason: selection.ReasonNotFound,
		Message: fmt.Sprintf("ConfigMap %s/a does not exist: create the object, or remove the selector to delete the "+
			"object from the clusters",
			h.namespace),
	}}, got.Problems, "who has named it may be about to make it again")

	h.create(h.configMap("a", nil))
	r.hears("one", 3)
	got = r.selects("one", named("ConfigMap", "a"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Empty(t, got.Problems)
}

// TestOwnersShare checks that equal selectors share a watch, which ends with the last one.
func TestOwnersShare(t *testing.T) {
	h := newHub(t)
	h.create(h.configMap("a", map[string]string{"app": "web", "tier": "1"}))
	r := h.start()
	both := labeled("ConfigMap", map[string]string{"app": "web", "tier": "1"})
	first := r.selects("a", both, both)
	again := both
	again.Version, again.Namespace = "v1", h.namespace
	second := r.selects("b", again)
	require.Equal(t, first, second)
	require.Equal(t, 1, r.wire.requests("WATCH configmaps"))
	require.Zero(t, r.wire.requests("LIST"), "the watch brings the list")

	for range 3 { // to ask again costs nothing
		r.selects("a", both)
	}
	require.Equal(t, 1, r.wire.requests("WATCH configmaps"))
	require.Equal(t, 1, r.wire.watches())

	r.Forget(h.owner("a"))
	r.Forget(h.owner("a"))
	h.create(h.configMap("b", map[string]string{"app": "web", "tier": "1"}))
	r.hears("b", 0)
	require.Zero(t, r.called("a"), "who is forgotten hears nothing")
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selects("b", both)))
	require.Equal(t, 1, r.wire.watches())

	r.selects("b", all("Secret"))
	eventually(t, "the watch of the former selector is to end", func() bool { return r.wire.watches() == 1 })
	require.Equal(t, 1, r.wire.requests("WATCH secrets"))
	r.selects("b")
	eventually(t, "the last watch is to end", func() bool { return r.wire.watches() == 0 })
	require.Equal(t, 2, r.wire.requests("WATCH"))
	r.Forget(h.owner("nobody"))
}

func TestThousandObjects(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	for i := range 1000 {
		h.create(h.configMap(fmt.Sprintf("c-%04d", i), nil))
	}
	r := h.start()
	got := r.selects("web", all("ConfigMap"))
	require.Len(t, got.Objects, 1000)
	require.Empty(t, got.Problems)
	for i := range got.Objects {
		require.Equal(t, fmt.Sprintf("c-%04d", i), got.Objects[i].Name)
	}
	require.NoError(t, h.client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(h.namespace)))
	eventually(t, "they are to be gone", func() bool { return r.called("web") >= 1000 })
	require.Empty(t, names(r.selects("web", all("ConfigMap"))))
}

// TestManyAtOnce adds, removes and changes owners and objects concurrently. In the end, no watch is left over, and the
// remaining owners have the existing objects.
func TestManyAtOnce(t *testing.T) {
	h := newHub(t)
	h.create(h.configMap("a", nil), h.configMap("b", nil))
	r := h.start()
	selectors := [][]v1alpha1.ResourceSelector{of(all("ConfigMap")), of(named("ConfigMap", "a"), all("Secret")), nil,
		of(named("ConfigMap", "b"), all("Widget"))}
	var busy sync.WaitGroup
	for i := range 16 {
		busy.Go(func() {
			for round := range 12 {
				r.selects(fmt.Sprint(i), selectors[(i+round)%len(selectors)]...)
				if round%5 == 4 {
					r.Forget(h.owner(fmt.Sprint(i)))
				}
			}
			if i > 0 {
				r.Forget(h.owner(fmt.Sprint(i)))
			}
		})
	}
	for i := range 20 {
		change(h, h.configMap("a", nil), func(c *corev1.ConfigMap) { c.Data["round"] = fmt.Sprint(i) })
	}
	busy.Wait()
	calls := r.called("0")
	got := r.selects("0", selectors[0]...)
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(got))
	eventually(t, "but one watch is to end", func() bool { return r.wire.watches() == 1 })
	change(h, h.configMap("a", nil), func(c *corev1.ConfigMap) { c.Data["round"] = "last" })
	r.hears("0", calls)
	eventually(t, "the last change is to be there", func() bool {
		return strings.Contains(string(r.selects("0", selectors[0]...).Objects[0].JSON), "last")
	})
	r.Forget(h.owner("0"))
	eventually(t, "the last watch is to end", func() bool { return r.wire.watches() == 0 })
}
