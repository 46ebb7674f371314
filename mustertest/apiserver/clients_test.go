package apiserver_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest/apiserver"
)

func start(t testing.TB, options apiserver.Options) *apiserver.Server {
	t.Helper()
	s, err := apiserver.New(options)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// TestClients_EveryWayAndEncoding checks that calls and connections to the server return the same responses in both
// encodings.
func TestClients_EveryWayAndEncoding(t *testing.T) {
	s := start(t, apiserver.Options{})
	tls, err := s.ConfigTLS("someone", "system:masters")
	require.NoError(t, err)
	for name, config := range map[string]*rest.Config{"calls": s.Admin(), "connections": tls} {
		for _, media := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
			t.Run(name+" "+media, func(t *testing.T) {
				config := rest.CopyConfig(config)
				config.ContentType = media
				config.AcceptContentTypes = media + ",application/json"
				clients, err := kubernetes.NewForConfig(config)
				require.NoError(t, err)
				exercise(t, clients)
			})
		}
	}
}

func exercise(t *testing.T, clients kubernetes.Interface) {
	ctx := t.Context()
	maps := clients.CoreV1().ConfigMaps("default")
	created, err := maps.Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "a-", Labels: map[string]string{"a": "b"}},
		Data:       map[string]string{"k": "v"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, created.UID)
	require.Equal(t, "v", created.Data["k"])
	watch, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: created.ResourceVersion,
		FieldSelector: "metadata.name=" + created.Name})
	require.NoError(t, err)
	defer watch.Stop()
	created.Data["k"] = "w"
	updated, err := maps.Update(ctx, created, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = maps.Update(ctx, created, metav1.UpdateOptions{})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "a=b"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	require.Equal(t, "w", list.Items[0].Data["k"])
	event := <-watch.ResultChan()
	require.Equal(t, updated.ResourceVersion, event.Object.(*corev1.ConfigMap).ResourceVersion, "%v", event)
	wrong := metav1.Preconditions{UID: new(updated.UID)}
	*wrong.UID = "other"
	err = maps.Delete(ctx, created.Name, metav1.DeleteOptions{Preconditions: &wrong})
	require.True(t, apierrors.IsConflict(err), "%v", err)
	require.NoError(t, maps.Delete(ctx, created.Name,
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(created.UID))}))
	_, err = maps.Get(ctx, created.Name, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.EqualValues(t, "DELETED", (<-watch.ResultChan()).Type)
}

func TestClients_UnstructuredMetadataAndDiscovery(t *testing.T) {
	s := start(t, apiserver.Options{})
	ctx := t.Context()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	dyn := dynamic.NewForConfigOrDie(s.Admin())
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{"name": "s"}, "stringData": map[string]any{"a": "b"}}}
	created, err := dyn.Resource(gvr).Namespace("default").Create(ctx, obj, metav1.CreateOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"a": "Yg=="}, created.Object["data"])
	partial, err := metadata.NewForConfigOrDie(s.Admin()).Resource(gvr).Namespace("default").List(ctx,
		metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, partial.Items, 1)
	require.Equal(t, "s", partial.Items[0].Name)
	groups, resources, err := discovery.NewDiscoveryClientForConfigOrDie(s.Admin()).ServerGroupsAndResources()
	require.NoError(t, err)
	require.NotEmpty(t, groups)
	require.NotEmpty(t, resources)
}

func TestClients_ControllerRuntime(t *testing.T) {
	s := start(t, apiserver.Options{})
	ctx := t.Context()
	c, err := client.New(s.Admin(), client.Options{})
	require.NoError(t, err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
	require.NoError(t, c.Create(ctx, ns))
	s.Settle()
	var account corev1.ServiceAccount
	require.NoError(t, c.Get(ctx, client.ObjectKey{Namespace: "x", Name: "default"}, &account))
	before := ns.DeepCopy()
	ns.Annotations = map[string]string{"a": "b"}
	require.NoError(t, c.Patch(ctx, ns, client.MergeFrom(before)))
	require.NoError(t, c.Delete(ctx, ns))
	s.Settle()
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(ns), ns)))
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(&account), &account)))
}

func TestInformer_ListsWatchesAndSurvivesCompaction(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	s, err := apiserver.New(apiserver.Options{})
	require.NoError(t, err)
	defer s.Close()
	clients := kubernetes.NewForConfigOrDie(s.Admin())
	ctx, cancel := context.WithCancel(t.Context())
	factory := informers.NewSharedInformerFactory(clients, 0)
	lister := factory.Core().V1().ConfigMaps().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	add := func(i int) {
		_, err := clients.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i)}}, metav1.CreateOptions{})
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			_, err := lister.ConfigMaps("default").Get(fmt.Sprint("m", i))
			return err == nil
		}, 20*time.Second, time.Millisecond)
	}
	add(1)
	s.Compact()
	s.DropWatches()
	add(2)
	cancel()
	factory.Shutdown()
}
