package main

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// agent is the program that runs on a member, or on behalf of one.
const agent program = "muster-agent"

const (
	// worksLabel is a label of ClusterRoles that permit kinds of objects in Works.
	worksLabel = "work.muster.dev/aggregate-to-agent"
)

// agentFiles returns the content of the folder agent, by path.
func agentFiles() (map[string]string, error) {
	membership, err := readRoles("membership/agent/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	works, err := readRoles("work/agent/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	definitions, err := agentDefinitions()
	if err != nil {
		return nil, err
	}
	cluster, local := apart(membership)
	workCluster, workLocal := apart(works)
	if len(workLocal) > 0 {
		return nil, fmt.Errorf("work/agent/rbac/role.yaml declares a Role, and no file of deploy contains it")
	}
	text := map[string]string{
		// The ServiceAccount and its permissions on the member: those for the whole cluster, and none for a single namespace.
		"base/account.yaml":    documents(agent.accountObjects()),
		"base/membership.yaml": documents(agent.bindCluster(cluster)),
		// The permissions in the cluster where the agent runs.
		"home/home.yaml": documents(append(agent.bind(local), agent.bind(agent.leaderElection())...)),
		// The permissions and definitions for applying Works.
		"works/works.yaml":          documents(append(agent.bindCluster(workCluster), agent.bindCluster(grants())...)),
		"works/definition.yaml":     definitions["appliedworks.yaml"],
		"works/memberpolicies.yaml": definitions["memberpolicies.yaml"],

		"overlays/membership/deployment.yaml":     documents([]any{deployment(inside)}),
		"overlays/singleton/deployment.yaml":      documents([]any{deployment(inside, "--works")}),
		"overlays/hosted/hosting/deployment.yaml": documents([]any{deployment(outside, "--works")}),
		"overlays/hosted/hosting/account.yaml":    documents(agent.accountObjects()),

		"components/apply-anything/binding.yaml": documents([]any{agent.clusterBinding("muster-agent-apply-anything",
			"cluster-admin")}),
	}
	for folder, kustomization := range kustomizations() {
		text[folder+"/kustomization.yaml"] = kustomization
	}
	return text, nil
}

// grants returns the permissions for the objects in Works. It is empty until a ClusterRole has the label.
func grants() []role {
	return []role{{rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: string(agent) + "-works"},
		AggregationRule: &rbacv1.AggregationRule{
			ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{worksLabel: "true"}}},
		},
	}}}
}

// place is the cluster in which an agent runs.
type place int

const (
	inside  place = iota // in its member
	outside              // in another cluster, with a kubeconfig of its member
)

const memberFolder = "/etc/muster/member"

func deployment(where place, args ...string) object {
	container := object{
		"name": "agent", "image": string(agent),
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
		"serviceAccountName": string(agent),
		"securityContext":    object{"runAsNonRoot": true, "seccompProfile": object{"type": "RuntimeDefault"}},
		"containers":         []any{container},
		"tolerations": []any{ // a member stays in the fleet while all of its nodes are cordoned for maintenance
			object{"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"},
		},
	}
	if where == outside {
		container["args"] = append(container["args"].([]string), "--member-kubeconfig="+memberFolder+"/value")
		container["volumeMounts"] = []any{object{"name": "member", "mountPath": memberFolder, "readOnly": true}}
		pod["volumes"] = []any{object{"name": "member", "secret": object{"secretName": "muster-member-kubeconfig"}}}
	}
	return object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": agent.metaOf(string(agent), namespace),
		"spec": object{
			"replicas": 1, // more are possible, because of leader election
			"selector": object{"matchLabels": object{"app.kubernetes.io/name": string(agent)}},
			"template": object{"metadata": object{"labels": agent.labels()}, "spec": pod},
		},
	}
}
