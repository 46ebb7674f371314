package localplane

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// checkRestore checks the state after a Restore.
func checkRestore(t *testing.T, p *Plane) {
	client := clientFor(t, p.Config())
	namespace := newNamespace(t, client)
	user := p.User("jane")
	require.Eventually(t, func() bool { // The Lease names the kwok that manages the node.
		_, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "node-0", metav1.GetOptions{})
		return err == nil
	}, eventually, tick)
	kept := createConfigMap(t, client, namespace, "kept")
	deleted := createConfigMap(t, client, namespace, "deleted")
	snapshot, err := p.Snapshot(t.Context())
	require.NoError(t, err)
	configMaps := client.CoreV1().ConfigMaps(namespace)

	for range 2 { // A snapshot can be restored more than once.
		require.NoError(t, configMaps.Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
		kept.Data = map[string]string{"changed": "after the snapshot"}
		changed, err := configMaps.Update(t.Context(), kept, metav1.UpdateOptions{})
		require.NoError(t, err)
		created := createConfigMap(t, client, namespace, "created")
		ongoing, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: created.ResourceVersion})
		require.NoError(t, err)

		require.NoError(t, p.Restore(t.Context(), snapshot))

		requireEnds(t, ongoing)
		_, err = configMaps.Get(t.Context(), "created", metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "created after the snapshot: %v", err)
		got, err := configMaps.Get(t.Context(), "kept", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, kept.UID, got.UID)
		require.Empty(t, got.Data)
		require.Less(t, resourceVersion(t, got), resourceVersion(t, changed), "resourceVersions go backwards")
		again, err := configMaps.Get(t.Context(), "deleted", metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, deleted.UID, again.UID)
		require.Equal(t, "jane", whoAmI(t, user).Username, "credentials remain valid")
		kept = got
	}
	began := time.Now()
	deployAndWait(t, client, namespace) // The controllers run again, with caches of the restored state.
	require.Less(t, time.Since(began), 30*time.Second, "kwok manages the node immediately")
}

// checkLaterResourceVersions checks clients whose resourceVersion, from before a Restore, does not exist yet.
func checkLaterResourceVersions(t *testing.T, p *Plane) {
	client := clientFor(t, p.Config())
	namespace := newNamespace(t, client)
	configMaps := client.CoreV1().ConfigMaps(namespace)
	snapshot, err := p.Snapshot(t.Context())
	require.NoError(t, err)
	for i := range 50 {
		createConfigMap(t, client, namespace, "lost-"+strconv.Itoa(i))
	}
	lost, err := configMaps.Get(t.Context(), "lost-49", metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, p.Restore(t.Context(), snapshot))

	err = client.CoreV1().RESTClient().Get().Namespace(namespace).Resource("configmaps").MaxRetries(0).
		Param("resourceVersion", lost.ResourceVersion).
		Param("resourceVersionMatch", string(metav1.ResourceVersionMatchNotOlderThan)).
		Do(t.Context()).Error()
	require.True(t, apierrors.IsTimeout(err), "a list must not be older than the resourceVersion of the client: %v", err)
	require.ErrorContains(t, err, "Too large resource version")

	stale, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: lost.ResourceVersion})
	require.NoError(t, err)
	defer stale.Stop()
	list, err := configMaps.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	recovered, err := configMaps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer recovered.Stop()
	after := createConfigMap(t, client, namespace, "after")
	require.Less(t, resourceVersion(t, after), resourceVersion(t, lost))
	require.Equal(t, after.UID, nextConfigMap(t, recovered).UID, "a list without a resourceVersion recovers")

	var overtakes *corev1.ConfigMap
	for i := 0; overtakes == nil || resourceVersion(t, overtakes) <= resourceVersion(t, lost); i++ {
		overtakes = createConfigMap(t, client, namespace, "new-"+strconv.Itoa(i))
	}
	require.Equal(t, overtakes.UID, nextConfigMap(t, stale).UID, "events up to the stale resourceVersion are never sent")
}

func TestRestore_InvalidCalls(t *testing.T) {
	p, other := &Plane{opts: Options{Name: "one"}},
		&Plane{opts: Options{Name: "two"}, files: files{folder: "/there"}}
	require.EqualError(t, p.Restore(t.Context(), &Snapshot{plane: other}),
		"restore a snapshot of plane one: the snapshot is of plane two in /there")
	_, err := p.Snapshot(t.Context())
	require.EqualError(t, err, "take a snapshot of plane one: etcd is not running")
	p.stopped = true
	err = p.Restore(t.Context(), &Snapshot{plane: p})
	require.EqualError(t, err, "restore a snapshot of plane one: the plane is stopped")
}

func TestSnapshot_ContextEnds(t *testing.T) {
	p := shared.ForTest(t)
	before := entries(t, p.files.folder)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Snapshot(ended)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, before, entries(t, p.files.folder))
	createConfigMap(t, clientFor(t, p.Config()), "default", "etcd-runs-again")
}

// checkPause checks an API server that is paused.
func checkPause(t *testing.T, p *Plane) {
	client := clientFor(t, p.Config())
	require.NoError(t, p.ResumeAPIServer(), "ResumeAPIServer has no effect on a running API server")
	require.NoError(t, p.PauseAPIServer(t.Context()))
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, p.ResumeAPIServer())
	_, err = client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
	require.NoError(t, err)

	require.NoError(t, p.KillAPIServer())
	require.ErrorContains(t, p.PauseAPIServer(t.Context()), "it is not running")
	require.ErrorContains(t, p.ResumeAPIServer(), "it is not running")
	requireRefused(t, p.Config())
	require.NoError(t, p.StartAPIServer(t.Context()))
}

func createConfigMap(t *testing.T, client kubernetes.Interface, namespace, name string) *corev1.ConfigMap {
	t.Helper()
	created, err := client.CoreV1().ConfigMaps(namespace).Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return created
}

func resourceVersion(t *testing.T, object metav1.Object) int {
	t.Helper()
	number, err := strconv.Atoi(object.GetResourceVersion())
	require.NoError(t, err)
	return number
}

// requireEnds waits until a watch ends, with or without an error event.
func requireEnds(t *testing.T, w watch.Interface) {
	t.Helper()
	defer w.Stop()
	deadline := time.After(eventually)
	for {
		select {
		case event, open := <-w.ResultChan():
			if !open || event.Type == watch.Error {
				return
			}
		case <-deadline:
			require.Fail(t, "the watch does not end")
		}
	}
}

// nextConfigMap waits for the next object that a watch sends.
func nextConfigMap(t *testing.T, w watch.Interface) *corev1.ConfigMap {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		require.IsType(t, &corev1.ConfigMap{}, event.Object)
		return event.Object.(*corev1.ConfigMap)
	case <-time.After(eventually):
		require.Fail(t, "no event")
		return nil
	}
}
