// Package crds installs the CustomResourceDefinitions of tenancy on a hub, and the ValidatingAdmissionPolicy that
// requires the verb bind on a ClusterSet from users who create a ClusterSetBinding of it.
package crds

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
)

// Files are the CustomResourceDefinitions, one YAML file each.
//
//go:embed *.yaml
var Files embed.FS

//go:embed policy/*.yaml
var policies embed.FS

// Policies returns the ValidatingAdmissionPolicy and its binding, one YAML file each.
func Policies() fs.FS {
	sub, err := fs.Sub(policies, "policy")
	if err != nil {
		panic(err) // The path is a constant.
	}
	return sub
}

// Install applies the admission policy and the definitions by server-side apply, in this order, and waits until the API
// server serves the definitions, for at most 30 seconds. An API server observes a new policy within seconds; until then
// it admits ClusterSetBindings without the check. Installing again changes nothing.
//
// Install needs the verbs get, create and patch on customresourcedefinitions.apiextensions.k8s.io, and create and patch on
// validatingadmissionpolicies and validatingadmissionpolicybindings of admissionregistration.k8s.io.
func Install(ctx context.Context, c client.Client) error {
	objects, err := crdinstall.Read(Policies())
	if err != nil {
		return err
	}
	for _, object := range objects {
		err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), crdinstall.FieldOwner, client.ForceOwnership)
		if err != nil {
			return fmt.Errorf("install %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return crdinstall.Install(ctx, c, Files)
}
