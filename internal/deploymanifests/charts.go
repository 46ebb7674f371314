package main

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/muster-sdk/muster/membership"
	tenancycrds "github.com/muster-sdk/muster/tenancy/crds"
	workcrds "github.com/muster-sdk/muster/work/crds"
)

// hubTemplates returns the templates of the chart muster-hub that contain permissions, by path.
func hubTemplates() (map[string]string, error) {
	permissions, err := hub.rolesOf(hubRoles)
	if err != nil {
		return nil, err
	}
	definitions, err := definitionsAndSelection()
	if err != nil {
		return nil, err
	}
	permissions = append(permissions, hub.bindCluster(definitions)...)
	// The namespace contains the identity of the hub and all JoinTokens: both outlive the release. A namespace that exists
	// already does not belong to the release.
	registration := hub.metaOf(membership.RegistrationNamespace, "")
	keep := object{"helm.sh/resource-policy": "keep"}
	registration["annotations"] = keep
	connections := connectionNamespace()
	connections["metadata"].(object)["annotations"] = keep
	push, err := hub.rolesOf(pushRoles)
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
	owns := func(namespace string) string {
		return `include "muster-hub.ownsNamespace" (list . "` + namespace + `")`
	}
	return map[string]string{
		"account.yaml": hub.template("", hub.accountObjects()[1:]),
		"registration.yaml": hub.template(owns(membership.RegistrationNamespace), []any{
			object{"apiVersion": "v1", "kind": "Namespace", "metadata": registration},
		}),
		"permissions.yaml":     hub.template("", permissions),
		"leader-election.yaml": hub.template(".Values.leaderElection.enabled", hub.bind(hub.leaderElection())),
		"flow-control.yaml":    hub.template(".Values.flowControl.enabled", flowControl()),
		"connections.yaml": hub.template("and .Values.push.enabled ("+owns(membership.ConnectionNamespace)+")",
			[]any{connections}),
		"push.yaml":             hub.template(".Values.push.enabled", push),
		"bootstrap-tokens.yaml": hub.template(".Values.bootstrapTokens.enabled", bootstrapTokens),
		"cluster-profiles.yaml": hub.template(".Values.clusterProfiles.enabled", profiles),
		"cluster-api.yaml":      hub.template(".Values.clusterAPI.namespaces", clusterAPI),
		"users.yaml":            hub.template("", []any{viewRole(), platformRole()}),
		"users-place.yaml":      hub.template(".Values.usersPlace", []any{editRole()}),
		"select-anything.yaml":  hub.template(".Values.selectAnything", []any{selectAnythingRole()}),
	}, nil
}

// agentTemplates returns the templates of the chart muster-agent that contain permissions, by path.
func agentTemplates() (map[string]string, error) {
	membership, err := readRoles("membership/agent/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	works, err := readRoles("work/agent/rbac/role.yaml")
	if err != nil {
		return nil, err
	}
	cluster, local := apart(membership)
	workCluster, _ := apart(works)
	home := append(agent.bind(local), agent.bind(agent.leaderElection())...)
	return map[string]string{
		"account.yaml":    agent.template("", agent.accountObjects()[1:]),
		"membership.yaml": agent.template("", agent.bindCluster(cluster)),
		"home.yaml":       namesOfHub(agent.template("", home)),
		"works.yaml": agent.template(".Values.works",
			append(agent.bindCluster(workCluster), agent.bindCluster(grants())...)),
		"apply-anything.yaml": agent.template("and .Values.works .Values.applyAnything",
			[]any{agent.clusterBinding("muster-agent-apply-anything", "cluster-admin")}),
	}, nil
}

// agentDefinitions returns the folder crds of the chart muster-agent. Helm installs definitions from this folder and
// never deletes them. The deletion of the definition of AppliedWork would delete the inventories of all Works. The
// deletion of the definition of MemberPolicy would delete the policies of the member's administrator.
func agentDefinitions() (map[string]string, error) {
	works, err := fs.ReadFile(workcrds.Member, "work.muster.dev_appliedworks.yaml")
	if err != nil {
		return nil, err
	}
	policies, err := fs.ReadFile(tenancycrds.Member, "tenancy.muster.dev_memberpolicies.yaml")
	if err != nil {
		return nil, err
	}
	text := func(file []byte) string { return "---\n" + strings.TrimPrefix(string(file), "---\n") }
	return map[string]string{"appliedworks.yaml": text(works), "memberpolicies.yaml": text(policies)}, nil
}

// template returns a template of the chart of a program. The objects are in the namespace of the release and have the
// labels of the chart. A template with a condition is empty unless the condition is true.
func (p program) template(condition string, objects []any) string {
	text := strings.NewReplacer(
		"namespace: "+namespace+"\n", "namespace: {{ .Release.Namespace | quote }}\n",
		"    app.kubernetes.io/part-of: muster\n",
		fmt.Sprintf("    app.kubernetes.io/part-of: muster\n    {{- include \"%s.labels\" . | nindent 4 }}\n", p),
	).Replace(documents(objects))
	if condition != "" {
		text = "{{- if " + condition + " }}\n" + text + "{{- end }}\n"
	}
	return "{{- /* " + notice + " */ -}}\n" + text
}

// namesOfHub adds the name of the hub to the names of the Secrets and of the Lease that the agent may access.
func namesOfHub(template string) string {
	const names = "  resourceNames:\n  - "
	for _, name := range []string{"muster-agent", "muster-bootstrap"} {
		template = strings.ReplaceAll(template, names+name+"\n", names+name+"{{ include \"muster-agent.suffix\" . }}\n")
	}
	return template
}
