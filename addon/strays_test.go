package addon

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestStrays: what is in a namespace of no member goes, but for what may be a member's of which nobody knows yet where its namespace is.
func TestStrays(t *testing.T) {
	pending := member("pending", "")
	meta.SetStatusCondition(&pending.Status.Conditions, metav1.Condition{Type: membershipv1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: "NotDecided"})
	long := strings.Repeat("x", 63)
	for _, row := range []struct {
		reason, namespace string
		byHand            bool
		members           []*membershipv1alpha1.MemberCluster
		stray             bool
	}{
		{"a member's is none", "member-east", false, []*membershipv1alpha1.MemberCluster{member("east", "member-east")}, false},
		{"of no member", "member-east", false, nil, true},
		{"what a person has made tells him so instead", "member-east", true, nil, false},
		{"other members do not matter", "member-east", false, []*membershipv1alpha1.MemberCluster{member("west", "member-west"), pending, member("new", "")}, true},
		{"nobody has looked at its member since that came out of a backup", "member-east", false, []*membershipv1alpha1.MemberCluster{pending, member("east", "")}, false},
		{"whatever the hub calls namespaces", "fleet-a-east", false, []*membershipv1alpha1.MemberCluster{member("east", "")}, false},
		{"and however long the name is", membership.NamespaceFor("fleet-", long), false, []*membershipv1alpha1.MemberCluster{member(long, "")}, false},
		{"who was looked at has none", "member-pending", false, []*membershipv1alpha1.MemberCluster{pending}, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			m := v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: row.namespace, Name: "logs"}}
			if !row.byHand {
				m.Annotations = map[string]string{v1alpha1.InstalledByAnnotation: "fleet/all"}
			}
			k := &known{addon: addonOf("logs"), has: []v1alpha1.MemberAddon{m}}
			for _, m := range row.members {
				k.members = append(k.members, *m)
			}
			l := &addonLook{addons: addons{&shared{cache: k}}, addon: k.addon}
			require.NoError(t, l.observe(t.Context()))
			require.Equal(t, row.stray, len(l.strays) == 1)
		})
	}
}
