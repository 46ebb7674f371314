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
			"short name is part of the namespace",
			"member-", "east", "member-east",
		},
		{
			"namespace of 63 characters, the maximum",
			"member-", strings.Repeat("a", 56), "member-" + strings.Repeat("a", 56),
		},
		{
			"name of 57 characters is shortened and hashed",
			"member-", strings.Repeat("a", 57), "member-" + strings.Repeat("a", 45) + "-cead13bd49",
		},
		{
			"shortened name must not end with a hyphen before the hash",
			"member-", strings.Repeat("a", 44) + "-" + strings.Repeat("b", 18),
			"member-" + strings.Repeat("a", 44) + "-c3f3163d73",
		},
	} {
		if got := membership.NamespaceFor(test.prefix, test.member); got != test.want {
			t.Errorf("%s: NamespaceFor(%q, %q) = %q, want %q", test.reason, test.prefix, test.member, got, test.want)
		}
	}
}

func TestNamespaceFor_ValidAndDistinct(t *testing.T) {
	name := rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := name.Draw(t, "a"), name.Draw(t, "b")
		namespace := membership.NamespaceFor("member-", a)
		if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
			t.Fatalf("namespace %q of member %q is not valid: %v", namespace, a, problems)
		}
		if a != b && namespace == membership.NamespaceFor("member-", b) {
			t.Fatalf("members %q and %q have the same namespace %q", a, b, namespace)
		}
	})
}

func TestReservedLabel(t *testing.T) {
	want := map[string]bool{
		"region":                         false,
		"example.com/region":             false,
		"notkubernetes.io/region":        false, // another domain with the same suffix
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
