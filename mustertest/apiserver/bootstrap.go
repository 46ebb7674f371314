package apiserver

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/muster-sdk/muster/mustertest/internal/store"
)

const bootstrapManager = "kube-apiserver"

// bootstrap creates the objects that a new cluster contains.
func (s *Server) bootstrap() error {
	for _, name := range []string{"default", "kube-node-lease", "kube-public", "kube-system"} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := s.put(store.Key{Resource: namespaces, Name: name}, namespace, bootstrapManager); err != nil {
			return err
		}
	}
	for _, role := range initialRoles() {
		if err := s.put(store.Key{Resource: clusterRoles, Name: role.Name}, role, bootstrapManager); err != nil {
			return err
		}
	}
	for _, initial := range []struct {
		role   string
		groups []string
	}{
		{"cluster-admin", []string{groupMasters}}, {"system:basic-user", []string{groupAuthenticated}},
		{"system:discovery", []string{groupAuthenticated}},
		{"system:public-info-viewer", []string{groupAuthenticated, groupUnauthenticated}},
	} {
		role, groups := initial.role, initial.groups
		b := &rbacv1.ClusterRoleBinding{
			ObjectMeta: initialMeta(role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		for _, group := range groups {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group})
		}
		if err := s.put(store.Key{Resource: clusterRoleBindings, Name: role}, b, bootstrapManager); err != nil {
			return err
		}
	}
	for _, about := range []struct {
		name        string
		value       int32
		description string
	}{
		{"system-cluster-critical", 2000000000, "Used for system critical pods that must run in the cluster, but can be " +
			"moved to another node if necessary."},
		{"system-node-critical", 2000001000, "Used for system critical pods that must not be moved from their current node."},
	} {
		class := &schedulingv1.PriorityClass{
			ObjectMeta: metav1.ObjectMeta{Name: about.name}, Value: about.value, Description: about.description,
			PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
		}
		key := store.Key{Resource: schema.GroupResource{Group: "scheduling.k8s.io", Resource: "priorityclasses"},
			Name: about.name}
		if err := s.put(key, class, bootstrapManager); err != nil {
			return err
		}
	}
	s.settle()
	return nil
}

func initialMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"},
		Annotations: map[string]string{"rbac.authorization.kubernetes.io/autoupdate": "true"},
	}
}

// initialRoles returns the ClusterRoles of Kubernetes that users bind. Those of system components are omitted.
func initialRoles() []*rbacv1.ClusterRole {
	read := []string{"get", "list", "watch"}
	write := []string{"create", "delete", "deletecollection", "patch", "update"}
	rule := func(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
	}
	paths := func(urls ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
	}
	core := []string{"configmaps", "endpoints", "events", "persistentvolumeclaims", "pods", "replicationcontrollers",
		"serviceaccounts", "services"}
	apps := []string{"controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"}
	workloads := func(verbs []string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{
			rule(verbs, "", core...), rule(verbs, "apps", apps...), rule(verbs, "batch", "cronjobs", "jobs"),
			rule(verbs, "autoscaling", "horizontalpodautoscalers"), rule(verbs, "networking.k8s.io", "ingresses",
				"networkpolicies"),
			rule(verbs, "policy", "poddisruptionbudgets"), rule(verbs, "discovery.k8s.io", "endpointslices"),
		}
	}
	role := func(name string, labels map[string]string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
		out := &rbacv1.ClusterRole{ObjectMeta: initialMeta(name), Rules: rules}
		maps.Copy(out.Labels, labels)
		return out
	}
	to := func(name string) string { return "rbac.authorization.k8s.io/aggregate-to-" + name }
	aggregate := func(name string, labels map[string]string) *rbacv1.ClusterRole {
		out := role(name, labels)
		out.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
			{MatchLabels: map[string]string{to(name): "true"}}}}
		return out
	}
	return []*rbacv1.ClusterRole{
		role("cluster-admin", nil, rule([]string{"*"}, "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"},
			NonResourceURLs: []string{"*"}}),
		role("system:discovery", nil, paths("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
			"/openapi/*", "/readyz", "/version", "/version/")),
		role("system:public-info-viewer", nil, paths("/healthz", "/livez", "/readyz", "/version", "/version/")),
		role("system:basic-user", nil, rule([]string{"create"}, "authorization.k8s.io", "selfsubjectaccessreviews",
			"selfsubjectrulesreviews"),
			rule([]string{"create"}, "authentication.k8s.io", "selfsubjectreviews")),
		aggregate("admin", nil), aggregate("edit", map[string]string{to("admin"): "true"}),
		aggregate("view", map[string]string{to("edit"): "true"}),
		role("system:aggregate-to-view", map[string]string{to("view"): "true"}, append(workloads(read),
			rule(read, "", "limitranges", "namespaces", "resourcequotas"))...),
		role("system:aggregate-to-edit", map[string]string{to("edit"): "true"}, append(workloads(write),
			rule(read, "", "secrets"), rule(write, "", "secrets"), rule([]string{"impersonate"}, "", "serviceaccounts"),
			rule([]string{"create"}, "", "serviceaccounts/token"),
			rule(append([]string{"get", "list", "watch"}, write...), "coordination.k8s.io", "leases"))...),
		role("system:aggregate-to-admin", map[string]string{to("admin"): "true"},
			rule(append([]string{"get", "list", "watch"}, write...), rbacv1.GroupName, "rolebindings", "roles"),
			rule([]string{"create"}, "authorization.k8s.io", "localsubjectaccessreviews")),
	}
}
