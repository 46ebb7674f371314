package addon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
)

// reader is an add-on in Go whose objects on each member are the contents of its configurations, in their order.
type reader struct{ name string }

func (r reader) Name() string { return r.name }

func (r reader) Manifests(_ context.Context, in addon.Input) ([]client.Object, error) {
	var texts []string
	for _, c := range in.Configs {
		text, _, _ := unstructured.NestedString(c.Object, "data", "text")
		texts = append(texts, c.GetKind()+" "+c.GetName()+" "+text)
	}
	return []client.Object{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.InstallNamespace, Name: r.name},
		Data: map[string]string{"configs": strings.Join(texts, ", "), "color": in.Settings.Variables["COLOR"],
			"size": in.Settings.Variables["SIZE"]},
	}}, nil
}

func (reader) ValidateConfig(config *unstructured.Unstructured) error {
	if text, _, _ := unstructured.NestedString(config.Object, "data", "text"); text == "nonsense" {
		return fmt.Errorf("data.text: must not be nonsense")
	}
	return nil
}

// kinds are the kinds that reader supports.
var (
	addonConfigs = v1alpha1.ConfigKind{Group: v1alpha1.GroupName, Resource: "addonconfigs"}
	configMaps   = v1alpha1.ConfigKind{Resource: "configmaps"}
)

// references returns the references of configurations such as "addonconfigs <name>".
func (h *hub) references(named []string) (all []v1alpha1.ConfigReference) {
	groups := map[string]string{"addonconfigs": v1alpha1.GroupName, "addontemplates": v1alpha1.GroupName}
	for _, n := range named {
		kind, name, _ := strings.Cut(n, " ")
		all = append(all, v1alpha1.ConfigReference{
			Group: groups[kind], Resource: kind, ObjectName: v1alpha1.ObjectName{Namespace: h.Namespace, Name: name},
		})
	}
	return all
}

// put creates or updates an object.
func (h *hub) put(o client.Object) {
	h.T.Helper()
	o.SetResourceVersion("")
	err := h.Client.Create(h.T.Context(), o)
	if apierrors.IsAlreadyExists(err) {
		existing := o.DeepCopyObject().(client.Object)
		require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(o), existing))
		o.SetResourceVersion(existing.GetResourceVersion())
		err = h.Client.Update(h.T.Context(), o)
	}
	require.NoError(h.T, err)
}

func (h *hub) configMap(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name},
		Data: map[string]string{"text": text}}
}

func (h *hub) addonConfig(name string, change func(*v1alpha1.AddonConfigSpec)) *v1alpha1.AddonConfig {
	c := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}
	change(&c.Spec)
	return c
}

func variables(namesAndValues ...string) func(*v1alpha1.AddonConfigSpec) {
	return func(s *v1alpha1.AddonConfigSpec) {
		for i := 0; i < len(namesAndValues); i += 2 {
			s.Variables = append(s.Variables, v1alpha1.Variable{Name: namesAndValues[i], Value: namesAndValues[i+1]})
		}
	}
}

// manifest returns the first manifest of a kind of an add-on on a member; nil: none.
func (h *hub) manifest(name, member, kind string) *unstructured.Unstructured {
	h.T.Helper()
	for _, w := range h.works(name, member) {
		for _, m := range w.Spec.Manifests {
			u := &unstructured.Unstructured{}
			require.NoError(h.T, json.Unmarshal(m.Raw, &u.Object))
			if u.GetKind() == kind {
				return u
			}
		}
	}
	return nil
}

func (h *hub) data(name, member string) map[string]string {
	h.T.Helper()
	u := h.manifest(name, member, "ConfigMap")
	if u == nil {
		return nil
	}
	data, _, err := unstructured.NestedStringMap(u.Object, "data")
	require.NoError(h.T, err)
	return data
}

// updated waits until a member has the desired revision, and reports it.
func (h *hub) updated(name, member string) *v1alpha1.MemberAddon {
	h.T.Helper()
	var m *v1alpha1.MemberAddon
	h.Holds(member+" has the desired revision of "+name, func() bool {
		m = h.memberAddon(name, member)
		return isTrue(m, v1alpha1.ConditionAvailable) && m.Status.ObservedGeneration == m.Generation &&
			m.Status.AppliedRevision != "" && m.Status.AppliedRevision == m.Status.DesiredRevision
	})
	return m
}

// TestConfig_Precedence checks which configurations apply to a member, and their status.
func TestConfig_Precedence(t *testing.T) { testkit.Virtual(t, testConfigPrecedence) }

func testConfigPrecedence(t *testing.T) {
	rows := []struct {
		name, reason                string
		defaults, placement, member []string
		want                        []string // effective configurations with their source
		data                        map[string]string
	}{
		{
			name: "defaults", reason: "defaults apply without other configurations",
			defaults: []string{"addonconfigs blue"}, want: []string{"addonconfigs blue Default"},
			data: map[string]string{"configs": "AddonConfig blue ", "color": "blue", "size": "small"},
		},
		{
			name: "placement", reason: "configurations of the Placement replace the defaults",
			defaults: []string{"addonconfigs blue"}, placement: []string{"addonconfigs red"},
			want: []string{"addonconfigs red Placement"},
			data: map[string]string{"configs": "AddonConfig red ", "color": "red", "size": ""},
		},
		{
			name: "member", reason: "configurations of the member replace both",
			defaults: []string{"addonconfigs blue"}, placement: []string{"addonconfigs red"},
			member: []string{"addonconfigs green"},
			want:   []string{"addonconfigs green Member"}, data: map[string]string{"configs": "AddonConfig green ",
				"color": "green", "size": ""},
		},
		{
			name: "kinds", reason: "each kind has a separate precedence, in the order of declaration",
			defaults: []string{"addonconfigs blue", "configmaps one"}, placement: []string{"addonconfigs red"},
			member: []string{"configmaps two"},
			want:   []string{"addonconfigs red Placement", "configmaps two Member"},
			data:   map[string]string{"configs": "AddonConfig red , ConfigMap two II", "color": "red", "size": ""},
		},
		{
			name: "several", reason: "all configurations of a kind apply, and later ones override earlier ones",
			placement: []string{"addonconfigs blue", "addonconfigs red", "configmaps two", "configmaps one"},
			want: []string{"addonconfigs blue Placement", "addonconfigs red Placement", "configmaps two Placement",
				"configmaps one Placement"},
			data: map[string]string{"configs": "AddonConfig blue , AddonConfig red , ConfigMap two II, ConfigMap one I",
				"color": "red", "size": "small"},
		},
		{
			name: "twice", reason: "the last of two equal references determines the order",
			member: []string{"addonconfigs red", "addonconfigs blue", "addonconfigs red"},
			want:   []string{"addonconfigs blue Member", "addonconfigs red Member"},
			data:   map[string]string{"configs": "AddonConfig blue , AddonConfig red ", "color": "red", "size": "small"},
		},
		{
			name: "none", reason: "an add-on needs no configuration",
			data: map[string]string{"configs": "", "color": "", "size": ""},
		},
	}
	h := newHub(t)
	h.members("a")
	h.runAgents()
	h.put(h.addonConfig("blue", variables("COLOR", "blue", "SIZE", "small")))
	h.put(h.addonConfig("red", variables("COLOR", "red")))
	h.put(h.addonConfig("green", variables("COLOR", "green")))
	h.put(h.configMap("one", "I"))
	h.put(h.configMap("two", "II"))
	o := addon.Options{Allow: allowAll}
	for _, row := range rows {
		o.Agents = append(o.Agents, reader{h.name(row.name)})
	}
	h.start(o)
	h.choose("all", "a")
	for _, row := range rows {
		testkit.Step(t, row.name, func() {
			t.Log(row.reason)
			h.createMemberAddon(row.name, "a", func(s *v1alpha1.MemberAddonSpec) { s.Configs = h.references(row.member) })
			h.addon(row.name, func(s *v1alpha1.AddonSpec) {
				s.Configs = []v1alpha1.ConfigKind{addonConfigs, configMaps}
				for _, r := range h.references(row.defaults) {
					for i := range s.Configs {
						if s.Configs[i].Resource == r.Resource {
							s.Configs[i].Defaults = append(s.Configs[i].Defaults, r.ObjectName)
						}
					}
				}
				h.byPlacement("all")(s)
				s.Install.Placements[0].Configs = h.references(row.placement)
			})
			h.Holds("the Placement applies", func() bool { return h.memberAddon(row.name, "a").Status.Placement != "" })
			m := h.updated(row.name, "a")
			var got []string
			for _, c := range m.Status.Configs {
				require.NotEmpty(t, c.DesiredHash)
				require.Equal(t, c.DesiredHash, c.AppliedHash)
				got = append(got, fmt.Sprintf("%s %s %s", c.Resource, c.Name, c.From))
			}
			require.Equal(t, row.want, got)
			require.Equal(t, row.data, h.data(row.name, "a"))
		})
	}
}
