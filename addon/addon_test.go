package addon_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// echo is an add-on in Go with a ConfigMap on each member.
type echo struct{ name string }

func (e echo) Name() string { return e.name }

func (e echo) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: e.name},
		Data:       map[string]string{"member": in.Member.Name, "color": in.Settings.Variables["COLOR"]},
	}}, nil
}

func (h *hub) addon(name string, change func(*v1alpha1.AddonSpec)) *v1alpha1.Addon {
	h.T.Helper()
	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: h.name(name)}}
	if change != nil {
		change(&a.Spec)
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), a))
	return a
}

// byPlacement installs an add-on on the members of a Placement of that name.
func (h *hub) byPlacement(placement string) func(*v1alpha1.AddonSpec) {
	return func(s *v1alpha1.AddonSpec) {
		s.Install = v1alpha1.InstallStrategy{Type: v1alpha1.InstallPlacements,
			Placements: []v1alpha1.PlacementInstall{{Namespace: h.Namespace, Name: placement}}}
	}
}

// memberAddon returns the add-on on a member; nil: it does not exist.
func (h *hub) memberAddon(name, member string) *v1alpha1.MemberAddon {
	h.T.Helper()
	m := &v1alpha1.MemberAddon{}
	err := h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: h.namespaceOf(member), Name: h.name(name)}, m)
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(h.T, err)
	return m
}

func isTrue(m *v1alpha1.MemberAddon, kind string) bool {
	return m != nil && meta.IsStatusConditionTrue(m.Status.Conditions, kind)
}

func (h *hub) works(name, member string) []workv1alpha1.Work {
	h.T.Helper()
	var list workv1alpha1.WorkList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(h.namespaceOf(member)),
		client.MatchingLabels{v1alpha1.AddonLabel: h.name(name)}))
	return list.Items
}

// TestInstall checks that an add-on of a Placement is installed on its members, becomes healthy, and is removed when
// the Placement does not select them any more.
func TestInstall(t *testing.T) { testkit.Virtual(t, testInstall) }

func testInstall(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.choose("some", "a", "b")
	h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	h.addon("echo", h.byPlacement("some"))
	for _, m := range []string{"a", "b"} {
		h.Holds(m+" has the add-on", func() bool {
			return isTrue(h.memberAddon("echo", m), v1alpha1.ConditionAvailable)
		})
		works := h.works("echo", m)
		require.Len(t, works, 1)
		require.JSONEq(t, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"muster-addons"}}`,
			string(works[0].Spec.Manifests[0].Raw),
			"want a manifest of the install namespace")
	}
	require.Nil(t, h.memberAddon("echo", "c"))
	h.Holds("the Addon reports two available members", func() bool {
		a := &v1alpha1.Addon{}
		require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: h.name("echo")}, a))
		return meta.IsStatusConditionTrue(a.Status.Conditions, "Installed") && a.Status.Counts.Available == 2
	})
	r.quiet(t)
	t.Log(r.wire.Writes())

	h.choose("some", "b", "c")
	h.Holds("the add-on is removed from a", func() bool {
		return h.memberAddon("echo", "a") == nil && len(h.works("echo", "a")) == 0
	})
	h.Holds("c has the add-on", func() bool {
		return isTrue(h.memberAddon("echo", "c"), v1alpha1.ConditionAvailable)
	})
	r.quiet(t)
	r.stop()

	again := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	h.Holds("the controllers read Works", func() bool { return again.wire.Count("GET works") > 0 })
	again.quiet(t)
	require.Empty(t, again.wire.Writes(), "a restart must not write")

	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: h.name("echo")}}
	require.NoError(t, h.Client.Delete(t.Context(), a))
	h.Holds("the Addon is deleted", func() bool {
		return apierrors.IsNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(a), a)) &&
			h.memberAddon("echo", "b") == nil && h.memberAddon("echo", "c") == nil
	})
	require.Empty(t, h.works("echo", "b"))
}
