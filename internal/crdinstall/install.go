// Package crdinstall installs embedded CustomResourceDefinitions; the crds package of each API group wraps it.
package crdinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// fieldOwner owns the fields of the definitions, so that what others add to them (a conversion
// webhook's CA, say) is kept.
const fieldOwner = client.FieldOwner("muster-crds")

const (
	patience = 30 * time.Second
	interval = 50 * time.Millisecond
)

// Read returns the definitions in the YAML files at the top of a file system, in the order of their file names.
func Read(files fs.FS) ([]*unstructured.Unstructured, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, err
	}
	definitions := make([]*unstructured.Unstructured, 0, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &definition.Object); err != nil {
			return nil, fmt.Errorf("parse %s: %w", name, err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

// Install applies the definitions and waits until the API server serves them all.
//
// It waits for 30 seconds where ctx has no earlier end, and then names what is not established and why.
func Install(ctx context.Context, c client.Client, files fs.FS) error {
	definitions, err := Read(files)
	if err != nil {
		return err
	}
	for _, definition := range definitions {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(definition), fieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("install %s: %w", definition.GetName(), err)
		}
	}

	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var waiting string
	err = wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		for _, definition := range definitions {
			waiting, err = notEstablished(ctx, c, definition)
			if err != nil || waiting != "" {
				return false, err
			}
		}
		return true, nil
	})
	switch {
	case err == nil:
		return nil
	case waiting != "" && errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("wait for the definitions to be established: %s: %w", waiting, err)
	default:
		return fmt.Errorf("wait for the definitions to be established: %w", err)
	}
}

// notEstablished says why a definition is not served yet; an empty string means that it is.
func notEstablished(ctx context.Context, c client.Client, definition *unstructured.Unstructured) (string, error) {
	observed := &unstructured.Unstructured{}
	observed.SetGroupVersionKind(definition.GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(definition), observed); err != nil {
		return "", err
	}
	// Null until the API server has looked at the definition for the first time.
	found, _, err := unstructured.NestedFieldNoCopy(observed.Object, "status", "conditions")
	if err != nil {
		return "", fmt.Errorf("read %s: %w", definition.GetName(), err)
	}
	conditions, _ := found.([]any)
	reasons := []string{"the API server has not looked at it"}
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if condition["type"] == "Established" && condition["status"] == "True" {
			return "", nil
		}
		if condition["status"] == "False" {
			reasons = append(reasons, fmt.Sprint(condition["message"]))
		}
	}
	return definition.GetName() + ": " + strings.Join(reasons[len(reasons)-1:], ""), nil
}
