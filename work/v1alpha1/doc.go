// Package v1alpha1 contains the API objects of work:
//
//   - [Work] contains manifests for one member and the policies to apply them. It is in the member's namespace on the
//     hub. The member's agent applies the manifests and reports the result in the status.
//   - [AppliedWork] is the inventory of one Work on the member: the objects that the agent applied. An administrator of
//     the member can delete orphaned objects with an annotation on the AppliedWork, even if the hub does not exist any
//     more.
//
// The API server validates a Work by the rules of the CustomResourceDefinition. [WorkSpec.Validate] checks these rules
// and the rules that the API server cannot check. A client can call it before it writes a Work.
//
// The package depends only on apimachinery and k8s.io/api. Its CustomResourceDefinitions are in package crds.
//
// +kubebuilder:object:generate=true
// +groupName=work.muster.dev
package v1alpha1
