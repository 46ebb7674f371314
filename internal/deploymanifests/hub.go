package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addoncrds "github.com/muster-sdk/muster/addon/crds"
	"github.com/muster-sdk/muster/internal/crdinstall"
	"github.com/muster-sdk/muster/membership"
	membershipcrds "github.com/muster-sdk/muster/membership/crds"
	placementcrds "github.com/muster-sdk/muster/placement/crds"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// hub is the program that runs on the hub.
const hub program = "muster-hub"

// selectionLabel is a label of ClusterRoles that permit the selection of kinds on the hub by WorkSets.
const selectionLabel = "placement.muster.dev/aggregate-to-hub"

// hubRoles lists the packages of a hub that connects to no member, in the order of assembly.SetupHub.
var hubRoles = []string{
	"membership/hub", "addon/leave", "work/leave", "work/unassigned", "tenancy", "placement", "placement/workset", "addon",
}

// pushRoles lists the packages of a hub that runs the agents of members with joinMode Push.
var pushRoles = []string{"membership/fleet", "membership/push"}

// pushObjects returns the permissions for joinMode Push. The namespace contains the kubeconfigs of members.
func pushObjects() ([]any, error) {
	permissions, err := hub.rolesOf(pushRoles)
	return append([]any{connectionNamespace()}, permissions...), err
}

// bootstrapTokenObjects returns the permissions for JoinTokens of type BootstrapToken.
func bootstrapTokenObjects() ([]any, error) {
	roles, err := readRoles("membership/hub/rbac/bootstrap-tokens.yaml")
	return hub.bind(roles), err
}

// clusterProfileObjects returns the permissions for the export of ClusterProfiles.
func clusterProfileObjects() ([]any, error) { return hub.rolesOf([]string{"placement/clusterprofile"}) }

// clusterAPIObjects returns the permissions for the import of Clusters of Cluster API. The second ClusterRole contains
// the permissions to read in the namespaces of Clusters, and is bound in each of them.
func clusterAPIObjects() ([]any, error) {
	permissions, err := hub.rolesOf([]string{"membership/clusterapi"})
	if err != nil {
		return nil, err
	}
	sources, err := readRoles("membership/clusterapi/internal/source/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	connections, err := readRoles("membership/fleet/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	_, secrets := apart(connections)
	return append(permissions, object{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": hub.metaOf(sources[0].Name, ""), "rules": append(sources[0].Rules, secrets[0].Rules...),
	}), nil
}

func connectionNamespace() object {
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": hub.metaOf(membership.ConnectionNamespace, "")}
}

// hubFiles returns the content of the folder hub, by path.
func hubFiles() (map[string]string, error) {
	permissions, err := hub.rolesOf(hubRoles)
	if err != nil {
		return nil, err
	}
	definitions, err := definitionsAndSelection()
	if err != nil {
		return nil, err
	}
	permissions = append(permissions, hub.bindCluster(definitions)...)
	push, err := pushObjects()
	if err != nil {
		return nil, err
	}
	bootstrapTokens, err := bootstrapTokenObjects()
	if err != nil {
		return nil, err
	}
	profiles, err := clusterProfileObjects()
	if err != nil {
		return nil, err
	}
	clusterAPI, err := clusterAPIObjects()
	if err != nil {
		return nil, err
	}
	monitor := hub.metaOf(string(hub), namespace)
	text := map[string]string{
		"base/account.yaml": documents(append(hub.accountObjects(), object{
			"apiVersion": "v1", "kind": "Namespace", "metadata": hub.metaOf(membership.RegistrationNamespace, ""),
		})),
		"base/permissions.yaml":            documents(append(permissions, hub.bind(hub.leaderElection())...)),
		"base/users.yaml":                  documents([]any{viewRole(), platformRole()}),
		"components/users-place/role.yaml": documents([]any{editRole()}),
		"base/deployment.yaml":             documents([]any{hubDeployment()}),
		"base/availability.yaml":           documents([]any{disruptionBudget()}),
		"base/networkpolicy.yaml":          documents([]any{networkPolicy()}),
		"base/flowcontrol.yaml":            documents(flowControl()),

		"components/push/permissions.yaml": documents(push),
		"components/push/kustomization.yaml": component(
			"The hub connects to members with joinMode Push, and runs their agents.", "permissions.yaml") +
			addingArgument("--push"),
		"components/bootstrap-tokens/permissions.yaml": documents(bootstrapTokens),
		"components/bootstrap-tokens/kustomization.yaml": component(
			"The hub supports JoinTokens of type BootstrapToken, which are Secrets in the namespace kube-system.",
			"permissions.yaml") + addingArgument("--bootstrap-tokens"),
		"components/cluster-profiles/permissions.yaml": documents(profiles),
		"components/cluster-profiles/kustomization.yaml": component(
			"The hub exports members as ClusterProfiles and decisions as PlacementDecisions of SIG Multicluster.",
			"permissions.yaml") + addingArgument("--cluster-profiles"),

		"components/cluster-api/permissions.yaml": documents(clusterAPI),
		"components/cluster-api/kustomization.yaml": component(
			"What a hub with --cluster-api-namespaces needs. Bind muster-cluster-api-source in each of the namespaces.",
			"permissions.yaml"),

		"components/select-anything/role.yaml": documents([]any{selectAnythingRole()}),
		"components/monitoring/service.yaml": documents([]any{
			object{"apiVersion": "v1", "kind": "Service", "metadata": monitor, "spec": object{
				"clusterIP": "None", "selector": object{"app.kubernetes.io/name": string(hub)},
				"ports": []any{object{"name": "metrics", "port": metricsPort, "targetPort": "metrics"}},
			}},
			object{"apiVersion": "monitoring.coreos.com/v1", "kind": "ServiceMonitor", "metadata": monitor, "spec": object{
				"selector":  object{"matchLabels": object{"app.kubernetes.io/name": string(hub)}},
				"endpoints": []any{object{"port": "metrics"}},
			}},
		}),

		"base/kustomization.yaml": kustomization("A complete hub: membership, placements, WorkSets and add-ons. The "+
			"program installs the definitions.",
			"account.yaml", "permissions.yaml", "users.yaml", "deployment.yaml", "availability.yaml", "networkpolicy.yaml",
			"flowcontrol.yaml") +
			"images:\n- name: muster-hub\n  newName: muster-hub # the image of your hub program\n  newTag: latest\n",
		"components/select-anything/kustomization.yaml": component(
			"WorkSets may select objects of any kind on the hub, Secrets included.", "role.yaml"),
		"components/users-place/kustomization.yaml": component(
			"Users with the role edit in a namespace may place on every member, with the permissions of its agent.",
			"role.yaml"),
		"components/monitoring/kustomization.yaml": component(
			"A Service for the metrics, and a ServiceMonitor of the Prometheus Operator.", "service.yaml"),
	}
	return text, nil
}

func component(what string, resources ...string) string {
	return "# " + what + "\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources:\n- " +
		strings.Join(resources, "\n- ") + "\n"
}

// rolesOf returns the roles that packages declare, each bound to the account.
func (p program) rolesOf(packages []string) (out []any, err error) {
	for _, name := range packages {
		roles, err := readRoles(name + "/rbac/role.yaml")
		if err != nil {
			return nil, err
		}
		cluster, local := apart(roles)
		for _, r := range local {
			if r.Namespace == "" {
				return nil, fmt.Errorf("%s/rbac/role.yaml: Role %s: %w", name, r.Name, errors.New("metadata.namespace is required"))
			}
		}
		out = append(out, p.bindCluster(cluster)...)
		out = append(out, p.bind(local)...)
	}
	return out, nil
}

// addingArgument returns the patch of a component that adds an argument to the program.
func addingArgument(argument string) string {
	return `patches:
- target: {kind: Deployment, name: muster-hub}
  patch: |
    - {op: add, path: /spec/template/spec/containers/0/args/-, value: ` + argument + `}
`
}

// definitionsAndSelection returns the permissions that no package declares. The first part permits the installation of
// definitions and policies. The hub changes its own definitions and policies only. RBAC cannot restrict the names of
// objects that are created. The second part permits the selection by WorkSets, and is empty until a ClusterRole has the
// label.
func definitionsAndSelection() ([]role, error) {
	definitions, policies, err := installedNames()
	if err != nil {
		return nil, err
	}
	rules := func(group string, names []string, resources ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: resources, Verbs: []string{"create"}},
			{APIGroups: []string{group}, Resources: resources, ResourceNames: names, Verbs: []string{"get", "patch"}},
		}
	}
	return []role{
		{rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "muster-hub-definitions"}, Rules: append(
			rules("apiextensions.k8s.io", definitions, "customresourcedefinitions"),
			rules("admissionregistration.k8s.io", policies, "validatingadmissionpolicies",
				"validatingadmissionpolicybindings")...,
		)}},
		{rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "muster-hub-selection"},
			AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{selectionLabel: "true"}}},
			},
		}},
	}, nil
}

// installedNames returns the names of the definitions and of the policies that assembly installs on a hub, sorted. A
// policy and its binding have the same name.
func installedNames() (definitions, policies []string, _ error) {
	for _, files := range []fs.FS{
		membershipcrds.Files, workcrds.Hub, placementcrds.Files, addoncrds.Files, tenancycrds.Files,
		membershipcrds.Policies(), tenancycrds.Policies(),
	} {
		objects, err := crdinstall.Read(files)
		if err != nil {
			return nil, nil, err
		}
		for _, o := range objects {
			if o.GetKind() == "CustomResourceDefinition" {
				definitions = append(definitions, o.GetName())
			} else {
				policies = append(policies, o.GetName())
			}
		}
	}
	slices.Sort(definitions)
	slices.Sort(policies)
	return definitions, slices.Compact(policies), nil
}

// userRole returns a ClusterRole that adds the kinds of users to a role of Kubernetes, such as view.
func userRole(to string, kinds []rbacv1.PolicyRule) object {
	meta := hub.metaOf("muster-"+to, "")
	meta["labels"].(object)["rbac.authorization.k8s.io/aggregate-to-"+to] = "true"
	return object{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole", "metadata": meta,
		"rules": kinds}
}

func viewRole() object {
	read := []string{"get", "list", "watch"}
	return userRole("view", []rbacv1.PolicyRule{
		{APIGroups: []string{"placement.muster.dev"}, Verbs: read,
			Resources: []string{"placementdecisions", "placementevictions", "placements", "worksetrevisions", "worksets"}},
		{APIGroups: []string{"membership.muster.dev"}, Verbs: read, Resources: []string{"memberclusters"}},
		{APIGroups: []string{"tenancy.muster.dev"}, Verbs: read, Resources: []string{"clustersetbindings", "clustersets",
			"selectiongrants"}},
		{APIGroups: []string{"addon.muster.dev"}, Verbs: read, Resources: []string{"addonconfigs", "addons", "memberaddons"}},
	})
}

func editRole() object {
	return userRole("edit", []rbacv1.PolicyRule{{
		APIGroups: []string{"placement.muster.dev"}, Resources: []string{"placementevictions", "placements", "worksets"},
		Verbs: []string{"create", "delete", "patch", "update"},
	}})
}

// platformRole returns the ClusterRole of platform teams. It is not part of view, edit or admin, because its users run
// objects on every cluster, and read all objects that WorkSets may select. No manifest binds it.
func platformRole() object {
	read, write := []string{"get", "list", "watch"}, []string{"create", "delete", "patch", "update"}
	return object{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole",
		"metadata": hub.metaOf("muster-platform", ""),
		"rules": []rbacv1.PolicyRule{
			{APIGroups: []string{"placement.muster.dev"}, Verbs: append(write, read...),
				Resources: []string{"clusterplacements", "clusterworksets", "placementevictions"}},
			{APIGroups: []string{"placement.muster.dev"}, Verbs: read, Resources: []string{"placementdecisions"}},
			{APIGroups: []string{"membership.muster.dev"}, Verbs: read, Resources: []string{"memberclusters"}},
		},
	}
}

// selectAnythingRole returns the ClusterRole with which WorkSets select objects of any kind.
func selectAnythingRole() object {
	meta := hub.metaOf("muster-hub-select-anything", "")
	meta["labels"].(object)[selectionLabel] = "true"
	return object{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole", "metadata": meta,
		"rules": []rbacv1.PolicyRule{{
			APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{"get", "list",
				"watch"},
		}},
	}
}

const metricsPort = 8080

func hubDeployment() object {
	selector := object{"app.kubernetes.io/name": string(hub)}
	container := object{
		"name": "hub", "image": string(hub),
		"args": []string{"--leader-elect", "--health-probe-bind-address=:8081", "--metrics-bind-address=:8080"},
		"env": []any{object{
			"name": "POD_NAMESPACE", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.namespace"}},
		}},
		"ports": []any{
			object{"name": "probes", "containerPort": probePort}, object{"name": "metrics", "containerPort": metricsPort},
		},
		"livenessProbe":  probe("/healthz"),
		"readinessProbe": probe("/readyz"),
		"resources":      object{"requests": object{"cpu": "100m", "memory": "128Mi"}, "limits": object{"memory": "1Gi"}},
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": object{"drop": []any{"ALL"}},
		},
	}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": hub.metaOf(string(hub), namespace),
		"spec": object{
			"replicas": 2, // One is the leader, and the other takes over within seconds.
			"selector": object{"matchLabels": selector},
			"template": object{"metadata": object{"labels": hub.labels()}, "spec": object{
				"serviceAccountName": string(hub),
				"securityContext":    object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}},
				"containers":         []any{container},
				"topologySpreadConstraints": []any{object{
					"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
					"labelSelector": object{"matchLabels": selector},
				}},
			}},
		},
	}
}

func disruptionBudget() object {
	return object{
		"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": hub.metaOf(string(hub), namespace),
		"spec": object{"minAvailable": 1, "selector": object{"matchLabels": object{"app.kubernetes.io/name": string(hub)}}},
	}
}

// networkPolicy returns a NetworkPolicy that allows probes and scrapes. Egress stays open, because the addresses of the
// API server and of members are unknown.
func networkPolicy() object {
	return object{
		"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": hub.metaOf(string(hub), namespace),
		"spec": object{
			"podSelector": object{"matchLabels": object{"app.kubernetes.io/name": string(hub)}},
			"policyTypes": []any{"Ingress"},
			"ingress":     []any{object{"ports": []any{object{"port": probePort}, object{"port": metricsPort}}}},
		},
	}
}
