package addon_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// hostedAgent is an add-on in Go with objects for the member and for the cluster of its agent, and with hooks for both
// if it has a farewell.
type hostedAgent struct {
	name  string
	hooks bool
}

func (l hostedAgent) Name() string { return l.name }

func (l hostedAgent) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	at := in.InstallNamespace
	if in.Hosting != nil {
		at = in.Hosting.Namespace
	}
	thing := func(name, namespace, location string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: namespace,
			Annotations: map[string]string{v1alpha1.LocationAnnotation: location}}
	}
	data := map[string]string{"member": in.Member.Name, "color": in.Settings.Variables["COLOR"]}
	objects := []client.Object{
		&corev1.ConfigMap{ObjectMeta: thing("rules", in.InstallNamespace, v1alpha1.LocationMember), Data: data},
		&corev1.ConfigMap{ObjectMeta: thing("agent", at, v1alpha1.LocationHosting), Data: data},
	}
	if l.hooks {
		for _, job := range []*batchv1.Job{
			{ObjectMeta: thing("sweep", in.InstallNamespace, v1alpha1.LocationMember)},
			{ObjectMeta: thing("stop", at, v1alpha1.LocationHosting)},
		} {
			job.Annotations[v1alpha1.PreDeleteAnnotation] = "true"
			objects = append(objects, job)
		}
	}
	return objects, nil
}

// newHostingHub returns a hub with members a and b, which a Placement selects, and h and i, which may host agents.
func newHostingHub(t *testing.T) *hub {
	h := newHub(t)
	h.members("a", "b", "h", "i")
	h.choose("all", "a", "b")
	return h
}

// hosted installs an add-on on the members of a Placement, with its agents on a hosting member.
func (h *hub) hosted(on string) func(*v1alpha1.AddonSpec) {
	return func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Removal.DeadlineSeconds = 10
		s.HostingMembers = []string{h.name("h"), h.name("i")}
		if on != "" {
			s.Install.Placements[0].HostingMember = h.name(on)
		}
	}
}

// move sets the hosting member of the agents of an add-on; empty: the members themselves.
func (h *hub) move(name, to string) {
	h.T.Helper()
	a := h.get(name)
	before := a.DeepCopy()
	a.Spec.Install.Placements[0].HostingMember = ""
	if to != "" {
		a.Spec.Install.Placements[0].HostingMember = h.name(to)
	}
	require.NoError(h.T, h.Client.Patch(h.T.Context(), a, client.MergeFrom(before)))
}

// worksFor returns the Works of a member's add-on on another member.
func (h *hub) worksFor(name, member, on string) []workv1alpha1.Work {
	h.T.Helper()
	var list workv1alpha1.WorkList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(h.namespaceOf(on)),
		client.MatchingLabels{v1alpha1.AddonLabel: h.name(name), v1alpha1.HostedForLabel: h.namespaceOf(member)}))
	return list.Items
}

// worksOn returns the Works of a member's add-on on the member itself.
func (h *hub) worksOn(name, member string) (own []workv1alpha1.Work) {
	h.T.Helper()
	for _, w := range h.works(name, member) {
		if w.Labels[v1alpha1.HostedForLabel] == "" {
			own = append(own, w)
		}
	}
	return own
}

// names returns the names of the objects in Works.
func names(works []workv1alpha1.Work) string {
	var all []string
	for _, w := range works {
		for _, m := range w.Spec.Manifests {
			if strings.Contains(string(m.Raw), `"kind":"Namespace"`) {
				continue // the namespace of the add-on
			}
			_, after, _ := strings.Cut(string(m.Raw), `"name":"`)
			name, _, _ := strings.Cut(after, `"`)
			all = append(all, name)
		}
	}
	return strings.Join(all, " ")
}

// runs reports whether the add-on is healthy on a member, with its agent on the given one; empty: on the member
// itself.
func (h *hub) runs(name, member, on string) bool {
	h.T.Helper()
	m := h.memberAddon(name, member)
	if !isTrue(m, v1alpha1.ConditionAvailable) || !isTrue(m, v1alpha1.ConditionManifestsApplied) {
		return false
	}
	for _, other := range []string{"h", "i"} {
		want := ""
		if other == on {
			want = "agent"
		}
		if names(h.worksFor(name, member, other)) != want {
			return false
		}
	}
	if on == "" {
		return m.Status.Hosting == nil && names(h.worksOn(name, member)) == "agent rules"
	}
	want := v1alpha1.HostingStatus{Member: h.name(on), Namespace: template.HostingNamespace(h.name(name), h.name(member))}
	return m.Status.Hosting != nil && *m.Status.Hosting == want && names(h.worksOn(name, member)) == "rules"
}

// revive restarts the agent of a member, which then handles its Works.
func (m *simulatedAgents) startAgent(name string) {
	m.mu.Lock()
	for i, dead := range m.dead {
		if dead == m.h.namespaceOf(name) {
			m.dead[i] = ""
		}
	}
	isReady := m.isReady
	m.mu.Unlock()
	m.setReadiness(isReady)
}

// TestHosting_AgentsOfSeveralMembers checks that the agents of several members run on another one without conflicts,
// and are deleted with the add-on.
func TestHosting_AgentsOfSeveralMembers(t *testing.T) {
	testkit.Virtual(t, testHostingAgentsOfSeveralMembers)
}

func testHostingAgentsOfSeveralMembers(t *testing.T) {
	h := newHostingHub(t)
	h.choose("all", "a", "b", "h")
	h.runAgents()
	options := addon.Options{Agents: []addon.Agent{hostedAgent{name: h.name("x")}}}
	r := h.start(options)
	h.color("colors", "blue")
	h.addon("x", func(s *v1alpha1.AddonSpec) {
		h.hosted("h")(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs"}}
		s.Install.Placements[0].Configs = []v1alpha1.ConfigReference{h.reference("colors")}
	})
	for _, m := range []string{"a", "b"} {
		h.Holds("the add-on of "+m+" runs", func() bool { return h.runs("x", m, "h") })
		works := h.worksFor("x", m, "h")
		require.True(t, manifestsContain(&works[0], `"`+h.name(m)+`"`))
		require.True(t, manifestsContain(&works[0], h.memberAddon("x", m).Status.Hosting.Namespace))
	}
	h.Holds("the hosting member runs its own add-on", func() bool { return h.runs("x", "h", "") })
	require.NotEqual(t, h.memberAddon("x", "a").Status.Hosting.Namespace, h.memberAddon("x", "b").Status.Hosting.Namespace)

	h.color("colors", "red")
	h.Holds("both parts are red", func() bool {
		return h.colorOf("x", "a") == "red" && manifestsContain(&h.worksFor("x", "a", "h")[0], "red") && h.runs("x", "a", "h")
	})
	r.quiet(t)
	r.stop()
	again := h.start(options)
	h.Holds("the controllers read Works", func() bool {
		return again.wire.Count("GET works") > 0
	})
	again.quiet(t)
	require.Empty(t, again.wire.Writes(), "a restart must not write")

	h.choose("all", "a", "h")
	h.Holds("no objects of b remain", func() bool {
		return h.memberAddon("x", "b") == nil && len(h.worksFor("x", "b", "h")) == 0 && len(h.works("x", "b")) == 0
	})
	require.True(t, h.runs("x", "a", "h"), "want the add-ons of other members to stay")
	require.NoError(t, h.Client.Delete(t.Context(), h.get("x")))
	h.Holds("no MemberAddons remain", func() bool {
		return h.memberAddon("x", "a") == nil && h.memberAddon("x", "h") == nil
	})
	require.Empty(t, h.works("x", "h"))
}

// TestHosting_Template checks the locations in a template.
func TestHosting_Template(t *testing.T) { testkit.Virtual(t, testHostingTemplate) }

func testHostingTemplate(t *testing.T) {
	h := newHostingHub(t)
	h.runAgents()
	h.start(addon.Options{})
	created := &v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: h.name("t")}}
	for _, text := range []string{
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"rules"}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"agent",` +
			`"annotations":{"addon.muster.dev/location":"Hosting"}},"data":{"for":"${CLUSTER_NAME}"}}`,
	} {
		m := v1alpha1.TemplateManifest{}
		m.Raw = []byte(text)
		created.Spec.Manifests = append(created.Spec.Manifests, m)
	}
	require.NoError(t, h.Client.Create(t.Context(), created))
	h.addon("x", func(s *v1alpha1.AddonSpec) {
		h.hosted("h")(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addontemplates",
			Defaults: []v1alpha1.ObjectName{{Name: created.Name}}}}
	})
	h.Holds("the add-on runs", func() bool { return isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable) })
	hosting := h.memberAddon("x", "a").Status.Hosting
	require.Equal(t, "agent", names(h.worksFor("x", "a", "h")))
	require.Equal(t, "rules", names(h.worksOn("x", "a")))
	require.Contains(t, string(h.worksFor("x", "a", "h")[0].Spec.Manifests[0].Raw), hosting.Namespace)
	require.Contains(t, string(h.worksOn("x", "a")[0].Spec.Manifests[0].Raw), "muster-addons")
}

// TestHosting_Unsupported checks that an invalid hosting member is reported, and that nothing is removed.
func TestHosting_Unsupported(t *testing.T) { testkit.Virtual(t, testHostingUnsupported) }

func testHostingUnsupported(t *testing.T) {
	h := newHostingHub(t)
	members := h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{hostedAgent{name: h.name("x")}}})
	h.addon("x", h.hosted("h"))
	h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") })
	conditionContains := func(kind, text string) func() bool {
		return func() bool {
			m := h.memberAddon("x", "a")
			c := meta.FindStatusCondition(m.Status.Conditions, kind)
			return c != nil && c.Status != metav1.ConditionTrue && strings.Contains(c.Message, text)
		}
	}
	change := func(to string) {
		m := h.memberAddon("x", "a")
		before := m.DeepCopy()
		m.Spec.HostingMember = to
		require.NoError(t, h.Client.Patch(t.Context(), m, client.MergeFrom(before)))
	}
	require.NoError(t, h.Client.Create(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{
		Name: h.name("new"), Labels: map[string]string{"hub": h.Namespace},
	}}))
	a := h.get("x")
	before := a.DeepCopy()
	a.Spec.HostingMembers = append(a.Spec.HostingMembers, h.name("new"))
	require.NoError(t, h.Client.Patch(t.Context(), a, client.MergeFrom(before)))
	for _, c := range []struct{ reason, to, message string }{
		{"a hosting member that the Addon does not list is rejected", h.name("b"),
			"is not listed in spec.hostingMembers of the Addon"},
		{"a hosting member without a namespace is rejected", h.name("new"), "is not a member"},
	} {
		change(c.to)
		h.Holds(c.reason, conditionContains(v1alpha1.ConditionConfigured, c.message))
		require.Equal(t, v1alpha1.ReasonUnsupported, meta.FindStatusCondition(h.memberAddon("x", "a").Status.Conditions,
			v1alpha1.ConditionConfigured).Reason)
		r.quiet(t)
		require.Equal(t, "agent", names(h.worksFor("x", "a", "h")), "want the agent to stay on its hosting member")
		require.Equal(t, "rules", names(h.worksOn("x", "a")))
		require.Equal(t, h.name("h"), h.memberAddon("x", "a").Status.Hosting.Member)
	}
	change("")
	h.Holds("the add-on runs again", func() bool {
		return h.runs("x", "a", "h") && isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionConfigured)
	})

	h.health("h", metav1.ConditionUnknown)
	h.Holds("the unreachable hosting member is reported", conditionContains(v1alpha1.ConditionAvailable,
		"Member "+h.name("h")+", which hosts the add-on agent, cannot be reached"))
	h.health("h", metav1.ConditionTrue)
	h.Holds("the add-on runs again", func() bool { return h.runs("x", "a", "h") })

	members.setReadiness(func(w *workv1alpha1.Work) bool { return w.Labels[v1alpha1.HostedForLabel] == "" })
	h.Holds("a failure on the hosting member is reported", func() bool {
		return isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionDegraded)
	})
	members.setReadiness(nil)

	h.leave("h")
	h.Holds("the leaving hosting member is reported", conditionContains(v1alpha1.ConditionConfigured,
		"is leaving and removes the agent: choose another hosting member"))
	for _, w := range append(h.worksFor("x", "a", "h"), h.worksFor("x", "b", "h")...) { // as the leave gate does
		require.NoError(t, h.Client.Delete(t.Context(), &w))
	}
	r.quiet(t)
	require.Empty(t, h.works("x", "h"), "want no new Works on a leaving member")
	require.Equal(t, "rules", names(h.worksOn("x", "a")))
	h.move("x", "i")
	for _, m := range []string{"a", "b"} {
		h.Holds("the agent of "+m+" runs on the other hosting member", func() bool { return h.runs("x", m, "i") })
	}
}

// TestHosting_ForgedLabels checks that an agent which sets the labels of another member on its Works does not affect
// that member.
func TestHosting_ForgedLabels(t *testing.T) { testkit.Virtual(t, testHostingForgedLabels) }

func testHostingForgedLabels(t *testing.T) {
	h := newHostingHub(t)
	h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{hostedAgent{h.name("x"), false}}})
	h.addon("x", h.hosted("h"))
	h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") && h.runs("x", "b", "h") })
	r.quiet(t)
	label := func(w *workv1alpha1.Work, of string) {
		before := w.DeepCopy()
		w.Labels[v1alpha1.HostedForLabel] = h.namespaceOf(of)
		require.NoError(t, h.Client.Patch(t.Context(), w, client.MergeFrom(before)))
	}
	own := h.worksOn("x", "b")[0]
	label(&own, "a")
	r.quiet(t)
	now := &workv1alpha1.Work{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKeyFromObject(&own), now))
	require.Equal(t, own.UID, now.UID, "want the Work of b to stay")
	require.Nil(t, now.DeletionTimestamp)
	require.True(t, h.runs("x", "a", "h"))
}
