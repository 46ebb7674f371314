package tenancy_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/tenancy"
	"github.com/muster-sdk/muster/tenancy/v1alpha1"
)

var (
	names      = rapid.SampledFrom([]string{"a", "b", "c"})
	namespaces = rapid.SampledFrom([]string{"", "a", "b"})
)

// drawSets returns sets with different names. A nil selector is invalid.
func drawSets(t *rapid.T) []tenancy.Set {
	var sets []tenancy.Set
	for _, name := range []string{"a", "b", "c"} {
		selector := rapid.SampledFrom([]labels.Selector{
			nil, labels.Nothing(), labels.Everything(),
			labels.SelectorFromSet(labels.Set{"k": "a"}), labels.SelectorFromSet(labels.Set{"k": "b"}),
		}).Draw(t, "selector")
		if rapid.Bool().Draw(t, "exists") {
			sets = append(sets, tenancy.Set{Name: name, Selector: selector})
		}
	}
	return sets
}

// drawBindings returns bindings with different names.
func drawBindings(t *rapid.T) []tenancy.Binding {
	var bindings []tenancy.Binding
	for _, name := range []string{"a", "b", "c", "d"} {
		b := tenancy.Binding{
			Namespace: namespaces.Draw(t, "namespace of a binding"), Name: name, Set: names.Draw(t, "set"),
			Deleted: rapid.Bool().Draw(t, "deleted"),
			Limits:  &tenancy.Limits{ServiceAccount: &v1alpha1.ServiceAccount{Namespace: "of", Name: name}},
		}
		if rapid.Bool().Draw(t, "bound") {
			bindings = append(bindings, b)
		}
	}
	return bindings
}

func TestDecide_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets, bindings := drawSets(t), drawBindings(t)
		namespace := namespaces.Draw(t, "namespace")
		cluster := tenancy.Cluster{
			Labels: labels.Set{"k": names.Draw(t, "label")}, Absent: rapid.Bool().Draw(t, "absent"),
			Binding: rapid.SampledFrom([]string{"", "a", "b", "c", "d"}).Draw(t, "binding of the cluster"),
		}
		got := tenancy.NewRules(namespace, sets, bindings).Decide(cluster)

		// The definition, written without an index.
		selects := func(name string) (exists, valid, matches bool) {
			for _, s := range sets {
				if s.Name == name {
					valid = s.Selector != nil
					return true, valid, valid && (s.Selector.Matches(cluster.Labels) && !cluster.Absent || s.Selector.Empty())
				}
			}
			return false, false, false
		}
		allowed, requested := false, false
		for _, b := range bindings {
			if namespace == "" || b.Namespace != namespace {
				continue
			}
			exists, valid, matches := selects(b.Set)
			allowed = allowed || !b.Deleted && matches
			requested = requested || b.Name == cluster.Binding && (b.Deleted || exists && valid && !matches && !cluster.Absent)
		}
		want := tenancy.Unknown
		if allowed {
			want = tenancy.Allowed
		} else if requested {
			want = tenancy.Denied
		}
		if got.Access != want {
			t.Fatalf("got %+v, want Access %s", got, want)
		}
		if (got.Binding == "") != (got.Access == tenancy.Unknown) || (got.Message == "") != (got.Access != tenancy.Denied) {
			t.Fatalf("got %+v: the names or the message do not match Access", got)
		}

		// The limits are those of the binding in the result, or of the binding of the cluster.
		limits := ""
		if got.Limits != nil {
			limits = got.Limits.ServiceAccount.Name
		}
		named := got.Binding
		switch {
		case got.Access == tenancy.Denied:
			named = ""
		case got.Access == tenancy.Unknown && slices.ContainsFunc(bindings, func(b tenancy.Binding) bool {
			return namespace != "" && b.Namespace == namespace && b.Name == cluster.Binding
		}):
			named = cluster.Binding
		}
		if limits != named {
			t.Fatalf("got %+v with the limits of %q, want those of %q", got, limits, named)
		}

		slices.Reverse(bindings)
		slices.Reverse(sets)
		if again := tenancy.NewRules(namespace, sets, bindings).Decide(cluster); again != got {
			t.Fatalf("got %+v, and %+v in the opposite order", got, again)
		}
		// Absence is not a request: with fewer objects, the result is never newly Denied for the same reason.
		for i := range bindings {
			fewer := tenancy.NewRules(namespace, sets, slices.Delete(slices.Clone(bindings), i, i+1)).Decide(cluster)
			if fewer.Access == tenancy.Denied && fewer.Binding != cluster.Binding {
				t.Fatalf("got %+v without %+v: the cluster was not chosen by this binding", fewer, bindings[i])
			}
			if bindings[i].Name == cluster.Binding && bindings[i].Namespace == namespace && fewer.Access == tenancy.Denied {
				t.Fatalf("got %+v although the binding is missing", fewer)
			}
		}
		if none := tenancy.NewRules(namespace, nil, bindings).Decide(cluster); none.Access == tenancy.Denied && !requested {
			t.Fatalf("got %+v without sets", none)
		}
		if none := tenancy.NewRules(namespace, sets, nil).Decide(cluster); none.Access != tenancy.Unknown {
			t.Fatalf("got %+v without bindings, want Unknown", none)
		}
	})
}

func TestLimits_AllowsKind(t *testing.T) {
	var unknown *tenancy.Limits
	some := &tenancy.Limits{Kinds: []v1alpha1.ObjectKind{{Group: "apps", Kind: "*"}, {Kind: "ConfigMap"}}}
	for _, test := range []struct {
		reason      string
		limits      *tenancy.Limits
		group, kind string
		want        bool
	}{
		{"unknown limits", unknown, "", "ConfigMap", false},
		{"limits without kinds", &tenancy.Limits{}, "rbac.authorization.k8s.io", "ClusterRole", true},
		{"a kind of the core group", some, "", "ConfigMap", true},
		{"another kind of the core group", some, "", "Secret", false},
		{"every kind of a group", some, "apps", "Deployment", true},
		{"a kind with this name in another group", some, "example.com", "ConfigMap", false},
	} {
		if got := test.limits.AllowsKind(test.group, test.kind); got != test.want {
			t.Errorf("%s: unexpected result of AllowsKind(%q, %q): %t", test.reason, test.group, test.kind, got)
		}
	}
}

func TestNilRules_DecideNothing(t *testing.T) {
	var rules *tenancy.Rules
	if d := rules.Decide(tenancy.Cluster{Binding: "a"}); d.Access != tenancy.Unknown {
		t.Errorf("nil Rules: want Unknown, got %+v", d)
	}
	if rules.Bound() {
		t.Error("nil Rules: Bound is true")
	}
}

func ExampleRules_Decide() {
	sets := []tenancy.Set{{Name: "europe", Selector: labels.SelectorFromSet(labels.Set{"region": "eu"})}}
	bindings := []tenancy.Binding{{Namespace: "shop", Name: "use-europe", Set: "europe"}}
	rules := tenancy.NewRules("shop", sets, bindings)
	fmt.Println(rules.Decide(tenancy.Cluster{Labels: labels.Set{"region": "eu"}}).Access)
	fmt.Println(rules.Decide(tenancy.Cluster{Labels: labels.Set{"region": "us"}}).Access)
	// The cluster was chosen by the binding, and the set does not select it any more.
	fmt.Println(rules.Decide(tenancy.Cluster{Labels: labels.Set{"region": "us"}, Binding: "use-europe"}).Access)
	// Output:
	// Allowed
	// Unknown
	// Denied
}

// BenchmarkRules decides about 10,000 clusters for each namespace in turn. There are 1,000 namespaces, each with a
// binding of its own set.
func BenchmarkRules(b *testing.B) {
	var rules []*tenancy.Rules
	for i := range 1000 {
		name := fmt.Sprintf("tenant-%d", i)
		sets := []tenancy.Set{{Name: name, Selector: labels.SelectorFromSet(labels.Set{"tenant": name})}}
		rules = append(rules, tenancy.NewRules(name, sets, []tenancy.Binding{{Namespace: name, Name: name, Set: name}}))
	}
	clusters := make([]tenancy.Cluster, 10000)
	for i := range clusters {
		clusters[i].Labels = labels.Set{"tenant": fmt.Sprintf("tenant-%d", i%1000), "region": "eu"}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		allowed := 0
		for _, c := range clusters {
			if rules[i%1000].Decide(c).Access == tenancy.Allowed {
				allowed++
			}
		}
		if allowed != 10 {
			b.Fatalf("%d clusters are allowed, want 10", allowed)
		}
	}
}

// TestRules_OfSet checks that the rules of one set neither allow nor deny by the bindings of others.
func TestRules_OfSet(t *testing.T) {
	rules := tenancy.NewRules("shop", []tenancy.Set{
		{Name: "europe", Selector: labels.SelectorFromSet(labels.Set{"region": "eu"})},
		{Name: "all", Selector: labels.Everything()},
	}, []tenancy.Binding{
		{Namespace: "shop", Name: "a", Set: "all"}, {Namespace: "shop", Name: "e", Set: "europe"}})
	eu, us := labels.Set{"region": "eu"}, labels.Set{"region": "us"}
	for _, test := range []struct {
		set     string
		cluster tenancy.Cluster
		access  tenancy.Access
		binding string
	}{
		{"europe", tenancy.Cluster{Labels: eu}, tenancy.Allowed, "e"},
		{"europe", tenancy.Cluster{Labels: us}, tenancy.Unknown, ""},
		{"europe", tenancy.Cluster{Labels: us, Binding: "e"}, tenancy.Denied, "e"},
		{"europe", tenancy.Cluster{Labels: us, Binding: "a"}, tenancy.Unknown, ""},
		{"all", tenancy.Cluster{Labels: us, Binding: "e"}, tenancy.Allowed, "a"},
		{"none", tenancy.Cluster{Labels: eu}, tenancy.Unknown, ""},
	} {
		if d := rules.OfSet(test.set).Decide(test.cluster); d.Access != test.access || d.Binding != test.binding {
			t.Errorf("ClusterSet %s, %v: unexpected decision %+v", test.set, test.cluster, d)
		}
	}
	if d := rules.Decide(tenancy.Cluster{Labels: us}); d.Binding != "a" {
		t.Errorf("the rules of all sets have changed: %+v", d)
	}
	var none *tenancy.Rules
	if d := none.OfSet("all").Decide(tenancy.Cluster{Labels: eu}); d.Access != tenancy.Unknown {
		t.Errorf("nil Rules: want Unknown, got %+v", d)
	}
}
