// Package template renders the manifests of an AddonTemplate, an add-on without code. The package is pure: it uses no
// client and no clock.
//
// [Render] returns the objects of the add-on for one member, with variables, namespaces and configuration applied, and
// the objects for its hosting member if there is one.
//
// # Variables
//
// In all strings of the manifests, including names, and in the name and namespace of the selector of a manifest option,
// ${NAME} is replaced by the value of a variable. Field names cannot contain variables.
//
//   - CLUSTER_NAME is the name of the member, ADDON_NAME the name of the add-on, and INSTALL_NAMESPACE its namespace on
//     the member. An AddonConfig cannot set them.
//   - AddonConfigs define all other variables. A variable that none of them defines is an error.
//
// Every ${ starts a variable. For a literal ${, for example in a shell script, write $${. Before a {, two $ represent
// one, so that $$${NAME} is a $ followed by the value. Other text, such as $(POD_IP) and $HOME, does not change. Values
// are not searched for variables.
//
// The result is always a string: "${REPLICAS}" becomes "3", which an API that requires the number 3 rejects. For
// different numbers use the resources of an AddonConfig, two templates, or a Go agent.
//
// All strings with variables together can be as long as the manifests of a Work, [workv1alpha1.MaxManifestBytes].
//
// # Namespaces
//
// A namespaced object without a namespace gets the install namespace. The hub does not know the kinds of members. The
// scope of a kind comes from the first of these sources:
//
//   - the annotation addon.muster.dev/scope of the manifest, Cluster or Namespaced;
//   - a CustomResourceDefinition in the template;
//   - the list of cluster-scoped kinds of Kubernetes, such as ClusterRole and StorageClass.
//
// All other kinds are namespaced. A cluster-scoped custom resource whose definition is not part of the template, such
// as a ClusterIssuer, therefore needs the annotation. References to other objects, such as the namespace of a
// ServiceAccount in a ClusterRoleBinding, are not completed: write ${INSTALL_NAMESPACE}.
//
// The install namespace is the first object, as a Namespace with only a name, unless it is one of the manifests or
// exists in every cluster: default, kube-system, kube-public or kube-node-lease.
//
// # Hosted mode
//
// If the agent runs on a hosting member, manifests with the annotation addon.muster.dev/location: Hosting are applied
// there. All other manifests are applied on the member, and so are all manifests if there is no hosting member. This
// includes hooks and the install namespace.
//
// On the hosting member, the namespace [HostingNamespace] is the install namespace, for objects without a namespace and
// for ${INSTALL_NAMESPACE}, so that agents for several members do not conflict. Cluster-scoped objects, such as a
// ClusterRole, need unique names: use ${CLUSTER_NAME}. Options apply to both members, each with its own variables.
//
// # Hooks
//
// A Job or Pod with the annotation addon.muster.dev/pre-delete: "true" is a hook. Hooks are not applied with the other
// manifests. They run on the member before the add-on is removed.
package template
