package hub

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestCache_MetadataOfJoinRequestsIsBounded checks that the hub's cache does not keep the metadata with which a client
// of a stolen bootstrap credential fills a JoinRequest, and that an Acceptor can read labels and annotations of usual
// size.
func TestCache_MetadataOfJoinRequestsIsBounded(t *testing.T) {
	request := func(keys int) *v1alpha1.JoinRequest {
		r := &v1alpha1.JoinRequest{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{},
			Annotations: map[string]string{}}}
		for i := range keys {
			key := fmt.Sprintf("example.com/%d", i)
			r.Labels[key], r.Annotations[key] = "x", strings.Repeat("a", 100)
			r.Finalizers = append(r.Finalizers, key)
			r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{Name: key})
			r.ManagedFields = append(r.ManagedFields, metav1.ManagedFieldsEntry{Manager: key})
		}
		r.Spec.Name = "a"
		return r
	}
	kept, err := boundedRequest(request(20))
	require.NoError(t, err)
	usual := kept.(*v1alpha1.JoinRequest)
	require.Len(t, usual.Labels, 20)
	require.Len(t, usual.Annotations, 20)
	require.Len(t, usual.Finalizers, 20)
	require.Empty(t, usual.OwnerReferences)

	kept, err = boundedRequest(request(10_000))
	require.NoError(t, err)
	text, err := json.Marshal(kept)
	require.NoError(t, err)
	require.Less(t, len(text), 2000)
	require.Equal(t, []string{"example.com/0"}, kept.(*v1alpha1.JoinRequest).Finalizers, "the hub still removes them")
	require.Equal(t, "a", kept.(*v1alpha1.JoinRequest).Spec.Name)

	list := &v1alpha1.JoinRequestList{}
	other, err := boundedRequest(list)
	require.NoError(t, err)
	require.Same(t, list, other)
}
