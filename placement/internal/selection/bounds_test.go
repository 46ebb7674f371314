package selection_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/internal/selection"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestOwnNamespace(t *testing.T) {
	core := func(resource, kind, namespace, name string) selection.Target {
		return selection.Target{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: resource},
			Kind: kind, Namespace: namespace, Name: name}
	}
	lookalike := core("namespaces", "Namespace", "", "shop")
	lookalike.Group = "example.com"
	all := core("namespaces", "Namespace", "", "")
	all.LabelSelector = "kubernetes.io/metadata.name=shop"
	for _, tc := range []struct {
		reason string
		owner  string
		target selection.Target
		want   string
	}{
		{"objects of its own namespace", "shop", core("secrets", "Secret", "shop", ""), ""},
		{"an object of its own namespace by name", "shop", core("secrets", "Secret", "shop", "key"), ""},
		{"Secrets of another namespace", "shop", core("secrets", "Secret", "bank", "key"), "not its own namespace"},
		{"a namespace with the same prefix", "shop", core("secrets", "Secret", "shop-2", ""),
			"not its own namespace"},
		{"a namespace with another case", "shop", core("secrets", "Secret", "Shop", ""), "not its own namespace"},
		{"its own Namespace", "shop", core("namespaces", "Namespace", "", "shop"), ""},
		{"another Namespace", "shop", core("namespaces", "Namespace", "", "bank"), "is its own Namespace"},
		{"Namespaces by labels", "shop", all, "is its own Namespace"},
		{"the kind Namespace of another group", "shop", lookalike, "is its own Namespace"},
		{"a cluster-scoped object with the name of the namespace",
			"shop", core("persistentvolumes", "PersistentVolume", "", "shop"),
			"is its own Namespace"},
		{"an owner without a namespace selects in all namespaces",
			"", core("secrets", "Secret", "", ""), "but has no namespace"},
		{"an owner without a namespace selects cluster-scoped objects",
			"", core("namespaces", "Namespace", "", ""), "but has no namespace"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			err := selection.OwnNamespace(types.NamespacedName{Namespace: tc.owner, Name: "web"}, tc.target)
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}

// TestTenantsDoNotReadEachOthers checks that the default bound alone isolates tenants: the hub's controller may read
// everything here.
func TestTenantsDoNotReadEachOthers(t *testing.T) {
	h := newHubOnPlane(t)
	bank := h.newNamespace()
	h.Create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: bank, Name: "vault", Labels: map[string]string{"app": "web"}},
			StringData: map[string]string{"pin": "4711"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "own",
			Labels: map[string]string{"app": "web"}}},
	)
	r := h.start()
	in := func(s v1alpha1.ResourceSelector, namespace string) v1alpha1.ResourceSelector {
		s.Namespace = namespace
		return s
	}
	web := map[string]string{"app": "web"}
	for _, tc := range []struct {
		reason   string
		selector v1alpha1.ResourceSelector
		want     string
	}{
		{"an object by name", in(named("Secret", "vault"), bank), selection.ReasonOutOfBounds},
		{"objects by labels", in(labeled("Secret", web), bank), selection.ReasonOutOfBounds},
		{"all objects of a kind", in(all("Secret"), bank), selection.ReasonOutOfBounds},
		{"another Namespace", named("Namespace", bank), selection.ReasonOutOfBounds},
		{"all Namespaces", all("Namespace"), selection.ReasonOutOfBounds},
		{"cluster-scoped objects", v1alpha1.ResourceSelector{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"},
			selection.ReasonOutOfBounds},
		{"its own Namespace, in itself", in(named("Namespace", h.Namespace), h.Namespace), selection.ReasonInvalid},
		{"a namespace with a relative path", in(all("Secret"), h.Namespace+"/../"+bank), selection.ReasonInvalid},
		{"the parent directory as namespace", in(all("Secret"), ".."), selection.ReasonInvalid},
		{"a name that is a path", named("Secret", "../"+bank+"/secrets/vault"), selection.ReasonInvalid},
		{"an asterisk as namespace", in(all("Secret"), "*"), selection.ReasonOutOfBounds},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			got := r.selectFor("web", tc.selector)
			require.Empty(t, names(got))
			require.Equal(t, []string{tc.want}, reasons(got))
			require.NotContains(t, got.Problems[0].Message, "4711")
		})
	}
	require.Zero(t, r.transport.requests("LIST"), "objects out of bounds must not be read")
	require.Zero(t, r.transport.requests("WATCH"))

	got := r.selectFor("web", in(labeled("Secret", web), bank), labeled("Secret", web))
	require.Equal(t, []string{"Secret own"}, names(got), "a selector that is out of bounds does not block others")
	require.Equal(t, 0, got.Problems[0].Selector)

	r.h.Namespace = ""
	got = r.selectFor("web", all("Secret"), all("Namespace"))
	require.Empty(t, names(got), "an owner without a namespace selects no objects")
	require.Equal(t, []string{selection.ReasonInvalid, selection.ReasonOutOfBounds}, reasons(got))
}

// TestAllow checks that another result of Allow takes effect with the next Select.
func TestAllow(t *testing.T) { testkit.Virtual(t, testAllow) }

func testAllow(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	other := h.newNamespace()
	var targets []selection.Target
	open := true
	r := h.start(func(o *selection.Options) {
		o.Allow = func(owner types.NamespacedName, target selection.Target) error {
			targets = append(targets, target)
			if owner.Namespace == other && open {
				return nil
			}
			return errors.New("ask the platform team")
		}
	})
	selector := labeled("ConfigMap", map[string]string{"b": "2", "a": "1"})
	selector.Namespace = h.Namespace
	h.Create(h.configMap("b", map[string]string{"b": "2", "a": "1"}))
	owner := types.NamespacedName{Namespace: other, Name: "web"}
	got := r.Select(t.Context(), owner, of(selector))
	require.Equal(t, []string{"ConfigMap b"}, names(got))
	require.Equal(t, []selection.Target{{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap",
		Namespace: h.Namespace, LabelSelector: "a=1,b=2",
	}}, targets)

	open = false
	got = r.Select(t.Context(), owner, of(selector))
	require.Empty(t, names(got), "the selector is no longer allowed")
	require.Equal(t, []selection.Problem{{Reason: selection.ReasonOutOfBounds, Message: "ask the platform team"}},
		got.Problems)
	h.Holds("the watch ends", func() bool { return r.transport.watches() == 0 })

	// All cluster-scoped objects, if the product allows that.
	r = h.start(func(o *selection.Options) {
		o.Allow = func(types.NamespacedName, selection.Target) error { return nil }
	})
	got = r.selectFor("web", all("Namespace"))
	require.Empty(t, got.Problems)
	require.Contains(t, strings.Join(names(got), ","), "Namespace "+other)
	require.NotContains(t, names(got), "Namespace kube-system")
}
