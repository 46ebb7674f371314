package addon_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/internal/template"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// newRegisteringHub returns a hub that also has the namespace of credentials.
func newRegisteringHub(t *testing.T) *hub {
	h := newHostingHub(t)
	err := h.Client.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: membership.RegistrationNamespace}})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), err)
	return h
}

// secretOf returns the Secret with the agent's credential in Works; nil: there is none.
func (h *hub) secretOf(works []workv1alpha1.Work) *corev1.Secret {
	h.T.Helper()
	for _, w := range works {
		for _, m := range w.Spec.Manifests {
			if strings.Contains(string(m.Raw), `"kind":"Secret"`) {
				secret := &corev1.Secret{}
				require.NoError(h.T, json.Unmarshal(m.Raw, secret))
				return secret
			}
		}
	}
	return nil
}

// backdate changes the record of a credential so that it was issued long ago.
func (h *hub) backdate(name, member string) {
	h.T.Helper()
	secret := &corev1.Secret{}
	require.NoError(h.T, h.Client.Get(h.T.Context(), client.ObjectKey{Namespace: membership.RegistrationNamespace,
		Name: h.namespaceOf(member) + "." + h.name(name)}, secret))
	const record = v1alpha1.GroupName + "/credential"
	before := secret.DeepCopy()
	secret.Annotations[record] = regexp.MustCompile(`"issued":"[^"]*"`).ReplaceAllString(secret.Annotations[record],
		`"issued":"1990-01-01T00:00:00Z"`)
	require.NotEqual(h.T, before.Annotations, secret.Annotations)
	require.NoError(h.T, h.Client.Patch(h.T.Context(), secret, client.MergeFrom(before)))
}

// touch triggers a reconcile of a MemberAddon.
func (h *hub) touch(name, member string) {
	h.T.Helper()
	m := h.memberAddon(name, member)
	before := m.DeepCopy()
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, "example.com/touched", "true")
	require.NoError(h.T, h.Client.Patch(h.T.Context(), m, client.MergeFrom(before)))
}

// TestRegistration_AccessSurvivesFailures checks that the assigned add-on keeps running while the member is on hold
// or has a problem: the credential of its agent is renewed, and nothing else changes.
func TestRegistration_AccessSurvivesFailures(t *testing.T) {
	testkit.Virtual(t, testRegistrationAccessSurvivesFailures)
}

func testRegistrationAccessSurvivesFailures(t *testing.T) {
	h := newRegisteringHub(t)
	members := h.runAgents()
	o := addon.Options{Agents: []addon.Agent{reporter{echo{h.name("x")}}}, Registration: h.registration(), Allow: allowAll}
	r := h.start(o)
	h.members("c", "d")
	h.choose("all", "a", "b", "c", "d")
	h.color("colors", "blue")
	h.color("own", "blue")
	h.createMemberAddon("x", "c", func(s *v1alpha1.MemberAddonSpec) { s.HostingMember = h.name("h") })
	h.createMemberAddon("x", "d", func(s *v1alpha1.MemberAddonSpec) {
		s.Configs = []v1alpha1.ConfigReference{h.reference("own")}
	})
	h.addon("x", func(s *v1alpha1.AddonSpec) {
		h.hosted("")(s)
		s.Configs = []v1alpha1.ConfigKind{addonConfigs}
		p := &s.Install.Placements[0]
		p.Configs = []v1alpha1.ConfigReference{h.reference("colors")}
		p.Rollout = placementv1alpha1.RolloutStrategy{
			Type: placementv1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(1)),
			MaxFailures: new(intstr.FromInt32(0)),
		}
	})
	all := []string{"a", "b", "c", "d"}
	secret := func(m string) *corev1.Secret {
		if m == "c" {
			return h.secretOf(h.worksFor("x", m, "h"))
		}
		return h.secretOf(h.works("x", m))
	}
	for _, m := range all {
		h.Holds(m+" has the add-on", func() bool {
			return isTrue(h.memberAddon("x", m), v1alpha1.ConditionAvailable) && secret(m) != nil
		})
	}
	require.Equal(t, template.HostingNamespace(h.name("x"), h.name("c")), secret("c").Namespace,
		"want the Secret in the namespace of the hosted agent")

	members.setReadiness(func(w *workv1alpha1.Work) bool { return !manifestsContain(w, "red") })
	h.color("colors", "red")
	h.Holds("the rollout halts", func() bool {
		return h.get("x").Status.Placements[0].Rollout.Phase == placementv1alpha1.PhaseFailed
	})
	require.NoError(t, h.Client.Delete(t.Context(),
		&v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "own"}}))
	h.requireCondition(h.memberAddon("x", "d"), v1alpha1.ConditionConfigured, metav1.ConditionFalse,
		v1alpha1.ReasonConfigNotFound)
	r.quiet(t)
	existing := 0
	for _, m := range all {
		previous, color := secret(m), h.colorOf("x", m)
		if color == "blue" {
			existing++
		}
		h.backdate("x", m)
		h.Holds("the credential of "+m+" is renewed", func() bool {
			return string(secret(m).Data["token"]) != string(previous.Data["token"])
		})
		renewed := secret(m)
		renewed.Data["token"] = previous.Data["token"]
		require.Equal(t, previous, renewed, "want only a new token")
		require.Equal(t, color, h.colorOf("x", m))
		h.requireCondition(h.memberAddon("x", m), v1alpha1.ConditionRegistrationReady, metav1.ConditionTrue,
			v1alpha1.ReasonRegistered)
	}
	require.Equal(t, 3, existing, "want one updated member")
	h.requireCondition(h.memberAddon("x", "d"), v1alpha1.ConditionManifestsApplied, metav1.ConditionTrue,
		v1alpha1.ReasonApplied)
	r.quiet(t)
	r.stop()
	r = h.start(o)
	h.Holds("the controllers read Works", func() bool { return r.wire.Count("GET works") > 0 })
	r.quiet(t)
	require.Empty(t, r.wire.Writes(), "a restart must not renew credentials")

	agent, previous := h.agentOf("x", "d"), secret("d")
	canList := func(agent client.Client) bool {
		return agent.List(context.Background(), &corev1.ConfigMapList{}, client.InNamespace(h.namespaceOf("d"))) == nil
	}
	h.Holds("the agent has the requested access", func() bool { return canList(agent) })
	h.member("d", func(m *membershipv1alpha1.MemberCluster) {
		m.Spec.Claim = strings.Repeat("ab", 32)
		metav1.SetMetaDataLabel(&m.ObjectMeta, "taken", "over")
	})
	h.Holds("the agent of the other cluster has a new credential", func() bool {
		return string(secret("d").Data["token"]) != string(previous.Data["token"])
	})
	h.Holds("the previous credential is revoked", func() bool { return !canList(agent) })
	h.Holds("the new credential is valid", func() bool { return canList(h.agentOf("x", "d")) })
}

// TestRegistration_ProblemsAreReported checks that the conditions report why an agent has no access, or cannot keep its
// access.
func TestRegistration_ProblemsAreReported(t *testing.T) {
	testkit.Virtual(t, testRegistrationProblemsAreReported)
}

func testRegistrationProblemsAreReported(t *testing.T) {
	h := newRegisteringHub(t)
	h.runAgents()
	missing := h.name("nowhere")
	registration := h.registration()
	registration.Namespace = missing
	r := h.start(addon.Options{Agents: []addon.Agent{reporter{echo{h.name("x")}}}, Registration: registration})
	h.addon("x", h.byPlacement("all"))
	condition := func() metav1.Condition {
		m := h.memberAddon("x", "a")
		if m == nil {
			return metav1.Condition{}
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRegistrationReady)
		if c == nil {
			return metav1.Condition{}
		}
		return *c
	}
	h.Holds("the missing namespace is reported", func() bool {
		return condition().Status == metav1.ConditionFalse && strings.Contains(condition().Message, `namespaces "`+missing+
			`" not found`)
	})
	require.Contains(t, h.memberAddon("x", "a").Status.Message, missing)
	h.requireCondition(h.memberAddon("x", "a"), v1alpha1.ConditionDegraded, metav1.ConditionFalse,
		v1alpha1.ReasonAsDesired)
	r.stop()

	var refuses atomic.Bool
	h.wrap = func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if refuses.Load() && r.Method == http.MethodPost && mustertest.AttributesOf(r).Resource == "serviceaccounts/token" {
				const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"the policy ` +
					`says no","code":403}`
				return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
					Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			}
			return next.RoundTrip(r)
		})
	}
	h.start(addon.Options{Agents: []addon.Agent{reporter{echo{h.name("x")}}}, Registration: h.registration()})
	h.Holds("the agent is registered", func() bool {
		return isTrue(h.memberAddon("x", "a"), v1alpha1.ConditionAvailable) && condition().Status == metav1.ConditionTrue
	})
	previous := h.secretOf(h.works("x", "a"))
	refuses.Store(true)
	h.backdate("x", "a")
	h.Holds("the failed renewal is reported", func() bool {
		return strings.Contains(condition().Message, "the policy says no")
	})
	require.Equal(t, metav1.ConditionTrue, condition().Status, "want RegistrationReady until the credential expires")
	require.NotNil(t, h.memberAddon("x", "a").Status.Registration)
	require.Equal(t, previous, h.secretOf(h.works("x", "a")))
	refuses.Store(false)
	h.touch("x", "a") // pauses between attempts grow
	h.Holds("the credential is renewed", func() bool {
		return string(h.secretOf(h.works("x", "a")).Data["token"]) != string(previous.Data["token"]) &&
			condition().Message == ""
	})
}

// TestRegistration_UnrequestedAccessIsRemoved checks that the objects of an agent on the hub are deleted when it does
// not request access any more, although its status has no registration.
func TestRegistration_UnrequestedAccessIsRemoved(t *testing.T) {
	testkit.Virtual(t, testRegistrationUnrequestedAccessIsRemoved)
}

func testRegistrationUnrequestedAccessIsRemoved(t *testing.T) {
	h := newRegisteringHub(t)
	h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{reporter{echo{h.name("x")}}}, Registration: h.registration()})
	h.addon("x", h.byPlacement("all"))
	h.Holds("a has the add-on", func() bool {
		m := h.memberAddon("x", "a")
		return isTrue(m, v1alpha1.ConditionAvailable) && m.Status.Registration != nil
	})
	r.quiet(t)
	r.stop()
	m := h.memberAddon("x", "a")
	before := m.DeepCopy()
	m.Status.Registration = nil
	require.NoError(t, h.Client.Status().Patch(t.Context(), m, client.MergeFrom(before)))
	r = h.start(addon.Options{Agents: []addon.Agent{echo{h.name("x")}}, Registration: h.registration()})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespaceOf("a"), Name: "addon-" +
		h.name("x")}}
	h.Holds("the access is removed", func() bool {
		return h.isDeleted(account) && h.secretOf(h.works("x", "a")) == nil
	})
	reads := func() (n int) {
		for _, resource := range []string{"roles", "rolebindings", "serviceaccounts", "secrets"} {
			n += r.wire.Count("GET " + resource)
		}
		return n
	}
	// On a loaded machine the removal may still be observed for a while after the last write.
	mustertest.Quiet(t, 3*time.Second, func() string { return fmt.Sprint(reads(), r.wire.Writes()) })
	last, writes := reads(), r.wire.Writes()
	h.touch("x", "a")
	r.quiet(t)
	require.Equal(t, last, reads(), "an add-on without access must cost no requests")
	require.Equal(t, writes, r.wire.Writes())
}
