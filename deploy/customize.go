package deploy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
)

// Customization is what differs between installations of the same manifests.
type Customization struct {
	// Image is the image of the program. Required.
	Image string
	// Namespace of the program and its namespaced objects, a DNS label. Default: muster-system.
	Namespace string
	// Arguments are added to the arguments of the program, for example --label=region=eu. Optional.
	Arguments []string
}

// Validate returns a [*membership.InvalidError] that names the field, or nil.
func (c Customization) Validate() error {
	switch {
	case c.Image == "" || strings.ContainsAny(c.Image, " \n\t"):
		return &membership.InvalidError{Field: "Image", Problem: "must be an image such as registry.example.com/agent:v1"}
	case c.Namespace != "" && len(validation.IsDNS1123Label(c.Namespace)) > 0:
		return &membership.InvalidError{Field: "Namespace", Problem: fmt.Sprintf("must be a DNS label, got %q", c.Namespace)}
	default:
		return nil
	}
}

// Customize returns copies of objects of [Hub] or [Objects] with the customization. In the namespace muster-system it
// replaces the namespace of objects, of subjects of bindings, and the Namespace itself. Names of cluster-scoped
// objects stay: a second installation on the same cluster replaces the ClusterRoleBindings of the first. Customize
// returns the error of Validate, or an error if a Deployment does not have exactly one container.
func Customize(objects []*unstructured.Unstructured, c Customization) ([]*unstructured.Unstructured, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		object = object.DeepCopy()
		if c.Namespace != "" {
			if err := moveTo(object, c.Namespace); err != nil {
				return nil, fmt.Errorf("set the namespace of %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
		if object.GetKind() == "Deployment" {
			if err := setProgram(object, c.Image, c.Arguments); err != nil {
				return nil, fmt.Errorf("set the image of Deployment %s: %w", object.GetName(), err)
			}
		}
		out = append(out, object)
	}
	return out, nil
}

// moveTo replaces the namespace muster-system in an object. Other namespaces, such as that of JoinTokens, stay.
func moveTo(object *unstructured.Unstructured, namespace string) error {
	if object.GetNamespace() == agent.DefaultNamespace {
		object.SetNamespace(namespace)
	}
	if object.GetKind() == "Namespace" && object.GetName() == agent.DefaultNamespace {
		object.SetName(namespace)
	}
	if object.GetKind() == "FlowSchema" {
		return moveFlowSchema(object, namespace)
	}
	subjects, found, err := unstructured.NestedSlice(object.Object, "subjects")
	if err != nil || !found {
		return err
	}
	for _, subject := range subjects {
		if subject, ok := subject.(map[string]any); ok && subject["namespace"] == agent.DefaultNamespace {
			subject["namespace"] = namespace
		}
	}
	return unstructured.SetNestedSlice(object.Object, subjects, "subjects")
}

// moveFlowSchema replaces the namespace muster-system in the subjects of a FlowSchema.
func moveFlowSchema(schema *unstructured.Unstructured, namespace string) error {
	rules, _, err := unstructured.NestedSlice(schema.Object, "spec", "rules")
	if err != nil {
		return err
	}
	for _, rule := range rules {
		rule, _ := rule.(map[string]any)
		subjects, _ := rule["subjects"].([]any)
		for _, subject := range subjects {
			subject, _ := subject.(map[string]any)
			account, _ := subject["serviceAccount"].(map[string]any)
			if account["namespace"] == agent.DefaultNamespace {
				account["namespace"] = namespace
			}
		}
	}
	return unstructured.SetNestedSlice(schema.Object, rules, "spec", "rules")
}

// setProgram sets the image of the only container of a Deployment and adds arguments.
func setProgram(deployment *unstructured.Unstructured, image string, arguments []string) error {
	return editProgram(deployment, func(container map[string]any) error {
		container["image"] = image
		return addArguments(container, arguments...)
	})
}

// editProgram changes the only container of a Deployment.
func editProgram(deployment *unstructured.Unstructured, edit func(container map[string]any) error) error {
	path := []string{"spec", "template", "spec", "containers"}
	containers, _, err := unstructured.NestedSlice(deployment.Object, path...)
	if err != nil {
		return err
	}
	if len(containers) != 1 {
		return fmt.Errorf("want one container, got %d", len(containers))
	}
	container, ok := containers[0].(map[string]any)
	if !ok {
		return errors.New("the container is not an object")
	}
	if err := edit(container); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(deployment.Object, containers, path...)
}

func addArguments(container map[string]any, arguments ...string) error {
	current, _, err := unstructured.NestedStringSlice(container, "args")
	if err != nil {
		return err
	}
	return unstructured.SetNestedStringSlice(container, slices.Concat(current, arguments), "args")
}
