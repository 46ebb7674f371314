package selection_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestEveryKind checks that a namespace is selected with all its objects, except for those that belong to the hub and
// those that a controller creates.
func TestEveryKind(t *testing.T) { testkit.Virtual(t, testEveryKind) }

func testEveryKind(t *testing.T) {
	h := newHub(t)
	at := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: h.Namespace, Name: name} }
	account := &corev1.ServiceAccount{ObjectMeta: at("deployer")}
	h.Create(account, h.configMap("a", map[string]string{"app": "web"}))
	controlled := h.configMap("controlled", nil)
	controlled.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ServiceAccount", Name: account.Name, UID: account.UID, Controller: new(true)},
	}
	token := &corev1.Secret{ObjectMeta: at("token"), Type: corev1.SecretTypeServiceAccountToken}
	token.Annotations = map[string]string{corev1.ServiceAccountNameKey: account.Name}
	h.Create(
		controlled, token, &corev1.Secret{ObjectMeta: at("key")}, &coordinationv1.Lease{ObjectMeta: at("election")},
		&corev1.Event{ObjectMeta: at("event"), InvolvedObject: corev1.ObjectReference{Namespace: h.Namespace}},
		&corev1.Service{ObjectMeta: at("web"), Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80}},
		}},
	)
	r := h.start()
	var got selection.Selected
	h.Holds("everything is listed", func() bool {
		got = r.selectFor("web", all(v1alpha1.EveryKind))
		return len(got.Problems) == 0
	})
	want := []string{"ConfigMap a", "Namespace " + h.Namespace, "Secret key", "Service web", "ServiceAccount deployer"}
	if diff := cmp.Diff(want, names(got)); diff != "" {
		t.Fatalf("the namespace (-want +got):\n%s", diff)
	}

	// A change of any kind is reported. An object that has no controller any more is selected.
	before := r.changedCalls("web")
	h.Create(h.configMap("b", nil))
	before = r.awaitChanged("web", before)
	change(h, controlled, func(c *corev1.ConfigMap) { c.OwnerReferences = nil })
	r.awaitChanged("web", before)
	h.Holds("both ConfigMaps are selected", func() bool {
		return len(names(r.selectFor("web", all(v1alpha1.EveryKind)))) == len(want)+2
	})

	labeled := r.selectFor("web", labeled(v1alpha1.EveryKind, map[string]string{"app": "web"}))
	require.Equal(t, []string{"ConfigMap a"}, names(labeled), "with labels, the Namespace is not selected")
	require.Equal(t, []string{"Invalid"}, reasons(r.selectFor("web", named(v1alpha1.EveryKind, "a"))))
	other := v1alpha1.ResourceSelector{Kind: v1alpha1.EveryKind, Namespace: "default"}
	require.Contains(t, reasons(r.selectFor("web", other)), "OutOfBounds", "the WorkSet may not select another namespace")
}

// TestEveryKind_NewKind checks that a kind that is defined later is selected as well.
func TestEveryKind_NewKind(t *testing.T) { testkit.Virtual(t, testEveryKindNewKind) }

func testEveryKindNewKind(t *testing.T) {
	h := newHub(t)
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(func(o *selection.Options) { o.Clock = clock })
	h.Create(h.configMap("a", nil))
	h.Holds("everything is listed", func() bool { return len(r.selectFor("web", all("*")).Problems) == 0 })

	group := h.Namespace + ".example.com"
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "widgets." + group}}
	definition.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: group, Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Kind: "Widget"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
				OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"},
			},
		}},
	}
	h.Create(definition)
	defer func() { _ = h.Client.Delete(t.Context(), definition) }()
	widget := &unstructured.Unstructured{}
	widget.SetAPIVersion(group + "/v1")
	widget.SetKind("Widget")
	widget.SetNamespace(h.Namespace)
	widget.SetName("w")
	h.Holds("the kind is served", func() bool { return h.Client.Create(t.Context(), widget) == nil })
	h.Holds("the new kind is selected", func() bool {
		clock.Step(2 * time.Minute)
		got := r.selectFor("web", all("*"))
		return slices.Contains(names(got), "Widget w") && len(got.Problems) == 0
	})
}

// TestEveryKind_Forbidden checks that a kind which the controller may not list is a problem, and that nothing is
// selected silently without it.
func TestEveryKind_Forbidden(t *testing.T) { testkit.Virtual(t, testEveryKindForbidden) }

func testEveryKindForbidden(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	_, config, _ := h.user(listAndWatch("configmaps"))
	r := h.start(func(o *selection.Options) { o.Config = config })
	h.Holds("a kind is forbidden", func() bool {
		for _, p := range r.selectFor("web", all("*")).Problems {
			if p.Reason == selection.ReasonForbidden && p.Selector == 0 {
				return true
			}
		}
		return false
	})
}
