package agent

import (
	"strconv"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestWatches_LastStateOfJobs checks that the last state of a deleted Job is known until no Work has the Job.
func TestWatches_LastStateOfJobs(t *testing.T) {
	id := v1alpha1.ResourceIdentifier{Group: "batch", Version: "v1", Kind: "Job", Resource: "jobs", Namespace: "shop",
		Name: "once"}
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": id.Name, "namespace": id.Namespace, "uid": "u", "resourceVersion": "7",
			"labels": map[string]any{v1alpha1.AppliedLabel: "true"}},
		"status": map[string]any{"failed": int64(1)}}}
	member := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resourceOf(id): "JobList"}, job)
	changed := make(chan string, 1000)
	w := newWatches(nil, member, logr.Discard(), func(work string) { changed <- work })
	t.Cleanup(w.close)
	w.setObjects("migration", []watched{{id: id, labeled: true}})
	w.synced(t.Context(), "migration", time.Minute)
	key := client.ObjectKey{Namespace: id.Namespace, Name: id.Name}
	observed := w.Lookup(id.GroupVersionKind(), key)
	require.NotNil(t, observed)
	require.EqualValues(t, "u", observed.UID)
	// The fake client loses what happens between the list and the watch of an informer.
	jobs := member.Resource(resourceOf(id)).Namespace(id.Namespace)
	version := 7
	require.Eventually(t, func() bool {
		version++
		job.SetResourceVersion(strconv.Itoa(version))
		_, err := jobs.Update(t.Context(), job.DeepCopy(), metav1.UpdateOptions{})
		return err == nil && w.Lookup(id.GroupVersionKind(), key).ResourceVersion != observed.ResourceVersion
	}, time.Minute, 100*time.Millisecond, "the watch has begun")
	require.Nil(t, w.lastState(keyOf(id)), "the Job exists")

	require.NoError(t, jobs.Delete(t.Context(), id.Name, metav1.DeleteOptions{}))
	require.Eventually(t, func() bool { return w.lastState(keyOf(id)) != nil }, time.Minute, time.Millisecond)
	failed, _, _ := unstructured.NestedInt64(w.lastState(keyOf(id)).Object, "status", "failed")
	require.EqualValues(t, 1, failed)
	require.Equal(t, "migration", <-changed)
	w.setObjects("migration", []watched{{id: id, labeled: true}})
	require.NotNil(t, w.lastState(keyOf(id)), "the Work still has the Job")
	w.setObjects("migration", nil)
	require.Nil(t, w.lastState(keyOf(id)), "no Work has the Job")
}
