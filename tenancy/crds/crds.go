// Package crds installs the CustomResourceDefinitions of tenancy: ClusterSet, ClusterSetBinding and SelectionGrant on a
// hub, MemberPolicy on a member. On a hub it also installs ValidatingAdmissionPolicies. They require the verb bind on a
// ClusterSet from users who create a ClusterSetBinding of it, and from users who add a MemberCluster to the set, or
// remove one, by a change of labels.
package crds

import (
	"context"
	"embed"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/crdinstall"
)

// Files are the CustomResourceDefinitions of a hub, one YAML file each.
//
//go:embed tenancy.muster.dev_clustersets.yaml tenancy.muster.dev_clustersetbindings.yaml
//go:embed tenancy.muster.dev_selectiongrants.yaml
var Files embed.FS

// Member is the CustomResourceDefinition of a member, a YAML file.
//
//go:embed tenancy.muster.dev_memberpolicies.yaml
var Member embed.FS

//go:embed policy/*.yaml
var policies embed.FS

// Policies returns the ValidatingAdmissionPolicies and their bindings, one YAML file each.
func Policies() fs.FS {
	sub, err := fs.Sub(policies, "policy")
	if err != nil {
		panic(err) // The path is a constant.
	}
	return sub
}

// Install applies the admission policies and the definitions by server-side apply, and waits until the API server
// serves the definitions, for at most 30 seconds. An API server observes a new policy within seconds; until then it
// admits ClusterSetBindings and labels of MemberClusters without the check. Installing again changes nothing.
//
// The definition of ClusterSets must not be deleted before the policy memberclusters.tenancy.muster.dev: without the
// definition, the API server rejects every change of the labels of a MemberCluster.
//
// Install needs the verbs get, create and patch on customresourcedefinitions.apiextensions.k8s.io, and create and patch
// on validatingadmissionpolicies and validatingadmissionpolicybindings of admissionregistration.k8s.io. The API server
// also requires get on clustersets.tenancy.muster.dev, which are the parameters of a policy.
func Install(ctx context.Context, c client.Client) error {
	objects, err := crdinstall.Read(Policies())
	if err != nil {
		return err
	}
	// The policy for bindings precedes the definition of bindings, so that no binding is created without the check. The
	// policy for labels follows the definition of its parameters.
	var before, after []*unstructured.Unstructured
	for _, object := range objects {
		if object.GetName() == labelPolicy {
			after = append(after, object)
		} else {
			before = append(before, object)
		}
	}
	if err := crdinstall.InstallObjects(ctx, c, before); err != nil {
		return err
	}
	if err := crdinstall.Install(ctx, c, Files); err != nil {
		return err
	}
	return crdinstall.InstallObjects(ctx, c, after)
}

// InstallOnMember applies the definition of MemberPolicy on a member by server-side apply, and waits until the API
// server serves it, for at most 30 seconds. It keeps a definition that a newer version of muster has applied: agents of
// several hubs, of different versions, share it. Nothing in muster removes the definition, because the member's
// administrator owns the MemberPolicies, which would be deleted with it.
//
// InstallOnMember needs the verbs get, create and patch on customresourcedefinitions.apiextensions.k8s.io.
func InstallOnMember(ctx context.Context, c client.Client) error {
	definitions, err := crdinstall.Read(Member)
	if err != nil {
		return err
	}
	return crdinstall.Apply(ctx, c, definitions)
}

// labelPolicy is the name of the policy whose parameters are ClusterSets, and of its binding.
const labelPolicy = "memberclusters.tenancy.muster.dev"
