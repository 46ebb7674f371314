// Package permissionmatrix keeps docs/security.md in step with the permissions of every role and credential, and
// checks on a control plane that the API server grants these permissions and no others. It is a test and nothing else.
package permissionmatrix

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/deploy"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/hub"
	bootstrap "github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/mustertest"
	workagent "github.com/muster-sdk/muster/work/agent"
)

const root = "../.."

// The namespaces of the plane. Credentials of member a must not reach the namespace of member b.
const (
	connections = "muster-connections"
	programs    = "muster-system"
	memberA     = "member-a"
	memberB     = "member-b"
	tenant      = "shop"
	unrelated   = "unrelated"
)

var namespaces = []string{
	membership.RegistrationNamespace, connections, programs, metav1.NamespaceSystem, memberA, memberB, tenant, unrelated,
}

// clusterScope is the scope of permissions in the whole cluster.
const clusterScope = ""

// credential is a role, or a credential, of which the documentation has a table.
type credential struct {
	title, text string
	user        string
	groups      []string
	objects     []client.Object // roles and bindings that grant the permissions
}

// chapter is a chapter of the documentation.
type chapter struct {
	title, text string
	credentials []*credential
}

func serviceAccount(namespace, name string) (user string, groups []string) {
	return "system:serviceaccount:" + namespace + ":" + name, []string{
		"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated",
	}
}

func ofServiceAccount(namespace, name, title, text string, objects ...client.Object) *credential {
	c := &credential{title: title, text: text, objects: objects}
	c.user, c.groups = serviceAccount(namespace, name)
	return c
}

func ofUser(name, title, text string, objects ...client.Object) *credential {
	return &credential{title: title, text: text, user: name, groups: []string{"system:authenticated"}, objects: objects}
}

// bind returns a role and its binding for a user. With a namespace, the binding is a RoleBinding.
func bind(role client.Object, namespace, user string) []client.Object {
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.GetName()}
	if _, local := role.(*rbacv1.Role); local {
		ref.Kind = "Role"
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: strings.NewReplacer(":", "-", "/", "-").Replace(user) + "-" +
		role.GetName()}
	if namespace == "" {
		return []client.Object{role, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}}
	}
	return []client.Object{role, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}}
}

// chapters returns all roles and credentials.
func chapters(t *testing.T) []chapter {
	t.Helper()
	return []chapter{
		{"Credentials of members", "These credentials are on member clusters. They grant nothing outside of the " +
			"namespaces named here.", []*credential{
			bootstrapCredential(), agentCredential(), addonCredential(),
		}},
		{"Programs", "The permissions of the programs with the manifests in `deploy`.", []*credential{
			ofServiceAccount(programs, "muster-hub", "The hub", "The ServiceAccount of `deploy/hub/base`.", manifests(t,
				"hub")...),
			ofServiceAccount(programs, membership.AgentName, "The agent, on its member",
				"The ServiceAccount of `deploy/agent/overlays/singleton`. ClusterRoles with the label "+
					"`work.muster.dev/aggregate-to-agent` add what Works may contain.", manifests(t, "agent")...),
		}},
		{"Users", "ClusterRoles that add to the roles `view` and `edit` of Kubernetes, in a namespace where a user has them.",
			userCredentials(t)},
		{"Features of the hub", "A product that sets up single packages needs only their roles, in the folder `rbac` " +
			"of each package.",
			packageRoles(t)},
	}
}

func bootstrapCredential() *credential {
	c := ofUser("bootstrap", "Bootstrap credential of a JoinToken",
		"In the Secret of the JoinToken, and in the Secret `muster-bootstrap` on a member until it has joined.")
	c.objects = bind(bootstrap.BootstrapRole(), membership.RegistrationNamespace, c.user)
	return c
}

func agentCredential() *credential {
	c := ofUser("agent", "Credential of a member's agent",
		"In the Secret `muster-agent` on the member. The namespace is that of this one member.")
	c.objects = bind(hub.AgentRole(workagent.HubRules()...), memberA, c.user)
	return c
}

// addonCredential returns the credential of an add-on without additional rules, as package addon/internal/registration
// grants it.
func addonCredential() *credential {
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: memberA, Name: "addon-metrics"},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"metrics"},
			Verbs: []string{"get", "update", "patch"},
		}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: role.ObjectMeta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: memberA, Name: role.Name}},
	}
	return ofServiceAccount(memberA, role.Name, "Credential of an add-on's agent",
		"In a Secret on the member, for an add-on `metrics` with health type `Lease`. `registration.rules` of an "+
			"add-on add permissions "+
			"in this namespace. The hub rejects rules by which an agent leaves its confinement.", role, binding)
}

// manifests returns the roles and bindings in the manifests of a program.
func manifests(t *testing.T, program string) (out []client.Object) {
	t.Helper()
	objects, err := deploy.Hub()
	if program == "agent" {
		objects, err = deploy.Objects(string(deploy.Singleton))
	}
	require.NoError(t, err)
	return typed(t, objects, func(string) bool { return true })
}

func typed(t *testing.T, objects []*unstructured.Unstructured, named func(string) bool) (out []client.Object) {
	t.Helper()
	for _, object := range objects {
		into := map[string]client.Object{
			"ClusterRole": &rbacv1.ClusterRole{}, "Role": &rbacv1.Role{},
			"ClusterRoleBinding": &rbacv1.ClusterRoleBinding{}, "RoleBinding": &rbacv1.RoleBinding{},
		}[object.GetKind()]
		if into == nil || !named(object.GetName()) {
			continue
		}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into))
		out = append(out, into)
	}
	return out
}

func userCredentials(t *testing.T) (out []*credential) {
	t.Helper()
	objects, err := deploy.Hub("users-place")
	require.NoError(t, err)
	for _, role := range []struct{ name, title, text, namespace string }{
		{"muster-view", "Role `view`", "Part of `deploy/hub/base`. The cluster-scoped kinds need a ClusterRoleBinding " +
			"to `view`.", tenant},
		{"muster-edit", "Role `edit`", "Only with the component `users-place`.", tenant},
		{"muster-platform", "ClusterRole `muster-platform`", "Part of `deploy/hub/base`, for platform teams. An " +
			"administrator binds it with a ClusterRoleBinding.", ""},
	} {
		found := typed(t, objects, func(name string) bool { return name == role.name })
		require.Len(t, found, 1)
		c := ofUser("user-"+role.name, role.title, role.text)
		c.objects = bind(found[0], role.namespace, c.user)
		out = append(out, c)
	}
	return out
}

// packageRoles returns one credential for each folder rbac of the hub.
func packageRoles(t *testing.T) (out []*credential) {
	t.Helper()
	var files []string
	for _, pattern := range []string{"/*/rbac/*.yaml", "/*/*/rbac/*.yaml", "/*/internal/*/rbac/*.yaml"} {
		found, err := filepath.Glob(root + pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	slices.Sort(files)
	require.GreaterOrEqual(t, len(files), 15, "the survey has missed roles")
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		require.NoError(t, err)
		if strings.HasPrefix(name, "membership/agent/") || strings.HasPrefix(name, "work/agent/") {
			continue // a role for the member, which is part of the agent's manifests
		}
		roles, err := mustertest.Roles(file)
		require.NoError(t, err)
		c := ofUser("role/"+name, "`"+name+"`", "")
		for i, role := range roles {
			role.SetName(fmt.Sprintf("matrix-%s-%d", strings.NewReplacer("/", "-", ".", "-").Replace(name),
				i)) // unique on the plane
			c.objects = append(c.objects, bind(role, role.GetNamespace(), c.user)...)
		}
		out = append(out, c)
	}
	return out
}

// grant is the set of permissions of one credential in a scope: the cluster, or one namespace.
type grant map[permission]bool

// permission is one verb for one kind. A name restricts it to one object.
type permission struct{ group, resource, name, verb string }

// grants returns the permissions of a credential by scope, from its roles and bindings.
func (c *credential) grants() (map[string]grant, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range c.objects {
		switch role := object.(type) {
		case *rbacv1.ClusterRole:
			rules["ClusterRole/"+role.Name] = role.Rules
		case *rbacv1.Role:
			rules["Role/"+role.Namespace+"/"+role.Name] = role.Rules
		}
	}
	out := map[string]grant{}
	add := func(scope, key string, subjects []rbacv1.Subject) error {
		found, defined := rules[key]
		if !defined {
			return fmt.Errorf("%s: a binding names %s, which does not exist", c.title, key)
		}
		if slices.ContainsFunc(subjects, c.matches) {
			if out[scope] == nil {
				out[scope] = grant{}
			}
			out[scope].add(found)
		}
		return nil
	}
	for _, object := range c.objects {
		var err error
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			err = add(clusterScope, "ClusterRole/"+binding.RoleRef.Name, binding.Subjects)
		case *rbacv1.RoleBinding:
			key := "ClusterRole/" + binding.RoleRef.Name
			if binding.RoleRef.Kind == "Role" {
				key = "Role/" + binding.Namespace + "/" + binding.RoleRef.Name
			}
			err = add(binding.Namespace, key, binding.Subjects)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *credential) matches(subject rbacv1.Subject) bool {
	if subject.Kind == rbacv1.ServiceAccountKind {
		user, _ := serviceAccount(subject.Namespace, subject.Name)
		return user == c.user
	}
	return subject.Kind == rbacv1.UserKind && subject.Name == c.user
}

// add adds rules. A path of the API server is a permission without a group.
func (g grant) add(rules []rbacv1.PolicyRule) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, verb := range rule.Verbs {
			for _, url := range rule.NonResourceURLs {
				g[permission{resource: url, verb: verb}] = true
			}
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range names {
						g[permission{group, resource, name, verb}] = true
					}
				}
			}
		}
	}
	// A permission for all objects includes those for single ones.
	for p := range g {
		if p.name != "" && g[permission{p.group, p.resource, "", p.verb}] {
			delete(g, p)
		}
	}
}

// allows reports whether a request is permitted. It does not support wildcards, which no role has.
func (g grant) allows(p permission) bool {
	return g[p] || g[permission{p.group, p.resource, "", p.verb}]
}
