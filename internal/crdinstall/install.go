// Package crdinstall installs embedded CustomResourceDefinitions. The package crds of each API group wraps it.
package crdinstall

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/internal/ssa"
)

// FieldOwner is the field manager of the definitions. Fields of other field managers, such as the CA of a conversion
// webhook, are kept.
const FieldOwner = client.FieldOwner("muster-crds")

const (
	timeout  = 30 * time.Second
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

// Install applies the definitions that do not exist yet or differ. It waits until the API server serves all of them and
// the RESTMapper of the client finds them, so that the client can use them in its next request. The mapper must send
// requests to the API server, as the default mapper of a client does. A definition that is being deleted is applied
// again.
//
// Install waits for at most 30 seconds, or until the context ends. Its error contains the definition and the cause. If
// a newer version of muster has applied one of the definitions, Install returns an error and applies none, because an
// older definition would drop fields of existing objects.
func Install(ctx context.Context, c client.Client, files fs.FS) error {
	definitions, err := Read(files)
	if err != nil {
		return err
	}
	return current().install(ctx, c, definitions)
}

// Apply is Install for parsed definitions. It keeps definitions that a newer version of muster has applied, because
// several hubs of different versions may share the definitions on a member.
func Apply(ctx context.Context, c client.Client, definitions []*unstructured.Unstructured) error {
	return current().keepingNewer(ctx, c, definitions)
}

// InstallObjects applies objects of other kinds than CustomResourceDefinition, in order and without waiting. The error
// contains the first object that was not applied.
func InstallObjects(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if _, err := ssa.Apply(ctx, c, object, FieldOwner, client.ForceOwnership); err != nil {
			return fmt.Errorf("install %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

// installer applies definitions as one version of muster.
type installer struct{ own *version.Version }

func current() installer {
	build, _ := debug.ReadBuildInfo()
	return installer{versionIn(build)}
}

func (i installer) install(ctx context.Context, c client.Client, definitions []*unstructured.Unstructured) error {
	installed, err := read(ctx, c, definitions)
	if err != nil {
		return err
	}
	for n, definition := range definitions {
		if there := newer(installed[n], i.own); there != nil {
			return fmt.Errorf(
				"install %s: version v%s of muster has applied the definition, and this program contains v%s: run "+
					"a program with v%s or later, or remove the annotation %s from the definition to replace it", definition.GetName(),
				there, i.own, there, VersionAnnotation)
		}
	}
	return i.applyAll(ctx, c, definitions, installed)
}

func (i installer) keepingNewer(ctx context.Context, c client.Client, definitions []*unstructured.Unstructured) error {
	installed, err := read(ctx, c, definitions)
	if err != nil {
		return err
	}
	return i.applyAll(ctx, c, definitions, installed)
}

// read returns the installed definitions. A definition that does not exist is nil.
func read(ctx context.Context, c client.Client,
	definitions []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	installed := make([]*unstructured.Unstructured, len(definitions))
	for n, definition := range definitions {
		there, err := ssa.Read(ctx, c, definition.GroupVersionKind(), client.ObjectKeyFromObject(definition))
		switch {
		case err == nil:
			installed[n] = there
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("read %s: %w", definition.GetName(), err)
		}
	}
	return installed, nil
}

// applyAll applies the definitions that are neither installed nor newer there, and waits until all are served.
func (i installer) applyAll(ctx context.Context, c client.Client,
	definitions, installed []*unstructured.Unstructured) error {
	for n, definition := range definitions {
		if newer(installed[n], i.own) != nil {
			continue
		}
		config, err := recorded(definition, i.own)
		if err != nil {
			return err
		}
		if isApplied(config, installed[n]) {
			continue
		}
		if err := i.apply(ctx, c, definition); err != nil {
			return err
		}
	}
	return i.wait(ctx, c, definitions)
}

// wait waits until all definitions are served.
func (i installer) wait(ctx context.Context, c client.Client, definitions []*unstructured.Unstructured) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var waiting string
	err := wait.PollUntilContextCancel(ctx, interval, true, func(ctx context.Context) (bool, error) {
		for _, definition := range definitions {
			var err error
			waiting, err = notServed(ctx, c, definition)
			if apierrors.IsNotFound(err) { // the deletion of the former definition has completed meanwhile
				waiting, err = definition.GetName()+" was deleted", i.apply(ctx, c, definition)
			}
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
		return fmt.Errorf("wait for the definitions to be served: %s: %w", waiting, err)
	default:
		return fmt.Errorf("wait for the definitions to be served: %w", err)
	}
}

func (i installer) apply(ctx context.Context, c client.Client, definition *unstructured.Unstructured) error {
	config, err := recorded(definition, i.own)
	if err != nil {
		return err
	}
	if _, err := ssa.Apply(ctx, c, config, FieldOwner, client.ForceOwnership); err != nil {
		return fmt.Errorf("install %s: %w", definition.GetName(), err)
	}
	return nil
}

// notServed returns the reason why a definition is not served yet, or an empty string if it is served.
func notServed(ctx context.Context, c client.Client, definition *unstructured.Unstructured) (string, error) {
	waiting, err := notEstablished(ctx, c, definition)
	if err != nil || waiting != "" {
		return waiting, err
	}
	if waiting, err = notFound(c.RESTMapper(), definition); err != nil || waiting != "" {
		return waiting, err
	}
	return notAnswered(ctx, c, definition)
}

// notAnswered returns the reason why the API server does not answer requests for a definition yet. It returns an empty
// string if it does, or if the client may not list the objects. The API server writes the condition Established before
// its own watch of definitions observes it, and discovery may still contain the former definition.
func notAnswered(ctx context.Context, c client.Client, definition *unstructured.Unstructured) (string, error) {
	kind, versions := ssa.DefinedKind(definition)
	if len(versions) == 0 {
		return "", nil
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: kind.Group, Version: versions[0], Kind: kind.Kind + "List"})
	err := c.List(ctx, list, client.Limit(1))
	switch {
	case apierrors.IsNotFound(err):
		return definition.GetName() + ": the API server does not answer requests for " + kind.Kind + " yet", nil
	case apierrors.IsForbidden(err), err == nil:
		return "", nil
	default:
		return "", fmt.Errorf("list %s: %w", definition.GetName(), err)
	}
}

// notEstablished returns the reason why a definition is not established yet, or an empty string if it is established.
func notEstablished(ctx context.Context, c client.Client, definition *unstructured.Unstructured) (string, error) {
	observed, err := ssa.Read(ctx, c, definition.GroupVersionKind(), client.ObjectKeyFromObject(definition))
	if err != nil {
		return "", err
	}
	why := unestablished(observed)
	if why != "" {
		why = definition.GetName() + ": " + why
	}
	return why, nil
}

// unestablished returns the reason why an observed definition is not established, or an empty string if it is
// established.
func unestablished(observed *unstructured.Unstructured) string {
	switch {
	case observed.GetDeletionTimestamp() != nil:
		return "the former definition is being deleted"
	case ssa.Established(observed):
		return ""
	}
	reason := "the API server has not processed the definition"
	for _, condition := range ssa.Conditions(observed) {
		if condition["status"] == "False" {
			reason = fmt.Sprint(condition["message"])
		}
	}
	return reason
}

// notFound returns a version of a definition that the mapper does not find yet, or an empty string if it finds all
// served versions. An API server sets the condition Established before its discovery contains the definition, and
// serves no version of it until then.
func notFound(mapper meta.RESTMapper, definition *unstructured.Unstructured) (string, error) {
	kind, versions := ssa.DefinedKind(definition)
	for _, version := range versions {
		_, err := mapper.RESTMapping(kind, version)
		switch {
		case meta.IsNoMatchError(err):
			meta.MaybeResetRESTMapper(mapper) // some mappers cache their results
			return definition.GetName() + ": discovery of the API server does not contain version " + version, nil
		case err != nil:
			return "", fmt.Errorf("find %s in the API server's discovery: %w", definition.GetName(), err)
		}
	}
	return "", nil
}
