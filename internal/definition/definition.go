// Package definition observes whether a CustomResourceDefinition is served or is being removed.
package definition

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// State is the state of the CustomResourceDefinition of a resource.
type State string

// The states of a definition.
const (
	Served      State = "Served"
	Terminating State = "Terminating" // it is being removed, and all its objects with it
	Absent      State = "Absent"
)

// ConfirmAfter is how long a request to delete an object must have been observed before it is acted on. The API
// server publishes that a definition is being removed a moment after it has begun to delete the objects.
const ConfirmAfter = time.Second

// Of returns the state of a definition from the API server's discovery, which every authenticated user may read.
// Discovery lists a definition that is being removed without the verb create.
func Of(ctx context.Context, d discovery.DiscoveryInterface, resource schema.GroupVersionResource) (State, error) {
	list := &metav1.APIResourceList{}
	err := d.RESTClient().Get().AbsPath("/apis", resource.Group, resource.Version).Do(ctx).Into(list)
	if apierrors.IsNotFound(err) {
		return Absent, nil
	}
	if err != nil {
		return "", fmt.Errorf("read whether %s is served: %w", resource.GroupResource(), err)
	}
	return stateIn(list, resource.Resource), nil
}

func stateIn(list *metav1.APIResourceList, resource string) State {
	for i := range list.APIResources {
		if list.APIResources[i].Name != resource {
			continue
		}
		if slices.Contains(list.APIResources[i].Verbs, "create") {
			return Served
		}
		return Terminating
	}
	return Absent
}
