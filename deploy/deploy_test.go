package deploy_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/install"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var east = install.Target{Cluster: &v1alpha1.MemberCluster{
	ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1alpha1.MemberClusterSpec{ClusterID: "0a1b"},
}}

// The objects that a hub installs on a member.
func ExampleAgent() {
	agent, err := deploy.Agent(deploy.AgentOptions{Image: "registry.example.com/agent:v1", Layout: deploy.Membership})
	if err != nil {
		panic(err)
	}
	objects, err := agent.Objects(east)
	if err != nil {
		panic(err)
	}
	for _, object := range objects {
		fmt.Println(object.GetObjectKind().GroupVersionKind().Kind, object.GetName())
	}
	// Output:
	// Namespace muster-system
	// ServiceAccount muster-agent
	// ClusterRole muster-agent-member
	// ClusterRoleBinding muster-agent-member
	// Role muster-agent-member
	// RoleBinding muster-agent-member
	// Role muster-agent-leader-election
	// RoleBinding muster-agent-leader-election
	// Deployment muster-agent
}

func TestAgentOptions(t *testing.T) {
	works := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
	for _, test := range []struct {
		reason string
		o      deploy.AgentOptions
		field  string // field of the error; empty: no error
	}{
		{"no image", deploy.AgentOptions{}, "Image"},
		{"an image with a space", deploy.AgentOptions{Image: "a b"}, "Image"},
		{"the layout of an agent outside of its member", deploy.AgentOptions{Image: "a", Layout: "hosted"},
			"Layout"},
		{"a path as layout", deploy.AgentOptions{Image: "a", Layout: "../base"}, "Layout"},
		{"permissions for Works with a layout without Works", deploy.AgentOptions{Image: "a", Layout: deploy.Membership,
			Works: works},
			"Works"},
		{"the default layout with permissions for Works", deploy.AgentOptions{Image: "a", Works: works}, ""},
	} {
		_, err := deploy.Agent(test.o)
		if test.field == "" {
			require.NoError(t, err, test.reason)
			continue
		}
		var invalid *membership.InvalidError
		require.ErrorAs(t, err, &invalid, test.reason)
		require.Equal(t, test.field, invalid.Field, test.reason)
	}
}

// TestRevision_ChangesWithOptions checks that the revision of an agent changes only if its objects change.
func TestRevision_ChangesWithOptions(t *testing.T) {
	revision := func(o deploy.AgentOptions) string {
		agent, err := deploy.Agent(o)
		require.NoError(t, err)
		return agent.Revision()
	}
	base := revision(deploy.AgentOptions{Image: "a"})
	require.Equal(t, base, revision(deploy.AgentOptions{Image: "a", Layout: deploy.Singleton}))
	require.NotEqual(t, base, revision(deploy.AgentOptions{Image: "b"}))
	require.NotEqual(t, base, revision(deploy.AgentOptions{Image: "a", Layout: deploy.Membership}))
	require.NotEqual(t, base,
		revision(deploy.AgentOptions{Image: "a", Works: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}}))
}

// TestDeployment_ArgumentsAndSecurity checks that the Deployment has the image and the arguments of the member, and
// that the restricted Pod security standard allows its Pods.
func TestDeployment_ArgumentsAndSecurity(t *testing.T) {
	agent, err := deploy.Agent(deploy.AgentOptions{Image: "registry.example.com/agent:v1"})
	require.NoError(t, err)
	objects, err := agent.Objects(east)
	require.NoError(t, err)
	deployment := &appsv1.Deployment{}
	for _, object := range objects {
		if u := object.(*unstructured.Unstructured); u.GetKind() == "Deployment" {
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, deployment, true))
		}
	}
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	require.Equal(t, "registry.example.com/agent:v1", container.Image)
	require.Contains(t, container.Args, "--cluster-id=0a1b")
	require.Contains(t, container.Args, "--works")
	require.True(t, *pod.SecurityContext.RunAsNonRoot)
	require.False(t, *container.SecurityContext.AllowPrivilegeEscalation)
	require.NotNil(t, container.LivenessProbe)
	require.NotNil(t, container.ReadinessProbe)
	again, err := agent.Objects(east)
	require.NoError(t, err)
	require.Equal(t, objects, again, "a second call returns equal objects")
}

// TestRoles_MatchMarkers checks that the roles of the manifests are those that are generated from the markers.
func TestRoles_MatchMarkers(t *testing.T) {
	objects, err := deploy.Objects("singleton")
	require.NoError(t, err)
	for kind, file := range map[string]string{"muster-agent-member": "../membership/agent/rbac/role.yaml",
		"muster-work-agent-member": "../work/agent/rbac/role.yaml"} {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		declared := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal(data, &declared.Object))
		found := false
		for _, object := range objects {
			if object.GetKind() == "ClusterRole" && object.GetName() == kind {
				found = true
				require.Equal(t, declared.Object["rules"], object.Object["rules"])
			}
		}
		require.True(t, found, kind)
	}
	_, err = deploy.Objects("nowhere")
	require.ErrorContains(t, err, `overlay "nowhere"`)
}

// TestRoles_IndexesOfRules checks the indexes of rules that the documented patches for several hubs refer to.
func TestRoles_IndexesOfRules(t *testing.T) {
	objects, err := deploy.Objects("singleton")
	require.NoError(t, err)
	names := map[string][]string{}
	for _, object := range objects {
		if object.GetKind() != "Role" {
			continue
		}
		var role rbacv1.Role
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role))
		for i, rule := range role.Rules {
			names[fmt.Sprintf("%s %d %s", role.Name, i, rule.Resources[0])] = rule.ResourceNames
		}
	}
	require.Equal(t, []string{"muster-agent"}, names["muster-agent-member 1 secrets"])
	require.Equal(t, []string{"muster-bootstrap"}, names["muster-agent-member 2 secrets"])
	require.Equal(t, []string{"muster-agent"}, names["muster-agent-leader-election 1 leases"])
}
