package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// grant grants rules to a user on a cluster: in one namespace or, if that is empty, cluster-wide.
func grant(t *testing.T, c client.Client, user, namespace string, rules []rbacv1.PolicyRule) {
	t.Helper()
	name := "test:" + strings.ReplaceAll(user, ":", "-") + namespace
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	require.NoError(t, c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}))
	if namespace == "" {
		require.NoError(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			Subjects: []rbacv1.Subject{subject}, RoleRef: role}))
		return
	}
	require.NoError(t, c.Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
		Name: "test"}, Subjects: []rbacv1.Subject{subject}, RoleRef: role}))
}

// grantCluster grants rules to a user cluster-wide.
func grantCluster(t *testing.T, c client.Client, name, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	subject := rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
	role := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	require.NoError(t, c.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}))
	require.NoError(t, c.Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Subjects: []rbacv1.Subject{subject}, RoleRef: role}))
}

// fileRules returns the rules in the folder rbac.
func fileRules(t *testing.T) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile("rbac/role.yaml")
	require.NoError(t, err)
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.UnmarshalStrict(text, &role))
	return role.Rules
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// allOf are the verbs that an agent needs on the objects that it applies.
var allOf = []string{"get", "list", "watch", "create", "patch", "delete"}

// TestLeastPermissions runs an agent that has only the documented permissions.
func TestLeastPermissions(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p, user := plane.ForTest(t), "agent-"+f.name
	grant(t, f.member, user, "", append(fileRules(t), rule("", "configmaps", allOf...)))
	grant(t, f.Client, user, f.options.Namespace, agent.HubRules())
	f.options.Hub, f.options.Member = p.User(user), p.User(user)
	f.start()

	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	f.ready(work)
	f.patch(f.read("ConfigMap", "a"), "data: {k: edited}")
	f.Eventually("ConfigMap a has k: v", func() error { return equal("v", f.data("a", "k")) })
	more := f.work("more", "{"+manifests(secret("s"), configMap("b", "{k: v}"))+"}")
	f.awaitStatus(more, "1/2 Applied=False/Forbidden Available=False/NotApplied Progressing=False/AsDesired "+
		"Degraded=True/Forbidden\n"+
		"Secret NS/s: The member denied the request: read the metadata of the object: "+
		"secrets \"s\" is forbidden: User \"agent-NS\" cannot "+
		"get resource \"secrets\" in API group \"\" in the namespace \"NS\"\n"+
		"Secret NS/s: Applied=False/Forbidden Available=False/NotApplied\nConfigMap NS/b: Applied=True/Applied "+
		"Available=True/Ready")
	f.delete(work)
	f.gone(work)
	f.delete(more)
	f.gone(more)
	require.Nil(t, f.read("ConfigMap", "a"))

	asAgent := newClient(t, f.options.Hub)
	for action, err := range map[string]error{
		"list Works of another member":     asAgent.List(t.Context(), &v1alpha1.WorkList{}, client.InNamespace("member-w1")),
		"list Works of all members":        asAgent.List(t.Context(), &v1alpha1.WorkList{}),
		"create a Work for its own member": asAgent.Create(t.Context(), f.spec("own", "{manifests: []}")),
		"update the spec of its Work":      asAgent.Update(t.Context(), work),
	} {
		require.ErrorContains(t, err, "is forbidden", action)
	}
}

// TestExecutor checks Works that are applied as a ServiceAccount, with exactly its permissions.
func TestExecutor(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	p, user := plane.ForTest(t), "agent-"+f.name
	// The agent lists and watches; all other requests are made by impersonation.
	grant(t, f.member, user, "", append(fileRules(t), rule("", "configmaps", "list", "watch"), rule("", "serviceaccounts",
		"impersonate")))
	grant(t, f.Client, user, f.options.Namespace, agent.HubRules())
	f.options.Hub, f.options.Member = p.User(user), p.User(user)
	f.options.Executor = agent.RequireExecutor(agent.DefaultExecutorPolicy)
	f.create(f.member, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: shop, namespace: NS}}")
	grant(t, f.member, "system:serviceaccount:"+f.name+":shop", f.name,
		[]rbacv1.PolicyRule{rule("", "configmaps", "get", "create", "patch", "delete")})
	f.start()
	const shop = ", executor: {namespace: NS, name: shop}}"

	t.Run("permitted objects", func(t *testing.T) {
		work := f.work("may", "{"+manifests(configMap("a", "{k: v}"))+shop)
		f.ready(work)
		require.Equal(t, "shop", f.applied(work).Spec.Executor.Name)
		f.patch(f.read("ConfigMap", "a"), "data: {k: edited}")
		f.Eventually("ConfigMap a has k: v", func() error { return equal("v", f.data("a", "k")) })
		f.delete(work)
		f.gone(work)
		require.Nil(t, f.read("ConfigMap", "a"))
	})
	t.Run("object in another namespace", func(t *testing.T) {
		work := f.work("not", "{"+manifests(configMap("b", "{k: v}"),
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}}")+shop)
		f.Eventually("the missing permission is reported", func() error {
			require.NoError(t, f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work))
			if !strings.Contains(work.Status.Message, `User "system:serviceaccount:`+f.name+
				`:shop" cannot get resource "configmaps" in API group "" in the namespace "default"`) {
				return fmt.Errorf("the message is %q", work.Status.Message)
			}
			return equal("v", f.data("b", "k"))
		})
		f.delete(work)
		f.gone(work)
	})
	for name, test := range map[string]struct{ executor, want string }{
		"ServiceAccount of kube-system": {"executor: {namespace: kube-system, name: namespace-controller}",
			"spec.executor.namespace: must not be kube-system: ServiceAccounts of this namespace have elevated permissions"},
		"ServiceAccount of the agent": {"executor: {namespace: muster-system, name: agent}",
			"spec.executor.namespace: must not be muster-system: ServiceAccounts of this namespace have elevated permissions"},
		"no executor": {"suspend: false", "spec.executor: is required by this member"},
	} {
		t.Run(name, func(t *testing.T) {
			work := f.work("escalates", "{"+manifests(configMap("c", "{k: v}"))+", "+test.executor+"}")
			f.awaitStatus(work, "0/1 Applied=False/AgentForbidden Available=False/NotApplied Progressing=False/AsDesired "+
				"Degraded=True/AgentForbidden\n"+
				"The member does not permit the Work: "+test.want+
				"\nConfigMap NS/c: Applied=False/AgentForbidden Available=False/NotApplied")
			require.Nil(t, f.read("ConfigMap", "c"))
			require.Nil(t, f.applied(work))
			f.delete(work)
			f.gone(work)
		})
	}
	text, err := json.Marshal(f.toMember.take())
	require.NoError(t, err)
	require.NotContains(t, string(text), "namespaces/default/", "no request to namespace default")
}
