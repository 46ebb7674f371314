package memberpolicy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/tenancy/memberpolicy"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

func policy(name string, rules ...v1alpha1.MemberPolicyRule) v1alpha1.MemberPolicy {
	return v1alpha1.MemberPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemberPolicySpec{Rules: rules}}
}

func kinds(all ...v1alpha1.ObjectKind) []v1alpha1.ObjectKind { return all }

var (
	deployments = v1alpha1.ObjectKind{Group: "apps", Kind: "Deployment"}
	namespaces  = v1alpha1.ObjectKind{Kind: "Namespace"}
	everyKind   = v1alpha1.ObjectKind{Group: "*", Kind: "*"}
)

func object(group, kind, namespace, name string) workv1alpha1.ResourceIdentifier {
	return workv1alpha1.ResourceIdentifier{Group: group, Version: "v1", Kind: kind, Namespace: namespace, Name: name}
}

func TestRules_Reject(t *testing.T) {
	t.Parallel()
	shop := memberpolicy.Request{Hub: "west", Object: object("apps", "Deployment", "shop", "web")}
	requestWith := func(change func(*memberpolicy.Request)) memberpolicy.Request {
		request := shop
		change(&request)
		return request
	}
	as := func(namespace, name string) memberpolicy.Request {
		return requestWith(func(r *memberpolicy.Request) {
			r.Executor = &workv1alpha1.Executor{Namespace: namespace,
				Name: name}
		})
	}
	inShop := v1alpha1.MemberPolicyRule{Kinds: kinds(deployments, namespaces), Namespaces: []string{"shop", "team-*"}}
	ruleWith := func(change func(*v1alpha1.MemberPolicyRule)) v1alpha1.MemberPolicyRule {
		rule := inShop
		change(&rule)
		return rule
	}
	define := func(name string) memberpolicy.Request {
		return memberpolicy.Request{Hub: "west", Object: object("apiextensions.k8s.io", "CustomResourceDefinition", "", name)}
	}
	const no = "No rule of MemberPolicy p accepts "
	const ask = ". The administrator of the member can add one."
	for _, test := range []struct {
		name    string
		rule    v1alpha1.MemberPolicyRule
		request memberpolicy.Request
		want    string
	}{
		{"an object that the rule accepts", inShop, shop, ""},
		{
			"another kind",
			inShop,
			requestWith(func(r *memberpolicy.Request) { r.Object.Kind = "StatefulSet" }),
			no + "StatefulSet.apps in namespace shop from hub west" + ask,
		},
		{
			"another group",
			inShop,
			requestWith(func(r *memberpolicy.Request) { r.Object.Group = "" }),
			no + "Deployment in namespace shop from hub west" + ask,
		},
		{
			"another namespace",
			inShop,
			requestWith(func(r *memberpolicy.Request) { r.Object.Namespace = "shopping" }),
			no + "Deployment.apps in namespace shopping from hub west" + ask,
		},
		{
			"a namespace with the prefix",
			inShop,
			requestWith(func(r *memberpolicy.Request) { r.Object.Namespace = "team-a" }),
			"",
		},
		{
			"a namespace that is shorter than the prefix",
			inShop,
			requestWith(func(r *memberpolicy.Request) { r.Object.Namespace = "team" }),
			no + "Deployment.apps in namespace team from hub west" + ask,
		},
		{
			"the Namespace of an accepted namespace",
			inShop,
			memberpolicy.Request{Hub: "west", Object: object("", "Namespace", "", "shop")},
			"",
		},
		{
			"the Namespace of another namespace",
			inShop,
			memberpolicy.Request{Hub: "west", Object: object("", "Namespace", "", "kube-system")},
			no + "Namespace kube-system from hub west" + ask,
		},
		{
			"a cluster-scoped object with the name of a namespace",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Kinds = kinds(everyKind) }),
			memberpolicy.Request{Hub: "west", Object: object("rbac.authorization.k8s.io", "ClusterRole", "", "shop")},
			no + "ClusterRole.rbac.authorization.k8s.io shop from hub west" + ask,
		},
		{
			"cluster-scoped objects", ruleWith(func(r *v1alpha1.MemberPolicyRule) {
				r.Kinds, r.ClusterScoped = kinds(everyKind), true
			}),
			memberpolicy.Request{Hub: "west", Object: object("rbac.authorization.k8s.io", "ClusterRole", "", "shop")}, "",
		},
		{
			"a namespaced object with a rule for cluster-scoped objects",
			v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind), ClusterScoped: true}, shop,
			no + "Deployment.apps in namespace shop from hub west" + ask,
		},
		{
			"every namespace",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Namespaces = []string{"*"} }),
			requestWith(func(r *memberpolicy.Request) { r.Object.Namespace = "any" }),
			"",
		},
		{"every kind of a group", ruleWith(func(r *v1alpha1.MemberPolicyRule) {
			r.Kinds = kinds(v1alpha1.ObjectKind{Group: "apps", Kind: "*"})
		}), shop, ""},
		{
			"every kind of another group",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Kinds = kinds(v1alpha1.ObjectKind{Kind: "*"}) }), shop,
			no + "Deployment.apps in namespace shop from hub west" + ask,
		},
		{"a hub of the rule", ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Hubs = []string{"eu", "west"} }), shop, ""},
		{
			"another hub",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Hubs = []string{"eu"} }),
			shop,
			no + "Deployment.apps in namespace shop from hub west" + ask,
		},
		{"an executor with a rule without ServiceAccounts", inShop, as("shop", "deployer"), ""},
		{
			"an executor of the rule", ruleWith(func(r *v1alpha1.MemberPolicyRule) {
				r.ServiceAccounts = []v1alpha1.ServiceAccount{{Namespace: "shop", Name: "deployer"}}
			}), as("shop", "deployer"), "",
		},
		{
			"an executor with the same name in another namespace", ruleWith(func(r *v1alpha1.MemberPolicyRule) {
				r.ServiceAccounts = []v1alpha1.ServiceAccount{{Namespace: "shop", Name: "deployer"}}
			}), as("kube-system", "deployer"),
			no + "Deployment.apps in namespace shop from hub west as ServiceAccount kube-system/deployer" + ask,
		},
		{
			"no executor with a rule for a ServiceAccount", ruleWith(func(r *v1alpha1.MemberPolicyRule) {
				r.ServiceAccounts = []v1alpha1.ServiceAccount{{Namespace: "shop", Name: "deployer"}}
			}), shop, no + "Deployment.apps in namespace shop from hub west" + ask,
		},
		{
			"an add-on with a rule without add-ons",
			inShop,
			requestWith(func(r *memberpolicy.Request) { r.Addon = "logs" }),
			no + "Deployment.apps in namespace shop from hub west for add-on logs" + ask,
		},
		{
			"an add-on of the rule",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Addons = []string{"logs"} }),
			requestWith(func(r *memberpolicy.Request) { r.Addon = "logs" }),
			"",
		},
		{
			"every add-on",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Addons = []string{"*"} }),
			requestWith(func(r *memberpolicy.Request) { r.Addon = "logs" }),
			"",
		},
		{
			"no add-on with a rule for add-ons",
			ruleWith(func(r *v1alpha1.MemberPolicyRule) { r.Addons = []string{"*"} }),
			shop,
			no + "Deployment.apps in namespace shop from hub west" + ask,
		},
		{
			"a MemberPolicy", v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind), Namespaces: []string{"*"}, ClusterScoped: true},
			memberpolicy.Request{Hub: "west", Object: object(v1alpha1.GroupName, "MemberPolicy", "", "p")},
			"A MemberPolicy belongs to the administrator of the member. An agent never applies it for a hub.",
		},
		{
			"the definition of MemberPolicies",
			v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind), Namespaces: []string{"*"}, ClusterScoped: true},
			define("memberpolicies.tenancy.muster.dev"),
			"The definition of MemberPolicies belongs to the administrator of the member. An agent never applies it for a hub.",
		},
		{
			"another definition", v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind), ClusterScoped: true},
			define("widgets.example.com"), "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, memberpolicy.NewRules([]v1alpha1.MemberPolicy{policy("p", test.rule)},
				false).Reject(test.request))
		})
	}
}

// TestRules_WithoutPolicy checks members without a MemberPolicy, or with one that has no rule.
func TestRules_WithoutPolicy(t *testing.T) {
	t.Parallel()
	shop := memberpolicy.Request{Hub: "west", Object: object("apps", "Deployment", "shop", "web")}
	own := memberpolicy.Request{Hub: "west", Object: object(v1alpha1.GroupName, "MemberPolicy", "", "p")}
	var none *memberpolicy.Rules
	for _, rules := range []*memberpolicy.Rules{none, memberpolicy.NewRules(nil, false)} {
		require.False(t, rules.Restricted())
		require.Empty(t, rules.Reject(shop))
		require.NotEmpty(t, rules.Reject(own), "a hub must not write the policies of its member")
	}
	required := memberpolicy.NewRules(nil, true)
	require.True(t, required.Restricted())
	require.Equal(t, "The agent requires a MemberPolicy, and the member has none. Its administrator can create one.",
		required.Reject(shop))

	const accepts = " accepts Deployment.apps in namespace shop from hub west. The administrator of the member can add " +
		"one."
	var seven []v1alpha1.MemberPolicy
	for _, name := range []string{"g", "f", "e", "d", "c", "b", "a"} {
		seven = append(seven, policy(name))
	}
	empty := memberpolicy.NewRules([]v1alpha1.MemberPolicy{policy("b"), policy("a")}, false)
	require.True(t, empty.Restricted())
	require.Equal(t, "No rule of MemberPolicies a, b"+accepts, empty.Reject(shop))
	require.Equal(t, "No rule of MemberPolicies a, b, c, d, e, 2 more"+accepts,
		memberpolicy.NewRules(seven, false).Reject(shop))
}

// TestRules_Properties checks properties of random policies. Their order has no effect. An additional rule never
// rejects an accepted object. A rule accepts nothing that the same rule with one limit less does not accept.
func TestRules_Properties(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	some := func(from ...string) (chosen []string) {
		for _, each := range from {
			if random.IntN(3) == 0 {
				chosen = append(chosen, each)
			}
		}
		return chosen
	}
	rule := func() v1alpha1.MemberPolicyRule {
		r := v1alpha1.MemberPolicyRule{
			Hubs: some("a", "b"), Namespaces: some("x", "x*", "y", "*"), Addons: some("one", "*"),
			ClusterScoped: random.IntN(3) == 0,
		}
		for _, kind := range []v1alpha1.ObjectKind{deployments, namespaces, everyKind, {Group: "apps", Kind: "*"}} {
			if random.IntN(2) == 0 {
				r.Kinds = append(r.Kinds, kind)
			}
		}
		if random.IntN(3) == 0 {
			r.ServiceAccounts = []v1alpha1.ServiceAccount{{Namespace: "x", Name: "deployer"}}
		}
		return r
	}
	drawRequest := func() memberpolicy.Request {
		pick := func(from ...string) string { return from[random.IntN(len(from))] }
		r := memberpolicy.Request{
			Hub: pick("a", "b", "c"), Addon: pick("", "", "one", "two"),
			Object: object("apps", "Deployment", pick("x", "xy", "y", "z"), "o"),
		}
		if random.IntN(3) == 0 {
			r.Object = object("", "Namespace", "", pick("x", "z"))
		}
		if random.IntN(3) == 0 {
			r.Executor = &workv1alpha1.Executor{Namespace: pick("x", "y"), Name: "deployer"}
		}
		return r
	}
	accepted, rejected := 0, 0
	for range 20_000 {
		policies := []v1alpha1.MemberPolicy{policy("p", rule(), rule()), policy("q", rule())}
		request := drawRequest()
		message := memberpolicy.NewRules(policies, false).Reject(request)
		if message == "" {
			accepted++
		} else {
			rejected++
		}
		reversed := slices.Clone(policies)
		slices.Reverse(reversed)
		require.Equal(t, message, memberpolicy.NewRules(reversed, true).Reject(request))
		if more := append(slices.Clone(policies), policy("r", rule())); message == "" {
			require.Empty(t, memberpolicy.NewRules(more, false).Reject(request), "%+v", more)
		}
		one := rule()
		wider := one
		wider.Hubs, wider.ServiceAccounts, wider.Kinds, wider.ClusterScoped = nil, nil, kinds(everyKind), true
		if memberpolicy.NewRules([]v1alpha1.MemberPolicy{policy("p", one)}, false).Reject(request) == "" {
			require.Empty(t, memberpolicy.NewRules([]v1alpha1.MemberPolicy{policy("p", wider)}, false).Reject(request), "%+v",
				one)
		}
	}
	require.Greater(t, accepted, 2000)
	require.Greater(t, rejected, 2000)
}

// TestRules_Summary checks that a summary contains what rules for the hub accept, sorted and without duplicates, and
// that long lists are truncated.
func TestRules_Summary(t *testing.T) {
	t.Parallel()
	require.Nil(t, memberpolicy.NewRules(nil, false).Summary("west"), "the member accepts everything")
	required := memberpolicy.NewRules(nil, true).Summary("west")
	require.Zero(t, required.Policies)
	require.Empty(t, required.Kinds)

	rules := memberpolicy.NewRules([]v1alpha1.MemberPolicy{
		policy("a", v1alpha1.MemberPolicyRule{Kinds: kinds(deployments, namespaces), Namespaces: []string{"shop", "team-*"}}),
		policy("b",
			v1alpha1.MemberPolicyRule{Kinds: kinds(deployments), Namespaces: []string{"shop"}, Hubs: []string{"west"}},
			v1alpha1.MemberPolicyRule{Kinds: kinds(everyKind), ClusterScoped: true, Hubs: []string{"east"}}),
	}, false)
	west, east := rules.Summary("west"), rules.Summary("east")
	require.Equal(t, int32(2), west.Policies)
	require.Equal(t, []string{"Deployment.apps", "Namespace"}, west.Kinds)
	require.Equal(t, []string{"shop", "team-*"}, west.Namespaces)
	require.False(t, west.Truncated)
	require.Equal(t, []string{"*.*", "Deployment.apps", "Namespace"}, east.Kinds)

	many := v1alpha1.MemberPolicyRule{Kinds: kinds(deployments)}
	for i := range 200 {
		many.Namespaces = append(many.Namespaces, fmt.Sprint("n-", i))
	}
	long := memberpolicy.NewRules([]v1alpha1.MemberPolicy{policy("a", many)}, false).Summary("west")
	require.Len(t, long.Namespaces, 128)
	require.True(t, long.Truncated)
}
