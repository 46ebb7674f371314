// Package template makes manifests of an AddonTemplate: an add-on without code. It is pure: no client, no clock.
//
// [Render] returns what the add-on consists of for one member, with variables, namespaces and configuration put in; and what of that goes to
// another member, if the agent runs there.
//
// # Variables
//
// In all strings of the manifests, those of names included, ${NAME} stands for the value of a variable; and in the name and namespace that a manifest option
// selects by. Names of fields have no variables.
//
//   - CLUSTER_NAME is the name of the member, ADDON_NAME that of the add-on, and INSTALL_NAMESPACE where it is on the member. An AddonConfig
//     cannot set them.
//   - All others are those of AddonConfigs. One that none of them sets is an error.
//
// Every ${ begins a variable. To have it as text write $${ in its place, in shell scripts for example: before a { two $ are one, so that $$${NAME} is a $ and the
// value. All else is text, $(POD_IP) and $HOME too. What a variable stands for is text as well, and is not looked through for variables.
//
// The result is a string, never a number: "${REPLICAS}" is "3", where an API wants 3. What should be a number for some members has to come
// otherwise: by resources of an AddonConfig, by two templates, or by an agent in Go.
//
// All strings that have variables may together become as long as the manifests of a Work, [workv1alpha1.MaxManifestBytes].
//
// # Namespaces
//
// An object that has no namespace gets the install namespace, if its kind is namespaced. The hub does not know the kinds of members, so
//
//   - what the annotation addon.muster.dev/scope of the manifest says counts, Cluster or Namespaced;
//   - else what a CustomResourceDefinition of the template says;
//   - else the kinds of Kubernetes that are cluster-scoped are, such as ClusterRole and StorageClass;
//   - and all others are namespaced.
//
// So a cluster-scoped custom resource whose definition is not part of the template, such as a ClusterIssuer, needs the annotation.
// What objects say of others, such as the namespace of a ServiceAccount that a ClusterRoleBinding names, is left as it is: write ${INSTALL_NAMESPACE}.
//
// The install namespace itself comes first, as a Namespace that has nothing but its name, unless it is among the manifests, or one that
// every cluster has: default, kube-system, kube-public or kube-node-lease.
//
// # Hosted mode
//
// If the agent for the member runs on another one, the hosting member, manifests go there that have the annotation addon.muster.dev/location:
// Hosting. All others, with Member or without, go to the member itself, and so do all if there is no hosting member. Hooks and the install namespace
// are no exception.
//
// On the hosting member the namespace of [HostingNamespace] is the install namespace, for objects that have none and for ${INSTALL_NAMESPACE}, so that
// agents for several members do not meet. What has no namespace, such as a ClusterRole, needs a name of its own: write ${CLUSTER_NAME} into it. Options
// are for both, each with the variable as it is there.
//
// # Hooks
//
// A Job or Pod with the annotation addon.muster.dev/pre-delete: "true" is for the removal of the add-on: it is no part of what is applied, but runs on the
// member before that is taken back.
package template
