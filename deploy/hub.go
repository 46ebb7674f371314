package deploy

import (
	"fmt"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HubComponents returns the names of the folders of hub/components, sorted: the components that [Hub] accepts.
func HubComponents() []string {
	return []string{"bootstrap-tokens", "cluster-api", "cluster-profiles", "monitoring", "push", "select-anything",
		"users-place"}
}

// Hub returns the objects of a complete hub in the order in which they can be applied: the folder hub/base, and the
// given folders of hub/components, such as "select-anything". The image of the program is "muster-hub"; see
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
		if argument, adds := componentArguments[component]; adds {
			if err := addArgument(objects, argument); err != nil {
				return nil, err
			}
		}
	}
	return objects, nil
}

// componentArguments are the arguments of the program that the kustomizations of components add.
var componentArguments = map[string]string{
	"bootstrap-tokens": "--bootstrap-tokens", "cluster-profiles": "--cluster-profiles", "push": "--push",
}

// addArgument adds an argument to the program of the Deployment.
func addArgument(objects []*unstructured.Unstructured, argument string) error {
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			continue
		}
		if err := editProgram(object, func(container map[string]any) error {
			return addArguments(container, argument)
		}); err != nil {
			return fmt.Errorf("add %s to Deployment %s: %w", argument, object.GetName(), err)
		}
	}
	return nil
}
