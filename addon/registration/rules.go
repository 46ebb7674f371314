package registration

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/membership"
)

// guard is on what would let an agent out of its confinement, in the namespace of its member.
type guard struct {
	group     string   // its name; where it begins with a dot, the end of it
	resources []string // none: all that there are
	allowed   allowance
	why       string
}

// allowance says what is allowed all the same.
type allowance int

const (
	reading      allowance = iota
	readingNamed           // of objects that the rule names
	nothing
)

const byPods = "a pod on the hub can run as any ServiceAccount of the namespace, those of other agents too"

var guards = []guard{
	{"work.muster.dev", nil, nothing, "Works hold the credentials of other add-ons, and whatever is written there runs on the member"},
	{".muster.dev", nil, reading, "what muster's own objects say is not for an agent to change"},
	{rbacv1.GroupName, nil, reading, "the agent's access could outlive its removal"},
	{"", []string{"serviceaccounts"}, reading, "the agent could become another one"},
	{"", []string{"secrets"}, readingNamed, "a Secret can hold the credential of another agent, and be made to"},
	{"", []string{"pods/attach", "pods/exec", "pods/portforward", "pods/proxy"}, nothing, "who is in a pod has its ServiceAccount"},
	{"", []string{"pods", "replicationcontrollers"}, reading, byPods},
	{"apps", nil, reading, byPods},
	{"batch", nil, reading, byPods},
	{"", []string{"namespaces"}, reading, "in a namespace that is the namespace itself, which is the hub's"},
}

// ValidateRules returns what must be refused of the rules that an add-on's agent is to have in its member's namespace: one
// error at most for each rule, for a field below path. Nothing: all of them may be granted, as far as the hub has them itself. It is pure.
//
// Refused is what would let the agent out of its confinement; the package's documentation has the list. All else is as the
// administrator wishes who wrote the rules.
func ValidateRules(addon string, rules []rbacv1.PolicyRule, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range rules {
		if err := refusal(addon, &rules[i], path.Index(i)); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func refusal(addon string, rule *rbacv1.PolicyRule, path *field.Path) *field.Error {
	for i := range guards {
		if err := guards[i].refuse(rule, path); err != nil {
			return err
		}
	}
	own := func(name string) bool {
		return name != membership.LeaseName && (name == addon || strings.HasPrefix(name, addon+"."))
	}
	if len(rule.ResourceNames) > 0 && !slices.ContainsFunc(rule.ResourceNames, func(name string) bool { return !own(name) }) {
		return nil
	}
	leases := guard{coordinationv1.GroupName, []string{"leases"}, reading,
		"Leases tell the health of the member and of other add-ons; to change its own, which the hub makes, name it in resourceNames"}
	return leases.refuse(rule, path)
}

// refuse names the field that has to change.
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
		return field.Forbidden(path.Child("verbs").Index(write), "keep to get, list and watch of "+rule.Resources[resource]+": "+g.why)
	}
	return field.Required(path.Child("resourceNames"), "name the "+rule.Resources[resource]+" that are to be read: "+g.why)
}

func (g *guard) isGroup(group string) bool {
	return group == rbacv1.APIGroupAll || group == g.group || strings.HasPrefix(g.group, ".") && strings.HasSuffix(group, g.group)
}

// isResource reports whether a resource of a rule is one of those, or a subresource of one. "*/scale" is that of all.
func (g *guard) isResource(resource string) bool {
	base, _, _ := strings.Cut(resource, "/")
	return g.resources == nil || base == rbacv1.ResourceAll || slices.Contains(g.resources, resource) || slices.Contains(g.resources, base)
}

func isWrite(verb string) bool { return verb != "get" && verb != "list" && verb != "watch" }

// roleRules are those of the agent's Role: what it wants and, for its health, to renew its Lease.
func (r *Request) roleRules() []rbacv1.PolicyRule {
	rules := slices.Clone(r.Want.Rules)
	if r.Lease {
		rules = append(rules, leaseRule(r.MemberAddon.Name))
	}
	return rules
}

// leaseRule lets an add-on's agent renew its Lease.
func leaseRule(addon string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, ResourceNames: []string{addon}, Verbs: []string{"get", "update", "patch"},
	}
}
