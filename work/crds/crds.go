// Package crds installs the CustomResourceDefinitions of work: Work on a hub, and AppliedWork on its members.
//
// A program that installs the definition of AppliedWork on a member removes it by [RemoveFromMember] when the member
// has left. An agent of Works does neither.
//
// The definitions are embedded in the program, so the API and the controllers always have the same version.
package crds

import (
	"context"
	"embed"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
)

// Hub contains the CustomResourceDefinition of Work, for the hub, as a YAML file.
//
//go:embed work.muster.dev_works.yaml
var Hub embed.FS

// Member contains the CustomResourceDefinition of AppliedWork, for members, as a YAML file.
//
//go:embed work.muster.dev_appliedworks.yaml
var Member embed.FS

// InstallOnHub applies the definition of Work by server-side apply and waits until the API server serves it, for at
// most 30 seconds. It changes nothing if the definition is up to date. It returns an error if a newer version of muster
// has applied the definition.
//
// InstallOnHub requires the permissions get and patch on customresourcedefinitions.apiextensions.k8s.io, and create if
// the definition does not exist.
func InstallOnHub(ctx context.Context, c client.Client) error {
	return crdinstall.Install(ctx, c, Hub)
}

// InstallOnMember applies the definition of AppliedWork on a member in the same way as [InstallOnHub]. It keeps a
// definition that a newer version of muster has applied: agents of several hubs, of different versions, share it.
func InstallOnMember(ctx context.Context, c client.Client) error {
	definitions, err := crdinstall.Read(Member)
	if err != nil {
		return err
	}
	return crdinstall.Apply(ctx, c, definitions)
}

// RemoveFromMember deletes the definition of AppliedWork, and waits until it is deleted, for at most 30 seconds. Use
// it for a member that has left, when no agent applies Works there any more: the deletion of the definition deletes
// all AppliedWorks.
//
// RemoveFromMember keeps the definition if an AppliedWork exists, such as one of another hub. It also keeps a
// definition of which another client manages fields, such as kubectl, which may have installed it with the manifests
// of an agent. The returned kept explains why the definition was kept; it is empty if the definition does not exist
// any more. The client must not read from a cache.
//
// It needs the permissions get and delete on customresourcedefinitions.apiextensions.k8s.io of the name
// appliedworks.work.muster.dev, and list on appliedworks.work.muster.dev.
func RemoveFromMember(ctx context.Context, c client.Client) (kept string, err error) {
	return crdinstall.Remove(ctx, c, "appliedworks.work.muster.dev", crdinstall.Claimed)
}
