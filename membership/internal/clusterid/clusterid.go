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

// requestTimeout is the timeout of each request.
const requestTimeout = 10 * time.Second

// Of returns the ID of a cluster, which is the UID of its namespace kube-system. It sends one request.
func Of(ctx context.Context, config *rest.Config) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("create a client to get its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	var namespace corev1.Namespace
	request := core.RESTClient().Get().Resource("namespaces").Name(metav1.NamespaceSystem)
	if err := request.MaxRetries(0).Do(ctx).Into(&namespace); err != nil {
		return "", fmt.Errorf("read its namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}

// A Reserver writes cluster IDs to MemberClusters. Its method is safe for concurrent use and does not block other
// calls.
type Reserver struct {
	reader client.Reader
	writer client.Writer

	// reserving contains the IDs of calls in progress and their members: two members of one cluster must not both find the
	// ID unused. Concurrent reservations by another Reserver are detected at the join request, which admits neither.
	reserving sync.Map
}

// NewReserver returns a Reserver that reads live objects with the reader.
func NewReserver(reader client.Reader, writer client.Writer) *Reserver {
	return &Reserver{reader: reader, writer: writer}
}

// Reserve ensures that the ID belongs to this MemberCluster only, and writes spec.clusterID if it is empty; the
// MemberCluster is then the response of the API server. The error names the other member, or contains the reason why
// the write failed, for example because the MemberCluster was replaced or has another ID.
func (r *Reserver) Reserve(ctx context.Context, cluster *v1alpha1.MemberCluster, id string) error {
	if other, taken := r.reserving.LoadOrStore(id, cluster.Name); taken {
		return fmt.Errorf("member %s needs cluster ID %s, which is being reserved for member %s: retrying", cluster.Name,
			id, other)
	}
	defer r.reserving.Delete(id)
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var same v1alpha1.MemberClusterList
	if err := r.reader.List(ctx, &same, client.MatchingFields{"spec.clusterID": id}); err != nil {
		return fmt.Errorf("find other members with cluster ID %s: %w", id, err)
	}
	for i := range same.Items {
		if other := &same.Items[i]; other.UID != cluster.UID {
			return fmt.Errorf("member %s needs cluster ID %s, which MemberCluster %s has already: delete one of them",
				cluster.Name, id, other.Name)
		}
	}
	if cluster.Spec.ClusterID == id {
		return nil
	}
	// The UID is the only precondition: concurrent changes of other fields have no effect on the reservation.
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
