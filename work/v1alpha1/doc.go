// Package v1alpha1 holds the API objects of work:
//
//   - [Work] is what the hub wants on one member: manifests, and how to apply them. It lives in the member's namespace
//     on the hub, and its status is what the member's agent answers.
//   - [AppliedWork] is the agent's inventory on the member, one for each Work: the objects that it applied. It owns
//     them, so that a member's administrator can take all of them back with the hub gone, by deleting it.
//
// The API server checks a Work by the rules of the CustomResourceDefinition. [WorkSpec.Validate] has those rules and
// the ones that are beyond the API server, for a writer that would rather know before it writes.
//
// The package depends on nothing but apimachinery and k8s.io/api; its CustomResourceDefinitions are in
// package crds beside it.
//
// +kubebuilder:object:generate=true
// +groupName=work.muster.dev
package v1alpha1
