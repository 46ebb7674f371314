// Package crds installs the CustomResourceDefinitions of add-ons on a hub.
//
// The definitions are embedded in the program, so the API and the controllers always have the same version.
package crds

import (
	"context"
	"embed"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
)

// Files contains the CustomResourceDefinitions, one YAML file each.
//
//go:embed *.yaml
var Files embed.FS

// Install applies the definitions by server-side apply and waits until the API server serves all of them, for at most
// 30 seconds. It changes nothing if they are up to date. It returns an error, and applies none, if a newer version of
// muster has applied one of them.
//
// Install requires the permissions get and patch on customresourcedefinitions.apiextensions.k8s.io, and create if they
// do not exist.
func Install(ctx context.Context, c client.Client) error {
	return crdinstall.Install(ctx, c, Files)
}
