// Package v1alpha1 contains the API objects of add-ons. An add-on is a component that runs on members in addition to
// the agent, for example a metrics collector. It has a configuration and, if required, its own access to the hub.
//
//   - [Addon] defines an add-on, the members that get it and its default configuration. It is cluster-scoped.
//   - [MemberAddon] represents an add-on on one member. It is in the member's namespace, and contains the overrides for
//     the member and the status.
//   - [AddonConfig] is a configuration that many add-ons support: variables, node placement, registries, proxy and
//     resources.
//   - [AddonTemplate] defines an add-on without code: manifests with variables.
//
// The API server validates objects by the rules of the CustomResourceDefinitions in the package crds. The method
// Validate of each spec checks these rules and the rules that the API server cannot check. A controller calls it before
// it acts on an object. A client can call it before it writes an object.
//
// The package depends only on apimachinery, k8s.io/api and the APIs of placement and work.
// +groupName=addon.muster.dev
// +kubebuilder:object:generate=true
package v1alpha1
