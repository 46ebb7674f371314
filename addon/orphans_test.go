package addon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
)

// TestAddons_OrphanedMemberAddons checks that a MemberAddon in a namespace of no member stays, unless the Addon is
// deleted: a missing MemberCluster, for example on a restored hub, is not a request to remove the add-ons of its
// member.
func TestAddons_OrphanedMemberAddons(t *testing.T) {
	for _, row := range []struct {
		reason           string
		byUser, deleting bool
		members          []*membershipv1alpha1.MemberCluster
		orphan           bool
	}{
		{"the namespace belongs to a member",
			false, true, []*membershipv1alpha1.MemberCluster{member("east", "member-east")}, false},
		{"the member is missing", false, false, nil, false},
		{"other members exist", false, false, []*membershipv1alpha1.MemberCluster{member("west", "member-west"),
			member("new", "")}, false},
		{"the member has no namespace yet", false, false, []*membershipv1alpha1.MemberCluster{member("east", "")}, false},
		{"the MemberAddon was created by a user", true, false, nil, false},
		{"the Addon is deleted", false, true, nil, true},
		{"the Addon is deleted, and the MemberAddon was created by a user", true, true, nil, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			m := v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "member-east", Name: "logs"}}
			if !row.byUser {
				m.Annotations = map[string]string{v1alpha1.InstalledByAnnotation: "fleet/all"}
			}
			k := &known{addon: addonOf("logs"), memberAddons: []v1alpha1.MemberAddon{m}}
			if row.deleting {
				k.addon.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			for _, m := range row.members {
				k.members = append(k.members, *m)
			}
			l := &addonReconciliation{addons: addons{&shared{clients: clients{cache: k}}}, addon: k.addon}
			require.NoError(t, l.observe(t.Context()))
			require.Equal(t, row.orphan, len(l.orphans) == 1)
		})
	}
}
