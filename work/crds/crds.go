// Package crds installs the CustomResourceDefinitions of work: Work on a hub, AppliedWork on its members.
//
// A program that installs the definition of AppliedWork on a member takes it away by [RemoveFromMember] when the member
// has left. An agent of Works does neither.
//
// They are embedded in the program, so that its API and its controllers are always of one version.
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

// Member has the definition of what a member holds, a YAML file.
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

// InstallOnMember does the same with the definition of AppliedWork, on a member. It keeps a definition that a newer
// version of muster has applied: agents of several hubs, of different versions, share it.
func InstallOnMember(ctx context.Context, c client.Client) error {
	definitions, err := crdinstall.Read(Member)
	if err != nil {
		return err
	}
	return crdinstall.Apply(ctx, c, definitions)
}

// RemoveFromMember deletes the definition of AppliedWork, and waits until it is gone, for 30 seconds where ctx ends
// no earlier. It is for a member that has left, when no agent applies Works there any more, since all AppliedWorks
// would go with it, and what they own.
//
// It stays where there is an AppliedWork, such as one of another hub, and where it is not InstallOnMember's alone:
// when another client manages fields of it, such as kubectl, which may have installed it with the manifests of an
// agent. Kept says so, and is empty where the definition is not there any more. The client must not read from a
// cache.
//
// It needs the permissions get and delete on customresourcedefinitions.apiextensions.k8s.io of the name
// appliedworks.work.muster.dev, and list on appliedworks.work.muster.dev.
func RemoveFromMember(ctx context.Context, c client.Client) (kept string, err error) {
	return crdinstall.Remove(ctx, c, "appliedworks.work.muster.dev", crdinstall.Claimed)
}
