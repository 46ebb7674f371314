package deploy

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HubComponents returns the names of the folders of hub/components, sorted: the components that [Hub] accepts.
func HubComponents() []string { return []string{"monitoring", "select-anything", "users-place"} }

// Hub returns the objects of a complete hub in the order in which they can be applied: the folder hub/base, and the given
// folders of hub/components, such as "select-anything". The image of the program is "muster-hub"; see
// [Customize]. An unknown component is an error.
func Hub(components ...string) ([]*unstructured.Unstructured, error) {
	objects, err := read("hub/base")
	if err != nil {
		return nil, fmt.Errorf("read the manifests of the hub: %w", err)
	}
	for _, component := range components {
		more, err := read(path.Join("hub/components", component))
		if err != nil {
			return nil, fmt.Errorf("read the manifests of component %q of the hub: %w", component, err)
		}
		objects = append(objects, more...)
	}
	return objects, nil
}
