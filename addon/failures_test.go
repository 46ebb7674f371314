package addon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
)

// TestConfig_Failures checks that a member with an invalid configuration keeps its revision, stays available and
// reports the problem, and that all other members are updated.
func TestConfig_Failures(t *testing.T) { testkit.Virtual(t, testConfigFailures) }

func testConfigFailures(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.runAgents()
	h.choose("all", "a", "b")
	h.start(addon.Options{Agents: []addon.Agent{reader{h.name("reader")}}, Allow: allowAll})
	h.put(h.addonConfig("common", variables("COLOR", "blue")))
	h.put(h.configMap("own", "fine"))
	own := func(named ...string) func(*v1alpha1.MemberAddonSpec) {
		return func(s *v1alpha1.MemberAddonSpec) { s.Configs = h.references(named) }
	}
	h.createMemberAddon("reader", "a", own("configmaps own"))
	h.addon("reader", func(s *v1alpha1.AddonSpec) {
		s.Configs = []v1alpha1.ConfigKind{addonConfigs, configMaps}
		h.byPlacement("all")(s)
		s.Install.Placements[0].Configs = h.references([]string{"addonconfigs common"})
	})
	h.updated("reader", "a")
	h.updated("reader", "b")
	change := func(change func(*v1alpha1.MemberAddonSpec)) {
		m := h.memberAddon("reader", "a")
		before := m.DeepCopy()
		change(&m.Spec)
		require.NoError(t, h.Client.Patch(t.Context(), m, client.MergeFrom(before)))
	}
	large := func(s *v1alpha1.AddonConfigSpec) {
		for i := range 128 {
			variables(fmt.Sprintf("LARGE_%d", i), strings.Repeat("x", 4096))(s)
		}
	}
	for i, row := range []struct {
		name, reason, message string
		breakIt, repair       func()
	}{
		{
			"a configuration is missing", v1alpha1.ReasonConfigNotFound, "own",
			func() { require.NoError(t, h.Client.Delete(t.Context(), h.configMap("own", ""))) },
			func() { h.put(h.configMap("own", "fine")) },
		},
		{
			"the agent rejects a configuration", v1alpha1.ReasonConfigInvalid, "data.text: must not be nonsense",
			func() { h.put(h.configMap("own", "nonsense")) },
			func() { h.put(h.configMap("own", "fine")) },
		},
		{
			"an AddonConfig is too large", v1alpha1.ReasonConfigInvalid, "large",
			func() {
				h.put(h.addonConfig("large", large))
				change(own("addonconfigs common", "addonconfigs large", "configmaps own"))
			},
			func() { change(own("configmaps own")) },
		},
		{
			"the add-on does not support the kind", v1alpha1.ReasonUnsupported, "secrets",
			func() { change(own("secrets mine", "configmaps own")) },
			func() { change(own("configmaps own")) },
		},
		{
			"the hub does not have the kind", v1alpha1.ReasonConfigNotFound, "wonders",
			func() {
				h.change("reader", func(s *v1alpha1.AddonSpec) {
					s.Configs = append(s.Configs, v1alpha1.ConfigKind{Group: "example.com", Resource: "wonders"})
				})
				mustertest.Change(t, h.Client, h.memberAddon("reader", "a"), func(m *v1alpha1.MemberAddon) {
					m.Spec.Configs = append(m.Spec.Configs, v1alpha1.ConfigReference{
						Group: "example.com", Resource: "wonders", ObjectName: v1alpha1.ObjectName{Name: "one"},
					})
				})
			},
			func() { change(own("configmaps own")) },
		},
	} {
		testkit.Step(t, row.name, func() {
			before, worksBefore := h.memberAddon("reader", "a"), h.works("reader", "a")
			row.breakIt()
			condition := h.requireCondition(before, v1alpha1.ConditionConfigured, metav1.ConditionFalse, row.reason)
			require.Contains(t, condition.Message, row.message)
			color := fmt.Sprintf("color-%d", i)
			h.put(h.addonConfig("common", variables("COLOR", color)))
			h.Holds("the other member has the new color", func() bool { return h.data("reader", "b")["color"] == color })
			h.updated("reader", "b")
			now := h.memberAddon("reader", "a")
			require.True(t, isTrue(now, v1alpha1.ConditionAvailable), "want the assigned revision to stay available: %s",
				now.Status.Message)
			require.Equal(t, before.Status.AppliedRevision, now.Status.AppliedRevision)
			require.Equal(t, worksBefore[0].Generation, h.works("reader", "a")[0].Generation)
			h.Holds("the Addon is degraded", func() bool {
				return meta.IsStatusConditionTrue(h.get("reader").Status.Conditions, v1alpha1.ConditionDegraded)
			})
			row.repair()
			h.Holds("the member has the new color", func() bool { return h.data("reader", "a")["color"] == color })
			h.updated("reader", "a")
			h.requireCondition(now, v1alpha1.ConditionConfigured, metav1.ConditionTrue, v1alpha1.ReasonConfigured)
			h.Holds("the Addon is installed", func() bool {
				return meta.IsStatusConditionTrue(h.get("reader").Status.Conditions, v1alpha1.ConditionInstalled)
			})
		})
	}
}

// TestInstallNamespace checks the precedence of install namespaces: the MemberAddon, then a configuration, then the
// Addon.
func TestInstallNamespace(t *testing.T) { testkit.Virtual(t, testInstallNamespace) }

func testInstallNamespace(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.runAgents()
	h.start(addon.Options{Agents: []addon.Agent{reader{h.name("reader")}}})
	h.put(h.addonConfig("elsewhere", func(s *v1alpha1.AddonConfigSpec) { s.InstallNamespace = "by-config" }))
	h.addon("reader", func(s *v1alpha1.AddonSpec) {
		s.InstallNamespace = "by-addon"
		s.Configs = []v1alpha1.ConfigKind{addonConfigs}
	})
	configs := h.references([]string{"addonconfigs elsewhere"})
	h.createMemberAddon("reader", "a", nil)
	h.createMemberAddon("reader", "b", func(s *v1alpha1.MemberAddonSpec) { s.Configs = configs })
	h.createMemberAddon("reader", "c", func(s *v1alpha1.MemberAddonSpec) {
		s.Configs, s.InstallNamespace = configs,
			"by-member"
	})
	for member, want := range map[string]string{"a": "by-addon", "b": "by-config", "c": "by-member"} {
		m := h.updated("reader", member)
		require.Equal(t, want, m.Status.InstallNamespace, member)
		require.Equal(t, want, h.manifest("reader", member, "ConfigMap").GetNamespace(), member)
	}
	mustertest.Change(t, h.Client, h.memberAddon("reader", "c"), func(m *v1alpha1.MemberAddon) {
		m.Spec.InstallNamespace = ""
	})
	h.Holds("c has the add-on in the other namespace",
		func() bool { return h.manifest("reader", "c", "ConfigMap").GetNamespace() == "by-config" })
	h.updated("reader", "c")
}

// TestTemplate checks that an add-on without code has the manifests of its template on each member, and that a member
// for which the template cannot be rendered does not affect others.
func TestTemplate(t *testing.T) { testkit.Virtual(t, testTemplate) }

func testTemplate(t *testing.T) {
	h := newHub(t)
	h.members("a", "b", "c")
	h.runAgents()
	h.start(addon.Options{})
	template := &v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: h.name("template")}}
	manifests := func(texts ...string) {
		template.Spec.Manifests = nil
		for _, text := range texts {
			template.Spec.Manifests = append(template.Spec.Manifests,
				v1alpha1.TemplateManifest{RawExtension: runtime.RawExtension{Raw: []byte(text)}})
		}
		h.put(template)
	}
	const first = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"${ADDON_NAME}"},` +
		`"data":{"member":"${CLUSTER_NAME}","color":"${COLOR}"}}`
	manifests(first)
	t.Cleanup(func() { _ = h.Client.Delete(context.Background(), template) })
	h.put(h.addonConfig("blue", variables("COLOR", "blue")))
	h.put(h.addonConfig("empty", variables("SIZE", "none")))
	h.choose("all", "a", "b", "c")
	h.createMemberAddon("plain", "b", func(s *v1alpha1.MemberAddonSpec) {
		s.Configs = h.references([]string{"addonconfigs empty"})
	})
	h.addon("plain", func(s *v1alpha1.AddonSpec) {
		s.Configs = []v1alpha1.ConfigKind{addonConfigs, {
			Group: v1alpha1.GroupName, Resource: "addontemplates", Defaults: []v1alpha1.ObjectName{{Name: template.Name}},
		}}
		s.Configs[0].Defaults = []v1alpha1.ObjectName{{Namespace: h.Namespace, Name: "blue"}}
		h.byPlacement("all")(s)
	})
	for _, member := range []string{"a", "c"} {
		m := h.updated("plain", member)
		require.Equal(t, map[string]string{"member": h.name(member), "color": "blue"}, h.data("plain", member))
		require.Equal(t, "muster-addons", h.manifest("plain", member, "ConfigMap").GetNamespace())
		require.Equal(t, "muster-addons", h.manifest("plain", member, "Namespace").GetName())
		require.Len(t, m.Status.Configs, 2)
		require.Equal(t, []metav1.GroupResource{{Group: v1alpha1.GroupName, Resource: "addonconfigs"},
			{Group: v1alpha1.GroupName, Resource: "addontemplates"}}, m.Status.SupportedConfigs)
	}
	condition := h.requireCondition(h.memberAddon("plain", "b"), v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse,
		v1alpha1.ReasonManifestsFailed)
	require.Contains(t, condition.Message, "COLOR")
	require.Empty(t, h.works("plain", "b"))

	manifests(first, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"more"}}`)
	for _, member := range []string{"a", "c"} {
		h.Holds(member+" has the additional manifest",
			func() bool { return len(h.works("plain", member)[0].Spec.Manifests) == 3 })
	}
	h.put(h.addonConfig("empty", variables("COLOR", "green")))
	h.updated("plain", "b")
	require.Equal(t, "green", h.data("plain", "b")["color"])
}

// failingAgent is an add-on in Go whose result for each member is set by a test.
type failingAgent struct {
	name string
	do   func(ctx context.Context, in addon.Input) ([]client.Object, error)
}

func (a failingAgent) Name() string { return a.name }

func (a failingAgent) Manifests(ctx context.Context, in addon.Input) ([]client.Object, error) {
	return a.do(ctx, in)
}

// TestAgent_Failures checks that an add-on that panics, fails or does not respond does not affect other add-ons on
// the same members.
func TestAgent_Failures(t *testing.T) { testkit.Virtual(t, testAgentFailures) }

func testAgentFailures(t *testing.T) {
	h := newHub(t)
	var names []string
	for i := range 20 { // more than workers
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	h.members(names...)
	h.runAgents()
	h.choose("all", names...)
	hangs := make(chan struct{})
	h.start(addon.Options{Agents: []addon.Agent{
		echo{h.name("echo")},
		failingAgent{h.name("panics"), func(context.Context, addon.Input) ([]client.Object, error) {
			panic("at the worst moment")
		}},
		failingAgent{h.name("fails"), func(context.Context, addon.Input) ([]client.Object, error) {
			return nil, fmt.Errorf("no way")
		}},
		failingAgent{h.name("hangs"), func(context.Context, addon.Input) ([]client.Object, error) {
			<-hangs
			return nil, nil
		}},
		failingAgent{h.name("nil"), func(context.Context, addon.Input) ([]client.Object, error) {
			return []client.Object{nil}, nil
		}},
	}})
	t.Cleanup(func() { close(hangs) })
	for _, name := range []string{"hangs", "panics", "fails", "nil"} {
		h.addon(name, h.byPlacement("all"))
	}
	h.Holds("the failing add-ons are reconciled", func() bool { return h.memberAddon("hangs", "m19") != nil })
	h.addon("echo", h.byPlacement("all"))
	for _, member := range names {
		h.updated("echo", member)
	}
	for name, message := range map[string]string{"panics": "at the worst moment", "fails": "no way",
		"nil": "manifest 0: must not be nil"} {
		condition := h.requireCondition(h.memberAddon(name, "m00"), v1alpha1.ConditionManifestsApplied, metav1.ConditionFalse,
			v1alpha1.ReasonManifestsFailed)
		require.Contains(t, condition.Message, message)
	}
}
