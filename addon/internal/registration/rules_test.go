package registration

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"pgregory.net/rapid"
)

func rule(groups, resources, verbs string, names ...string) rbacv1.PolicyRule {
	list := func(s string) []string { return strings.Split(s, " ") }
	return rbacv1.PolicyRule{APIGroups: list(groups), Resources: list(resources), Verbs: list(verbs), ResourceNames: names}
}

func TestValidateRules(t *testing.T) {
	for _, test := range []struct {
		reason string
		rule   rbacv1.PolicyRule
		want   string // the field; empty: allowed
	}{
		{"ConfigMaps and Events", rule("", "configmaps events", "get list watch create update patch delete"), ""},
		{"all verbs on ConfigMaps", rule("", "configmaps", "*"), ""},
		{"all verbs on all resources of another group", rule("example.com", "*", "*"), ""},
		{"the Lease of the add-on", rule("coordination.k8s.io", "leases", "get update patch", "x"), ""},
		{"a Lease for leader election",
			rule("coordination.k8s.io", "leases", "update", "x.leader"), ""},
		{"read access to all resources of restricted groups",
			rule("coordination.k8s.io rbac.authorization.k8s.io apps addon.muster.dev", "*", "get list watch"), ""},
		{"a Secret with a resource name", rule("", "secrets", "get", "pull-secret"), ""},
		{"logs of Pods", rule("", "pods pods/log", "get list"), ""},

		{"the Lease of another add-on", rule("coordination.k8s.io", "leases", "update", "x-y"), "rules[0].verbs[0]"},
		{"a Lease of the add-on and a Lease of another add-on",
			rule("coordination.k8s.io", "leases", "get update", "x", "y"), "rules[0].verbs[1]"},
		{"the Lease of the member", rule("coordination.k8s.io", "leases", "update", "heartbeat"), "rules[0].verbs[0]"},
		{"creation of Leases", rule("coordination.k8s.io", "leases", "create"), "rules[0].verbs[0]"},
		{"all resources of the group of Leases", rule("coordination.k8s.io", "*", "*"), "rules[0].resources[0]"},
		{"escalation of Roles", rule("rbac.authorization.k8s.io", "roles", "escalate"), "rules[0].verbs[0]"},
		{"deletion of RoleBindings", rule("rbac.authorization.k8s.io", "rolebindings", "get delete"), "rules[0].verbs[1]"},
		{"tokens of ServiceAccounts", rule("", "serviceaccounts/token", "create"), "rules[0].verbs[0]"},
		{"impersonation of ServiceAccounts", rule("", "configmaps serviceaccounts", "impersonate"), "rules[0].verbs[0]"},
		{"a list of Secrets", rule("", "secrets", "list"), "rules[0].resourceNames"},
		{"all resources of the core group", rule("", "*", "get"), "rules[0].resources[0]"},
		{"creation of a Secret with a name", rule("", "secrets", "create", "mine"), "rules[0].verbs[0]"},
		{"creation of Pods", rule("", "pods", "create"), "rules[0].verbs[0]"},
		{"ephemeral containers of Pods", rule("", "pods/ephemeralcontainers", "patch"), "rules[0].verbs[0]"},
		{"exec into Pods", rule("", "pods/exec", "get"), "rules[0].resources[0]"},
		{"creation of workloads", rule("apps batch", "deployments", "create"), "rules[0].verbs[0]"},
		{"deletion of the namespace", rule("", "namespaces", "delete"), "rules[0].verbs[0]"},
		{"Works", rule("work.muster.dev", "works", "get"), "rules[0].resources[0]"},
		{"the status of Works", rule("work.muster.dev", "works/status", "get", "addon-x-0"),
			"rules[0].resources[0]"},
		{"write access to the MemberAddon", rule("addon.muster.dev", "memberaddons", "patch", "x"), "rules[0].verbs[0]"},
		{"creation of WorkSets", rule("placement.muster.dev", "worksets", "create"), "rules[0].verbs[0]"},
		{"the status of the Membership", rule("membership.muster.dev", "memberships/status", "patch"), "rules[0].verbs[0]"},
		{"all groups", rule("*", "configmaps", "get"), "rules[0].apiGroups[0]"},
		{"all statuses", rule("", "*/status", "update"), "rules[0].resources[0]"},
		{"cluster-admin", rule("*", "*", "*"), "rules[0].apiGroups[0]"},
	} {
		errs := ValidateRules("x", []rbacv1.PolicyRule{test.rule}, field.NewPath("rules"))
		if test.want == "" {
			require.Empty(t, errs, test.reason)
			continue
		}
		require.Len(t, errs, 1, test.reason)
		require.Equal(t, test.want, errs[0].Field, test.reason)
	}
	errs := ValidateRules("x",
		[]rbacv1.PolicyRule{rule("", "configmaps", "get"), rule("*", "*", "*"), rule("batch", "jobs", "create")},
		field.NewPath("rules"))
	require.Len(t, errs, 2, "want one error for each invalid rule")
	require.Equal(t,
		`rules[2].verbs[0]: Forbidden: use only get, list and watch on jobs: a pod on the hub can run as any ServiceAccount `+
			`of the namespace, including those of other agents`, errs[1].Error())
}

// accessRequest is a request, as RBAC evaluates it.
type accessRequest struct{ group, resource, subresource, verb, name string }

// allows evaluates a rule as Kubernetes does (k8s.io/component-helpers/auth/rbac/validation).
func allows(rule *rbacv1.PolicyRule, a accessRequest) bool {
	matches := func(list []string, value string) bool {
		return slices.Contains(list, "*") || slices.Contains(list, value)
	}
	resource := a.resource
	if a.subresource != "" {
		resource += "/" + a.subresource
	}
	return matches(rule.Verbs, a.verb) && matches(rule.APIGroups, a.group) &&
		(matches(rule.Resources, resource) || a.subresource != "" && slices.Contains(rule.Resources, "*/"+a.subresource)) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, a.name))
}

// TestNoRuleGetsAround checks that no accepted rule permits a request that must be denied, regardless of its
// notation.
func TestNoRuleGetsAround(t *testing.T) {
	denied := []accessRequest{
		{"work.muster.dev", "works", "", "get", "addon-x-0"}, {"work.muster.dev", "works", "status", "get", "y"},
		{"work.muster.dev", "works", "", "create", ""},
		{"addon.muster.dev", "memberaddons", "", "update", "x"},
		{"addon.muster.dev", "memberaddons", "status", "patch", "x"}, {"placement.muster.dev", "worksets", "", "create", ""},
		{"membership.muster.dev", "memberships", "status", "update", "self"},
		{"rbac.authorization.k8s.io", "rolebindings", "", "create", ""},
		{"rbac.authorization.k8s.io", "roles", "", "escalate", "addon-x"},
		{"rbac.authorization.k8s.io", "rolebindings", "", "delete", "addon-x"},
		{"", "serviceaccounts", "token", "create", "addon-y"}, {"", "serviceaccounts", "", "impersonate", "addon-y"},
		{"", "secrets", "", "create", ""},
		{"", "secrets", "", "list", ""}, {"", "pods", "", "create", ""}, {"", "pods", "exec", "get", "p"},
		{"apps", "deployments", "", "create", ""},
		{"apps", "deployments", "scale", "update", "d"}, {"batch", "jobs", "", "create", ""},
		{"", "namespaces", "", "delete", "member-a"},
		{"coordination.k8s.io", "leases", "", "update", "heartbeat"}, {"coordination.k8s.io", "leases", "", "patch", "x-y"},
	}
	of := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(values), 1, 3)
	}
	generated, accepted := 0, 0
	once := func(t *rapid.T) {
		generated++
		rule := rbacv1.PolicyRule{
			APIGroups: of("", "", "", "*", "apps", "batch", "rbac.authorization.k8s.io", "coordination.k8s.io",
				"work.muster.dev", "addon.muster.dev", "placement.muster.dev", "membership.muster.dev", "example.com").Draw(t,
				"groups"),
			Resources: of("*", "*/status", "*/token", "*/scale", "*/exec", "works", "works/status", "memberaddons",
				"memberaddons/status", "memberships/status", "worksets", "roles", "rolebindings",
				"serviceaccounts", "serviceaccounts/token", "secrets", "pods", "pods/exec", "deployments", "deployments/scale",
				"jobs", "namespaces", "leases", "configmaps").Draw(t, "resources"),
			Verbs: of("*", "get", "get", "list", "watch", "create", "update", "patch", "delete", "impersonate",
				"escalate").Draw(t, "verbs"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{"x", "x.leader", "x-y", "heartbeat", "self", "addon-x",
				"addon-y", "addon-x-0", "p", "d", "y", "member-a"}), 0, 2).Draw(t, "names"),
		}
		if len(ValidateRules("x", []rbacv1.PolicyRule{rule}, field.NewPath("rules"))) > 0 {
			return
		}
		accepted++
		for _, a := range denied {
			if allows(&rule, a) {
				t.Fatalf("rule %v permits request %v", rule, a)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			once(t)
		}
	})
	require.Greater(t, accepted*10, generated, "too many generated rules are rejected")
}
