package clusterid

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// requestTimeout bounds each request, where the context does not end before.
const requestTimeout = 10 * time.Second

// Of returns the ID of the cluster that a config leads to, which is the UID of its namespace kube-system. It asks once.
func Of(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("prepare to ask for its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	var namespace corev1.Namespace
	request := core.RESTClient().Get().Resource("namespaces").Name(metav1.NamespaceSystem)
	if err := request.MaxRetries(0).Do(ctx).Into(&namespace); err != nil {
		return "", fmt.Errorf("read its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// A Reserver writes cluster IDs into MemberClusters. Its method may be called concurrently; nobody waits for another.
type Reserver struct {
	reader client.Reader
	writer client.Writer

	// reserving has the IDs that are just being reserved, and for whom: two members of one cluster must not each find that it is not the other's.
	// Whoever reserves by another Reserver meanwhile is found out at the door, which lets in neither.
	reserving sync.Map
}

// NewReserver returns one that reads past all caches, by the reader.
func NewReserver(reader client.Reader, writer client.Writer) *Reserver {
	return &Reserver{reader: reader, writer: writer}
}

// Reserve makes sure that the ID is that of a MemberCluster and of no other one, and writes spec.clusterID where it is empty; the MemberCluster is
// then what the API server has answered. The error names the other one, or says why it could not be written: also because there is another
// MemberCluster of that name by now, or one that is another cluster.
func (r *Reserver) Reserve(ctx context.Context, cluster *v1alpha1.MemberCluster, id string) error {
	if other, taken := r.reserving.LoadOrStore(id, cluster.Name); taken {
		return fmt.Errorf("member %s is to be cluster %s, which member %s is to be as well: trying again when that is decided", cluster.Name, id, other)
	}
	defer r.reserving.Delete(id)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var same v1alpha1.MemberClusterList
	if err := r.reader.List(ctx, &same, client.MatchingFields{"spec.clusterID": id}); err != nil {
		return fmt.Errorf("look for other members that are cluster %s: %w", id, err)
	}
	for i := range same.Items {
		if other := &same.Items[i]; other.UID != cluster.UID {
			return fmt.Errorf("member %s is to be cluster %s, which MemberCluster %s is already: delete one of them", cluster.Name, id, other.Name)
		}
	}
	if cluster.Spec.ClusterID == id {
		return nil
	}
	// The UID is the only precondition: what else is written meanwhile is no reason to try again.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]types.UID{"uid": cluster.UID}, "spec": map[string]string{"clusterID": id},
	})
	if err != nil {
		return err
	}
	if err := r.writer.Patch(ctx, cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("write spec.clusterID of MemberCluster %s: %w", cluster.Name, err)
	}
	return nil
}
