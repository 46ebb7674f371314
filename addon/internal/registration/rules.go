package registration

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/membership"
)

// guard protects resources that would let an agent leave its confinement in its member's namespace.
type guard struct {
	group     string   // the name; with a leading dot, a suffix
	resources []string // empty: all resources
	allowed   allowance
	why       string
}

// allowance is the set of permitted verbs.
type allowance int

const (
	reading      allowance = iota
	readingNamed           // reading with resourceNames
	nothing
)

const byPods = "a pod on the hub can run as any ServiceAccount of the namespace, including those of other agents"

var guards = []guard{
	{"work.muster.dev", nil, nothing, "Works contain the credentials of other add-ons, and their content " +
		"is applied on the member"},
	{".muster.dev", nil, reading, "an agent must not change objects of muster"},
	{rbacv1.GroupName, nil, reading, "the agent's access could outlive its removal"},
	{"", []string{"serviceaccounts"}, reading, "the agent could impersonate another agent"},
	{"", []string{"secrets"}, readingNamed, "a Secret can contain the credential of another agent, and Kubernetes " +
		"can be made to store one there"},
	{"", []string{"pods/attach", "pods/exec", "pods/portforward", "pods/proxy"}, nothing,
		"a process in a pod has its ServiceAccount"},
	{"", []string{"pods", "replicationcontrollers"}, reading, byPods},
	{"apps", nil, reading, byPods},
	{"batch", nil, reading, byPods},
	{"", []string{"namespaces"}, reading,
		"in a namespace this resource is the namespace itself, which belongs to the hub"},
}

// ValidateRules returns the rules that an add-on's agent must not have in its member's namespace, at most one error for
// each rule, for fields below path. An empty list means that all rules can be granted if the hub has them. The function
// is pure.
//
// Rejected are rules that let the agent leave its confinement; the package documentation lists them. All other rules
// are the decision of the administrator who wrote them.
func ValidateRules(addon string, rules []rbacv1.PolicyRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		if err := validateRule(addon, &rules[i], path.Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func validateRule(addon string, rule *rbacv1.PolicyRule, path *field.Path) *field.Error {
	for i := range guards {
		if err := guards[i].refuse(rule, path); err != nil {
			return err
		}
	}
	own := func(name string) bool {
		return name != membership.LeaseName && (name == addon || strings.HasPrefix(name, addon+"."))
	}
	if len(rule.ResourceNames) > 0 &&
		!slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return !own(name) }) {
		return nil
	}
	leases := guard{coordinationv1.GroupName, []string{"leases"}, reading,
		"Leases report the health of the member and of other add-ons; to permit changes of its own Lease, name it in " +
			"resourceNames"}
	return leases.refuse(rule, path)
}

// refuse returns an error for the field of a rule that must change. Nil: the guard accepts the rule.
func (g *guard) refuse(rule *rbacv1.PolicyRule, path *field.Path) *field.Error {
	group, resource := slices.IndexFunc(rule.APIGroups, g.isGroup), slices.IndexFunc(rule.Resources, g.isResource)
	write := slices.IndexFunc(rule.Verbs, isWrite)
	unnamed := g.allowed == readingNamed && len(rule.ResourceNames) == 0
	switch {
	case group < 0 || resource < 0 || g.allowed != nothing && write < 0 && !unnamed:
		return nil
	case rule.APIGroups[group] == rbacv1.APIGroupAll:
		return field.Forbidden(path.Child("apiGroups").Index(group), "list the groups by name: "+g.why)
	case strings.HasPrefix(rule.Resources[resource], rbacv1.ResourceAll) && g.resources != nil:
		return field.Forbidden(path.Child("resources").Index(resource), "list the resources by name: "+g.why)
	case g.allowed == nothing:
		return field.Forbidden(path.Child("resources").Index(resource), g.why)
	case write >= 0:
		return field.Forbidden(path.Child("verbs").Index(write),
			"use only get, list and watch on "+rule.Resources[resource]+": "+g.why)
	}
	return field.Required(path.Child("resourceNames"),
		"name the "+rule.Resources[resource]+" that the agent can read: "+g.why)
}

func (g *guard) isGroup(group string) bool {
	return group == rbacv1.APIGroupAll || group == g.group || strings.HasPrefix(g.group, ".") &&
		strings.HasSuffix(group, g.group)
}

// isResource reports whether a resource of a rule is guarded, or is a subresource of one. "*/scale" matches all.
func (g *guard) isResource(resource string) bool {
	base, _, _ := strings.Cut(resource, "/")
	return g.resources == nil || base == rbacv1.ResourceAll || slices.Contains(g.resources, resource) ||
		slices.Contains(g.resources, base)
}

func isWrite(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }

// roleRules returns the rules of the agent's Role: the requested ones, and the renewal of its Lease.
func (r *Request) roleRules() []rbacv1.PolicyRule {
	rules := slices.Clone(r.Want.Rules)
	if r.Lease {
		rules = append(rules, leaseRule(r.MemberAddon.Name))
	}
	return rules
}

// leaseRule returns the rule that permits an add-on's agent to renew its Lease.
func leaseRule(addon string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{addon},
		Verbs: []string{"get", "update", "patch"},
	}
}
