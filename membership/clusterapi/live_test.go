package clusterapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var clusters = schema.GroupVersionResource{Group: "cluster.x-k8s.io", Version: "v1beta2", Resource: "clusters"}

// noCache is a cache that cannot watch.
type noCache struct{ cache.Cache }

func (noCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, errors.New("no definition")
}

func clustersOf(t *testing.T, objects ...runtime.Object) metadata.Interface {
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	return metadatafake.NewSimpleMetadataClient(scheme, objects...)
}

// TestRun_EndsWithoutMembers checks that the import ends if MemberClusters cannot be watched, so that Start repeats it.
func TestRun_EndsWithoutMembers(t *testing.T) {
	i := &importer{Options: Options{Namespaces: []string{"clusters"}}.withDefaults(), clusters: clustersOf(t),
		members: noCache{}, log: logr.Discard()}
	ended := make(chan struct{})
	go func() { i.run(t.Context(), clusters); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("the import has not ended")
	}
}

// liveMembers is an API server with one MemberCluster, which counts deletions.
type liveMembers struct {
	client.Client

	member    *v1alpha1.MemberCluster
	deletions int
}

func (l *liveMembers) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	l.member.DeepCopyInto(into.(*v1alpha1.MemberCluster))
	return nil
}

func (l *liveMembers) Delete(_ context.Context, object client.Object, options ...client.DeleteOption) error {
	var o client.DeleteOptions
	o.ApplyOptions(options)
	if *o.Preconditions.UID == l.member.UID && *o.Preconditions.ResourceVersion == l.member.ResourceVersion {
		l.deletions++
	}
	return nil
}

// TestLeave_ReadsLiveObjects checks that a stale cache of Clusters or MemberClusters lets no member leave.
func TestLeave_ReadsLiveObjects(t *testing.T) {
	live := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(clusters.GroupVersion().WithKind("Cluster"))
		object.Namespace, object.Name, object.UID = "clusters", "east", "1"
		object.Labels, object.DeletionTimestamp = imported, new(metav1.Now())
		object.Finalizers = []string{"example.com/infrastructure"}
		if change != nil {
			change(object)
		}
		return object
	}
	notDeleted := func(o *metav1.PartialObjectMetadata) { o.DeletionTimestamp = nil }
	cached := clusterOf(live(nil))
	for name, test := range map[string]struct {
		live   *metav1.PartialObjectMetadata
		source string
		leaves int
	}{
		"the Cluster is being deleted": {live(nil), cached.source(), 1},
		"the Cluster does not exist":   {nil, cached.source(), 0},
		"another Cluster of the same name": {live(func(o *metav1.PartialObjectMetadata) { o.UID = "2" }),
			cached.source(), 0},
		"the Cluster is not being deleted": {live(notDeleted), cached.source(), 0},
		"the label was removed": {live(func(o *metav1.PartialObjectMetadata) { o.Labels = nil }), cached.source(),
			0},
		"another Cluster's member":    {live(nil), "clusters/east/2", 0},
		"a MemberCluster of the user": {live(nil), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			member := &v1alpha1.MemberCluster{}
			member.Name, member.UID, member.ResourceVersion = "clusters-east", "m", "7"
			member.Annotations = map[string]string{ClusterAnnotation: test.source}
			members := &liveMembers{member: member}
			var objects []runtime.Object
			if test.live != nil {
				objects = append(objects, test.live)
			}
			w := &work{resource: clusters, importer: &importer{
				Options:  Options{Namespaces: []string{"clusters"}, LeaveDeleted: true}.withDefaults(),
				clusters: clustersOf(t, objects...), live: members, client: members, log: logr.Discard()}}
			err := w.leave(t.Context(), cached, member.Name)
			require.Equal(t, test.leaves, members.deletions)
			if test.leaves == 0 && test.live != nil {
				require.ErrorIs(t, err, errChanged)
			} else {
				require.NoError(t, err)
			}
		})
	}
}
