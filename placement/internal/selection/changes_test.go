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

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestChanged_IgnoresStatusChanges checks that continuous changes of the status of a Deployment are not reported.
func TestChanged_IgnoresStatusChanges(t *testing.T) {
	testkit.Virtual(t, testChangedIgnoresStatusChanges)
}

func testChangedIgnoresStatusChanges(t *testing.T) {
	h := newHub(t)
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	h.Create(web, h.configMap("last", nil))
	r := h.start()
	deployments := v1alpha1.ResourceSelector{Group: "apps", Kind: "Deployment"}
	before := r.selectFor("web", deployments, all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap last", "Deployment web"}, names(before))

	for i := range 10 {
		change(h, web, func(d *appsv1.Deployment) {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, "deployment.kubernetes.io/revision", fmt.Sprint(i))
			d.Finalizers = append(d.Finalizers, fmt.Sprintf("example.com/f-%d", i))
		})
		before := web.DeepCopy()
		web.Status.Conditions = []appsv1.DeploymentCondition{{Type: "Tested", Status: corev1.ConditionTrue,
			Message: fmt.Sprint(i)}}
		require.NoError(t, h.Client.Status().Patch(t.Context(), web, client.MergeFrom(before)))
	}
	require.NoError(t, h.Client.Delete(t.Context(), web), "the finalizers delay the deletion")
	h.Create(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "e"},
		InvolvedObject: corev1.ObjectReference{Namespace: h.Namespace}})

	// Watches are in order, so this change is observed after all others.
	change(h, web, func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
	require.Equal(t, 1, r.awaitChanged("web", 0))
	after := r.selectFor("web", deployments, all("ConfigMap"))
	require.Equal(t, names(before), names(after), "an object is selected until it is deleted")
	require.Equal(t, before.Objects[0], after.Objects[0])
	require.NotEqual(t, before.Objects[1].Hash, after.Objects[1].Hash)
	require.NotContains(t, string(after.Objects[1].JSON), "deletion")

	change(h, web, func(d *appsv1.Deployment) { d.Finalizers = nil })
	require.Equal(t, 2, r.awaitChanged("web", 1))
	after = r.selectFor("web", deployments)
	require.Empty(t, names(after), "the object is deleted")
	require.Empty(t, after.Problems)
}

// TestChanged_IgnoresRefusedObjects checks that changes of objects that are never distributed are not reported unless a
// selector names the object.
func TestChanged_IgnoresRefusedObjects(t *testing.T) {
	testkit.Virtual(t, testChangedIgnoresRefusedObjects)
}

func testChangedIgnoresRefusedObjects(t *testing.T) {
	h := newHub(t)
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "abcdef"},
		Type: "bootstrap.kubernetes.io/token"}
	r := h.start()
	require.Empty(t, names(r.selectFor("all", all("Secret"))))
	require.Equal(t, []string{selection.ReasonNotFound}, reasons(r.selectFor("one", named("Secret", "abcdef"))))

	h.Create(token)
	r.awaitChanged("one", 0)
	got := r.selectFor("one", named("Secret", "abcdef"))
	require.Equal(t, []string{selection.ReasonRefused}, reasons(got))
	require.Equal(t, "Secret "+h.Namespace+
		"/abcdef cannot be distributed: the token lets clusters or nodes join the hub: remove the "+
		"selector", got.Problems[0].Message)
	require.NoError(t, h.Client.Delete(t.Context(), token))
	r.awaitChanged("one", 1)
	require.Equal(t, []string{selection.ReasonNotFound}, reasons(r.selectFor("one", named("Secret", "abcdef"))))

	h.Create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "key"}})
	require.Equal(t, 1, r.awaitChanged("all", 0))
}

func TestSelect_ObjectsAreCreatedAndDeleted(t *testing.T) {
	testkit.Virtual(t, testSelectObjectsAreCreatedAndDeleted)
}

func testSelectObjectsAreCreatedAndDeleted(t *testing.T) {
	h := newHub(t)
	web := map[string]string{"app": "web"}
	a, b := h.configMap("a", web), h.configMap("b", web)
	h.Create(a, b)
	r := h.start()
	selectors := of(labeled("ConfigMap", web))
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selectFor("web", selectors...)))
	require.Equal(t, []string{"ConfigMap a"}, names(r.selectFor("one", named("ConfigMap", "a"))))

	change(h, a, func(c *corev1.ConfigMap) { c.Labels["app"] = "old" })
	r.awaitChanged("web", 0)
	require.Equal(t, []string{"ConfigMap b"}, names(r.selectFor("web", selectors...)), "a no longer matches the selector")
	r.awaitChanged("one", 0)
	change(h, a, func(c *corev1.ConfigMap) { c.Labels = web })
	r.awaitChanged("web", 1)
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selectFor("web", selectors...)), "a matches again")
	h.Create(h.configMap("c", web))
	r.awaitChanged("web", 2)
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b", "ConfigMap c"}, names(r.selectFor("web", selectors...)))

	r.awaitChanged("one", 1)
	require.NoError(t, h.Client.Delete(t.Context(), a))
	r.awaitChanged("web", 3)
	got := r.selectFor("web", selectors...)
	require.Equal(t, []string{"ConfigMap b", "ConfigMap c"}, names(got))
	require.Empty(t, got.Problems, "a missing object is no problem for a selector of labels")
	r.awaitChanged("one", 2)
	got = r.selectFor("one", named("ConfigMap", "a"))
	require.Equal(t, []selection.Problem{{
		Reason: selection.ReasonNotFound,
		Message: fmt.Sprintf("ConfigMap %s/a does not exist: create the object, or remove the selector to delete the "+
			"object from the clusters",
			h.Namespace),
	}}, got.Problems, "a missing object is a problem for a selector by name")

	h.Create(h.configMap("a", nil))
	r.awaitChanged("one", 3)
	got = r.selectFor("one", named("ConfigMap", "a"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Empty(t, got.Problems)
}

// TestSelect_OwnersShareWatches checks that equal selectors share a watch, which ends with the last one.
func TestSelect_OwnersShareWatches(t *testing.T) {
	testkit.Virtual(t, testSelectOwnersShareWatches)
}

func testSelectOwnersShareWatches(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", map[string]string{"app": "web", "tier": "1"}))
	r := h.start()
	both := labeled("ConfigMap", map[string]string{"app": "web", "tier": "1"})
	first := r.selectFor("a", both, both)
	again := both
	again.Version, again.Namespace = "v1", h.Namespace
	second := r.selectFor("b", again)
	require.Equal(t, first, second)
	require.Equal(t, 1, r.transport.requests("WATCH configmaps"))
	require.Zero(t, r.transport.requests("LIST"), "the list is streamed by the watch")

	for range 3 { // another Select needs no request
		r.selectFor("a", both)
	}
	require.Equal(t, 1, r.transport.requests("WATCH configmaps"))
	require.Equal(t, 1, r.transport.watches())

	r.Forget(h.owner("a"))
	r.Forget(h.owner("a"))
	h.Create(h.configMap("b", map[string]string{"app": "web", "tier": "1"}))
	r.awaitChanged("b", 0)
	require.Zero(t, r.changedCalls("a"), "Changed must not be called for a deregistered owner")
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selectFor("b", both)))
	require.Equal(t, 1, r.transport.watches())

	r.selectFor("b", all("Secret"))
	h.Holds("the watch of the former selector ends", func() bool { return r.transport.watches() == 1 })
	require.Equal(t, 1, r.transport.requests("WATCH secrets"))
	r.selectFor("b")
	h.Holds("the last watch ends", func() bool { return r.transport.watches() == 0 })
	require.Equal(t, 2, r.transport.requests("WATCH"))
	r.Forget(h.owner("nobody"))
}

func TestSelect_ThousandObjects(t *testing.T) { testkit.Virtual(t, testSelectThousandObjects) }

func testSelectThousandObjects(t *testing.T) {
	h := newHub(t)
	for i := range 1000 {
		h.Create(h.configMap(fmt.Sprintf("c-%04d", i), nil))
	}
	r := h.start()
	got := r.selectFor("web", all("ConfigMap"))
	require.Len(t, got.Objects, 1000)
	require.Empty(t, got.Problems)
	for i := range got.Objects {
		require.Equal(t, fmt.Sprintf("c-%04d", i), got.Objects[i].Name)
	}
	require.NoError(t, h.Client.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace(h.Namespace)))
	h.Holds("all deletions are observed", func() bool { return r.changedCalls("web") >= 1000 })
	require.Empty(t, names(r.selectFor("web", all("ConfigMap"))))
}

// TestSelect_ConcurrentOwners adds, removes and changes owners and objects concurrently. In the end, no watch is left
// over, and the remaining owners have the existing objects.
func TestSelect_ConcurrentOwners(t *testing.T) { testkit.Virtual(t, testSelectConcurrentOwners) }

func testSelectConcurrentOwners(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil), h.configMap("b", nil))
	r := h.start()
	selectors := [][]v1alpha1.ResourceSelector{of(all("ConfigMap")), of(named("ConfigMap", "a"), all("Secret")), nil,
		of(named("ConfigMap", "b"), all("Widget"))}
	var busy sync.WaitGroup
	for i := range 16 {
		busy.Go(func() {
			for round := range 12 {
				r.selectFor(fmt.Sprint(i), selectors[(i+round)%len(selectors)]...)
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
	calls := r.changedCalls("0")
	got := r.selectFor("0", selectors[0]...)
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(got))
	h.Holds("one watch is left", func() bool { return r.transport.watches() == 1 })
	change(h, h.configMap("a", nil), func(c *corev1.ConfigMap) { c.Data["round"] = "last" })
	r.awaitChanged("0", calls)
	h.Holds("the last change is selected", func() bool {
		return strings.Contains(string(r.selectFor("0", selectors[0]...).Objects[0].JSON), "last")
	})
	r.Forget(h.owner("0"))
	h.Holds("the last watch ends", func() bool { return r.transport.watches() == 0 })
}
