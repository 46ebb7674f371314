// Package crds installs the CustomResourceDefinitions of work: Work on a hub, AppliedWork on its members.
//
// They are embedded in the program, so that its API and its controllers are always of one version.
package crds

import (
	"context"
	"embed"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
)

// Hub has the definition of what the hub holds, a YAML file.
//
//go:embed work.muster.dev_works.yaml
var Hub embed.FS

// Member has the definition of what a member holds, a YAML file.
//
//go:embed work.muster.dev_appliedworks.yaml
var Member embed.FS

// InstallOnHub applies the definition of Work by server-side apply and waits until the API server serves it, for
// 30 seconds where ctx ends no earlier. Installing what is there already changes nothing.
//
// It needs the permissions get and patch on customresourcedefinitions.apiextensions.k8s.io, and create where
// it is missing.
func InstallOnHub(ctx context.Context, c client.Client) error {
	return crdinstall.Install(ctx, c, Hub)
}

// InstallOnMember does the same with the definition of AppliedWork, on a member.
func InstallOnMember(ctx context.Context, c client.Client) error {
	return crdinstall.Install(ctx, c, Member)
}
