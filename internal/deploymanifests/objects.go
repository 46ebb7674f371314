package main

import (
	"cmp"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	namespace = "muster-system"
	probePort = 8081
)

// object is an object in the form of YAML. A typed object would be written with an empty status.
type object = map[string]any

// program is the name of a program, and of its ServiceAccount and Deployment.
type program string

func (p program) labels() object {
	return object{"app.kubernetes.io/name": string(p), "app.kubernetes.io/part-of": "muster"}
}

func (p program) metaOf(name, namespace string) object {
	out := object{"name": name, "labels": p.labels()}
	if namespace != "" {
		out["namespace"] = namespace
	}
	return out
}

func (p program) accountObjects() []any {
	restricted := p.metaOf(namespace, "")
	restricted["labels"].(object)["pod-security.kubernetes.io/enforce"] = "restricted"
	return []any{
		object{"apiVersion": "v1", "kind": "Namespace", "metadata": restricted},
		object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": p.metaOf(string(p), namespace)},
	}
}

// bindCluster returns ClusterRoles, each bound to the account.
func (p program) bindCluster(roles []role) (out []any) {
	for _, r := range roles {
		made := object{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole", "metadata": p.metaOf(r.Name,
			"")}
		if r.AggregationRule != nil {
			made["aggregationRule"] = r.AggregationRule // another controller writes its rules
		} else {
			made["rules"] = r.Rules
		}
		out = append(out, made, p.clusterBinding(r.Name, r.Name))
	}
	return out
}

func (p program) clusterBinding(name, role string) object {
	return object{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRoleBinding", "metadata": p.metaOf(name, ""),
		"roleRef":  object{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": p.subjects(),
	}
}

// bind returns Roles, each bound to the account.
func (p program) bind(roles []role) (out []any) {
	for _, r := range roles {
		namespace := cmp.Or(r.Namespace, namespace)
		out = append(out,
			object{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "Role", "metadata": p.metaOf(r.Name, namespace),
				"rules": r.Rules},
			object{
				"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding", "metadata": p.metaOf(r.Name, namespace),
				"roleRef":  object{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": r.Name},
				"subjects": p.subjects(),
			})
	}
	return out
}

func (p program) subjects() []any {
	return []any{object{"kind": rbacv1.ServiceAccountKind, "name": string(p), "namespace": namespace}}
}

// leaderElection returns the permissions that controller-runtime needs for leader election: on a Lease, and on Events
// of the core API.
func (p program) leaderElection() []role {
	return []role{{rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: string(p) + "-leader-election"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{string(p)},
				Verbs: []string{"get", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}}}
}

func probe(path string) object {
	return object{"httpGet": object{"path": path, "port": "probes"}}
}
