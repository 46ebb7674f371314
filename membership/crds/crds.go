// Package crds installs the CustomResourceDefinitions of membership on a hub.
//
// They are embedded in the program, so that its API and its controllers are always of one version.
package crds

import (
	"context"
	"embed"
	"io/fs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
)

// Files are the definitions, one YAML file each.
//
//go:embed *.yaml
var Files embed.FS

//go:embed policy/*.yaml
var policies embed.FS

// Policies returns the ValidatingAdmissionPolicies that confine hubs and agents, and their bindings, one YAML file
// each.
func Policies() fs.FS {
	sub, err := fs.Sub(policies, "policy")
	if err != nil {
		panic(err) // The path is a constant.
	}
	return sub
}

// InstallPolicies applies ValidatingAdmissionPolicies that confine hubs and agents, by server-side apply. RBAC can
// limit permissions only by kind and by complete name, so the roles permit more than necessary. The policy for hubs
// applies to users with the verb confine on hubs.membership.muster.dev, which the roles of a hub and of the
// registration of add-ons contain. Users with every verb are exempt. The policy permits all other users with the verb
// confine only to
//
//   - create tokens of ServiceAccounts, and write ServiceAccounts, Roles and RoleBindings, in the registration
//     namespace and, with the name muster-agent or addon-*, in namespaces of members;
//   - delete namespaces with the label membership.muster.dev/member, and not change this label;
//   - approve CertificateSigningRequests that the same user has created.
//
// The policy for agents permits only the Lease heartbeat to users who may create Leases in the namespace of a member,
// and not delete them.
//
// InstallPolicies needs the verbs create and patch on validatingadmissionpolicies and
// validatingadmissionpolicybindings of admissionregistration.k8s.io.
func InstallPolicies(ctx context.Context, c client.Client) error {
	objects, err := crdinstall.Read(Policies())
	if err != nil {
		return err
	}
	return crdinstall.InstallObjects(ctx, c, objects)
}

// Install applies the definitions by server-side apply and waits until the API server serves all of them, for at most
// 30 seconds. It changes nothing if they are up to date. It returns an error, and applies none, if a newer version of
// muster has applied one of them.
//
// Install requires the permissions get and patch on customresourcedefinitions.apiextensions.k8s.io, and create if they
// do not exist.
func Install(ctx context.Context, c client.Client) error {
	return crdinstall.Install(ctx, c, Files)
}
