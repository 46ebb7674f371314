package membership_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
)

func TestNamespaceFor(t *testing.T) {
	for _, test := range []struct{ reason, prefix, member, want string }{
		{
			"a short name is readable in its namespace",
			"member-", "east", "member-east",
		},
		{
			"63 characters are what a namespace may have",
			"member-", strings.Repeat("a", 56), "member-" + strings.Repeat("a", 56),
		},
		{
			"one more is hashed: names of 57 to 63 characters are valid for a MemberCluster, and must not fail later",
			"member-", strings.Repeat("a", 57), "member-" + strings.Repeat("a", 45) + "-cead13bd49",
		},
		{
			"what is cut off must not end in the middle of two hyphens",
			"member-", strings.Repeat("a", 44) + "-" + strings.Repeat("b", 18),
			"member-" + strings.Repeat("a", 44) + "-c3f3163d73",
		},
	} {
		if got := membership.NamespaceFor(test.prefix, test.member); got != test.want {
			t.Errorf("%s: NamespaceFor(%q, %q) = %q, want %q", test.reason, test.prefix, test.member, got, test.want)
		}
	}
}

func TestNamespaceForIsValidAndDistinct(t *testing.T) {
	name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		namespace := membership.NamespaceFor("member-", a)
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			t.Fatalf("the namespace %q of %q: %v", namespace, a, problems)
		}
		if a != b && namespace == membership.NamespaceFor("member-", b) {
			t.Fatalf("%q and %q share the namespace %q", a, b, namespace)
		}
	})
}

func TestReservedLabel(t *testing.T) {
	want := map[string]bool{
		"region":                         false,
		"example.com/region":             false,
		"notkubernetes.io/region":        false, // another domain that ends alike
		"kubernetes.io/metadata.name":    true,
		"topology.kubernetes.io/region":  true,
		"k8s.io/x":                       true,
		"membership.muster.dev/anything": true,
		"muster.dev/anything":            true,
	}
	got := map[string]bool{}
	for key := range want {
		got[key] = membership.ReservedLabel(key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got)\n" + diff)
	}
}
