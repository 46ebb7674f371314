// Package v1alpha1 has the API of add-ons: what runs on members beside the agent, such as a collector of metrics, with its configuration
// and, if need be, its own access to the hub.
//
//   - [Addon] says that there is an add-on, which members get it, and how it is configured by default. It is cluster-scoped.
//   - [MemberAddon] is the add-on on one member, in the member's namespace: what that member has of its own, and how it is doing.
//   - [AddonConfig] is a configuration that many add-ons understand: variables, where pods run, registries, proxy and resources.
//   - [AddonTemplate] is an add-on without code: manifests with variables.
//
// The API server checks them by the rules of the CustomResourceDefinitions, which are in package crds beside it. The method Validate of each spec has those
// rules and the ones that are beyond the API server: whoever reads an object calls it before it acts on it, and a writer that would rather know
// before it writes.
//
// The package depends on nothing but apimachinery, k8s.io/api, and the API of placement and work.
//
// +groupName=addon.muster.dev
// +kubebuilder:object:generate=true
package v1alpha1
