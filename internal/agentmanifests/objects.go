package main

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	name      = "muster-agent"
	namespace = "muster-system"
	// worksLabel is on ClusterRoles that say what Works may contain.
	worksLabel = "work.muster.dev/aggregate-to-agent"
	probePort  = 8081
)

// object is one, as it is written. Typed ones would be written with a status.
type object = map[string]any

func labels() object {
	return object{"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "muster"}
}

func metaOf(name, namespace string) object {
	out := object{"name": name, "labels": labels()}
	if namespace != "" {
		out["namespace"] = namespace
	}
	return out
}

func accountObjects() []any {
	restricted := metaOf(namespace, "")
	restricted["labels"].(object)["pod-security.kubernetes.io/enforce"] = "restricted"
	return []any{
		object{"apiVersion": "v1", "kind": "Namespace", "metadata": restricted},
		object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metaOf(name, namespace)},
	}
}

// bindCluster is ClusterRoles, each bound to the account.
func bindCluster(roles []role) (out []any) {
	for _, r := range roles {
		made := object{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRole", "metadata": metaOf(r.Name, "")}
		if r.AggregationRule != nil {
			made["aggregationRule"] = r.AggregationRule // its rules are another controller's
		} else {
			made["rules"] = r.Rules
		}
		out = append(out, made, clusterBinding(r.Name, r.Name))
	}
	return out
}

func clusterBinding(name, role string) object {
	return object{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "ClusterRoleBinding", "metadata": metaOf(name, ""),
		"roleRef":  object{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": subjects(),
	}
}

// bind is Roles, each bound to the account.
func bind(roles []role) (out []any) {
	for _, r := range roles {
		out = append(out,
			object{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "Role", "metadata": metaOf(r.Name, namespace), "rules": r.Rules},
			object{
				"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": "RoleBinding", "metadata": metaOf(r.Name, namespace),
				"roleRef":  object{"apiGroup": rbacv1.GroupName, "kind": "Role", "name": r.Name},
				"subjects": subjects(),
			})
	}
	return out
}

func subjects() []any {
	return []any{object{"kind": rbacv1.ServiceAccountKind, "name": name, "namespace": namespace}}
}

// leaderElection is what controller-runtime needs for it: a Lease, and Events of the old kind.
func leaderElection() []role {
	return []role{{rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-leader-election"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{name}, Verbs: []string{"get", "update"}},
			{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		},
	}}}
}

// grants is what Works may contain: nothing, until somebody labels a ClusterRole.
func grants() []role {
	return []role{{rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-works"},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{worksLabel: "true"}}},
		},
	}}}
}

// place is where an agent runs.
type place int

const (
	inside  place = iota // in its member
	outside              // in another cluster, with a kubeconfig of its member
)

const memberFolder = "/etc/muster/member"

func deployment(where place, args ...string) object {
	container := object{
		"name": "agent", "image": name,
		"args": append(args, "--health-probe-bind-address=:8081"),
		"env": []any{object{
			"name": "POD_NAMESPACE", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.namespace"}},
		}},
		"ports":          []any{object{"name": "probes", "containerPort": probePort}},
		"livenessProbe":  probe("/healthz"),
		"readinessProbe": probe("/readyz"),
		"resources": object{
			"requests": object{"cpu": "50m", "memory": "64Mi"},
			"limits":   object{"memory": "512Mi"},
		},
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
			"capabilities": object{"drop": []any{"ALL"}},
		},
	}
	pod := object{
		"serviceAccountName": name,
		"securityContext":    object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers":         []any{container},
		"tolerations": []any{ // a cluster is to stay in the fleet when all of its nodes are cordoned for maintenance
			object{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
		},
	}
	if where == outside {
		container["args"] = append(container["args"].([]string), "--member-kubeconfig="+memberFolder+"/value")
		container["volumeMounts"] = []any{object{"name": "member", "mountPath": memberFolder, "readOnly": true}}
		pod["volumes"] = []any{object{"name": "member", "secret": object{"secretName": "muster-member-kubeconfig"}}}
	}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metaOf(name, namespace),
		"spec": object{
			"replicas": 1, // leader election lets there be more
			"selector": object{"matchLabels": object{"app.kubernetes.io/name": name}},
			"template": object{"metadata": object{"labels": labels()}, "spec": pod},
		},
	}
}

func probe(path string) object {
	return object{"httpGet": object{"path": path, "port": "probes"}}
}
