package addon_test

import (
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// painters returns add-ons in Go, each with a ConfigMap in the color of its configuration.
func (h *hub) painters(names ...string) addon.Options {
	o := addon.Options{}
	for _, name := range names {
		o.Agents = append(o.Agents, echo{h.name(name)})
	}
	return o
}

// byPlacements installs an add-on by Placements. The color is the name of the Placement; without a Placement there is
// none.
func (h *hub) byPlacements(placements ...string) func(*v1alpha1.AddonSpec) {
	for _, name := range placements {
		h.color(name, name)
	}
	return func(s *v1alpha1.AddonSpec) {
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs"}}
		s.Install = v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements}
		for _, name := range placements {
			s.Install.Placements = append(s.Install.Placements, v1alpha1.PlacementInstall{
				Namespace: h.Namespace, Name: name, Configs: []v1alpha1.ConfigReference{h.reference(name)},
			})
		}
	}
}

// createMemberAddon creates a MemberAddon as a user does.
func (h *hub) createMemberAddon(name, member string, change func(*v1alpha1.MemberAddonSpec)) *v1alpha1.MemberAddon {
	h.T.Helper()
	m := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespaceOf(member), Name: h.name(name)}}
	if change != nil {
		change(&m.Spec)
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), m))
	return m
}

// change changes the spec of an Addon.
func (h *hub) change(name string, change func(*v1alpha1.AddonSpec)) {
	h.T.Helper()
	a := h.get(name)
	before := a.DeepCopy()
	change(&a.Spec)
	require.NoError(h.T, h.Client.Patch(h.T.Context(), a, client.MergeFrom(before)))
}

// waitForColor waits until a member has an add-on in a color, and is healthy.
func (h *hub) waitForColor(name, member, color string) {
	h.T.Helper()
	h.Holds(member+" has "+name+" in "+color, func() bool {
		return isTrue(h.memberAddon(name, member), v1alpha1.ConditionAvailable) && len(h.works(name, member)) == 1 &&
			h.colorOf(name, member) == color
	})
}

func (h *hub) waitForRemoval(name, member string) {
	h.T.Helper()
	h.Holds(member+" does not have "+name, func() bool {
		return h.memberAddon(name, member) == nil && len(h.works(name, member)) == 0
	})
}

// waitForPlacement waits until the status of a MemberAddon names a Placement; empty: none.
func (h *hub) waitForPlacement(name, member, placement string) {
	h.T.Helper()
	if placement != "" {
		placement = h.Namespace + "/" + placement
	}
	h.Holds("Placement "+placement+" applies to "+member, func() bool {
		return h.memberAddon(name, member).Status.Placement == placement
	})
}

func (h *hub) installedBy(name, member string) string {
	h.T.Helper()
	m := h.memberAddon(name, member)
	require.NotNil(h.T, m, member)
	return m.Annotations[v1alpha1.InstalledByAnnotation]
}

// requireCondition waits until a MemberAddon has a condition with a status and reason, and returns it.
func (h *hub) requireCondition(m *v1alpha1.MemberAddon, kind string, status metav1.ConditionStatus,
	reason string) metav1.Condition {
	h.T.Helper()
	var found metav1.Condition
	h.Holds(kind+" is "+string(status)+", "+reason, func() bool {
		now := &v1alpha1.MemberAddon{}
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(m), now))
		current := meta.FindStatusCondition(now.Status.Conditions, kind)
		if current != nil {
			found = *current
		}
		return current != nil && current.Status == status && current.Reason == reason
	})
	return found
}

// unplace deletes a Placement, as a user does who creates it again later.
func (h *hub) deletePlacement(name string) {
	h.T.Helper()
	require.NoError(h.T,
		h.Client.DeleteAllOf(h.T.Context(), &placementv1alpha1.PlacementDecision{}, client.InNamespace(h.Namespace),
			client.MatchingLabels{placementv1alpha1.PlacementLabel: name}))
	require.NoError(h.T, h.Client.Delete(h.T.Context(),
		&placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}))
}

// undecide changes a Placement so that it has no decision for its current spec.
func (h *hub) removeDecision(name string) {
	h.T.Helper()
	p := &placementv1alpha1.Placement{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.Namespace, Name: name}, p))
	before := p.DeepCopy()
	p.Spec.Policy.Tolerations = []placementv1alpha1.Toleration{
		{Key: "example.com/maintenance", Operator: corev1.TolerationOpExists}}
	require.NoError(h.T, h.Client.Patch(h.T.Context(), p, client.MergeFrom(before)))
	require.NotEqual(h.T, before.Generation, p.Generation)
	require.NoError(h.T,
		h.Client.DeleteAllOf(h.T.Context(), &placementv1alpha1.PlacementDecision{}, client.InNamespace(h.Namespace),
			client.MatchingLabels{placementv1alpha1.PlacementLabel: name}))
}

// member changes a MemberCluster.
func (h *hub) member(name string, change func(*membershipv1alpha1.MemberCluster)) {
	h.T.Helper()
	m := &membershipv1alpha1.MemberCluster{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Name: h.name(name)}, m))
	before := m.DeepCopy()
	change(m)
	require.NoError(h.T, h.Client.Patch(h.T.Context(), m.DeepCopy(), client.MergeFrom(before)))
	require.NoError(h.T, h.Client.Status().Patch(h.T.Context(), m, client.MergeFrom(before)))
}

func (h *hub) joined(name string, status metav1.ConditionStatus) {
	h.T.Helper()
	h.member(name, func(m *membershipv1alpha1.MemberCluster) {
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: membershipv1alpha1.ConditionJoined,
			Status: status, Reason: "Test"})
	})
}

func (h *hub) startLeave(name string) {
	h.T.Helper()
	h.member(name, func(m *membershipv1alpha1.MemberCluster) { m.Spec.State = membershipv1alpha1.StateLeave })
}

// anything allows a MemberAddon to reference configurations in the namespace of the test.
func allowAll(*v1alpha1.MemberAddon, v1alpha1.ConfigReference) error { return nil }
