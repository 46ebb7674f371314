package memberpolicy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// Request describes an object that a hub wants an agent to apply or to read.
type Request struct {
	// Hub is the agent's name for the hub.
	Hub string
	// Object identifies the object. An object with a namespace is namespaced.
	Object workv1alpha1.ResourceIdentifier
	// Executor is the executor of the Work. Nil: the agent applies the object with its own permissions.
	Executor *workv1alpha1.Executor
	// Addon is the name of the add-on to which the Work belongs. Empty: none.
	Addon string
}

// Rules are the MemberPolicies of a member at one time. They do not change, and are safe for concurrent use. Nil Rules
// are those of a member without a policy.
type Rules struct {
	policies   []v1alpha1.MemberPolicy // sorted by name
	restricted bool
}

// NewRules returns the rules of the policies, which must not be modified afterwards. A member is restricted if it has a
// policy, or if a policy is required.
func NewRules(policies []v1alpha1.MemberPolicy, required bool) *Rules {
	sorted := slices.SortedFunc(slices.Values(policies), func(a, b v1alpha1.MemberPolicy) int {
		return cmp.Compare(a.Name, b.Name)
	})
	return &Rules{policies: sorted, restricted: required || len(policies) > 0}
}

// Restricted reports whether the member accepts only objects that a rule accepts.
func (r *Rules) Restricted() bool { return r != nil && r.restricted }

// Reject returns the reason why the member does not accept an object, as a sentence for users of the hub. An empty
// string means that the member accepts the object.
func (r *Rules) Reject(request Request) string {
	if what := reserved(request.Object); what != "" {
		return fmt.Sprintf("%s belongs to the administrator of the member. An agent never applies it for a hub.", what)
	}
	if !r.Restricted() || slices.ContainsFunc(r.policies, func(p v1alpha1.MemberPolicy) bool {
		return slices.ContainsFunc(p.Spec.Rules, func(rule v1alpha1.MemberPolicyRule) bool { return accepts(&rule, request) })
	}) {
		return ""
	}
	if len(r.policies) == 0 {
		return "The agent requires a MemberPolicy, and the member has none. Its administrator can create one."
	}
	names := make([]string, len(r.policies))
	for i := range r.policies {
		names[i] = r.policies[i].Name
	}
	noun := "MemberPolicy"
	if len(names) > 1 {
		noun = "MemberPolicies"
	}
	const shown = 5
	if more := len(names) - shown; more > 0 {
		names = append(names[:shown], fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("No rule of %s %s accepts %s. The administrator of the member can add one.",
		noun, strings.Join(names, ", "), describe(request))
}

// describe returns a text with all properties of a request that rules can match.
func describe(request Request) string {
	object := request.Object
	text := object.Kind
	if object.Group != "" {
		text += "." + object.Group
	}
	if object.Namespace != "" {
		text += " in namespace " + object.Namespace
	} else {
		text += " " + object.Name
	}
	text += " from hub " + request.Hub
	if request.Executor != nil {
		text += " as ServiceAccount " + request.Executor.Namespace + "/" + request.Executor.Name
	}
	if request.Addon != "" {
		text += " for add-on " + request.Addon
	}
	return text
}

const definitionName = "memberpolicies." + v1alpha1.GroupName

// reserved returns a name for an object that determines what an agent accepts, and an empty string for other objects.
// No rule accepts such objects.
func reserved(object workv1alpha1.ResourceIdentifier) string {
	switch {
	case object.Group == v1alpha1.GroupName && object.Kind == "MemberPolicy":
		return "A MemberPolicy"
	case object.Kind == "CustomResourceDefinition" && object.Group == "apiextensions.k8s.io" &&
		object.Name == definitionName:
		return "The definition of MemberPolicies"
	default:
		return ""
	}
}

func accepts(rule *v1alpha1.MemberPolicyRule, request Request) bool {
	return acceptsSource(rule, request) && acceptsKind(rule.Kinds, request.Object) && acceptsScope(rule, request.Object)
}

// acceptsSource reports whether the rule applies to the Work.
func acceptsSource(rule *v1alpha1.MemberPolicyRule, request Request) bool {
	if len(rule.Hubs) > 0 && !slices.Contains(rule.Hubs, request.Hub) {
		return false
	}
	if len(rule.ServiceAccounts) > 0 && !slices.ContainsFunc(rule.ServiceAccounts,
		func(account v1alpha1.ServiceAccount) bool {
			e := request.Executor
			return e != nil && account.Namespace == e.Namespace && account.Name == e.Name
		}) {
		return false
	}
	if request.Addon == "" {
		return len(rule.Addons) == 0
	}
	return slices.Contains(rule.Addons, request.Addon) || slices.Contains(rule.Addons, "*")
}

func acceptsKind(kinds []v1alpha1.ObjectKind, object workv1alpha1.ResourceIdentifier) bool {
	return slices.ContainsFunc(kinds, func(kind v1alpha1.ObjectKind) bool {
		return kind.Matches(object.Group,
			object.Kind)
	})
}

// acceptsScope reports whether the rule applies to the scope and the namespace of the object.
func acceptsScope(rule *v1alpha1.MemberPolicyRule, object workv1alpha1.ResourceIdentifier) bool {
	namespace := object.Namespace
	if namespace == "" {
		if rule.ClusterScoped {
			return true
		}
		if object.Group != "" || object.Kind != "Namespace" {
			return false
		}
		namespace = object.Name
	}
	return slices.ContainsFunc(rule.Namespaces, func(pattern string) bool { return matches(pattern, namespace) })
}

func matches(pattern, namespace string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(namespace, prefix)
	}
	return pattern == namespace
}
