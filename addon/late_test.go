package addon_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/rollout"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// lateAgent is an add-on with one function that does not return before it is released, for one member or for all.
type lateAgent struct {
	echo
	late, member string
	returns      chan struct{}

	mu            sync.Mutex
	running, most int // calls that have not returned
}

func (l *lateAgent) call(function string, member string) {
	if function != l.late || member != l.member && member != "" {
		return
	}
	l.mu.Lock()
	l.running++
	l.most = max(l.most, l.running)
	l.mu.Unlock()
	<-l.returns
	l.mu.Lock()
	l.running--
	l.mu.Unlock()
}

func (l *lateAgent) Version() string { l.call("Version", ""); return "1" }

func (l *lateAgent) ValidateConfig(*unstructured.Unstructured) error {
	l.call("ValidateConfig", "")
	return nil
}

func (l *lateAgent) Manifests(ctx context.Context, in addon.Input) ([]client.Object, error) {
	l.call("Manifests", in.Member.Name)
	return l.echo.Manifests(ctx, in)
}

func (l *lateAgent) WorkOptions(in addon.Input) workv1alpha1.WorkSpec {
	l.call("WorkOptions", in.Member.Name)
	return workv1alpha1.WorkSpec{}
}

func (l *lateAgent) Registration(in addon.Input) *v1alpha1.TemplateRegistration {
	l.call("Registration", in.Member.Name)
	return nil
}

func (l *lateAgent) Health(_ context.Context, in addon.Input, _ []health.Work) (health.Answer, error) {
	l.call("Health", in.Member.Name)
	return health.Answer{Health: rollout.Succeeded}, nil
}

func (l *lateAgent) PreDelete(_ context.Context, in addon.Input) (bool, error) {
	l.call("PreDelete", in.Member.Name)
	return true, nil
}

// poke triggers a reconcile of a MemberAddon.
func (h *hub) triggerReconcile(name, member string) {
	h.T.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/poked":%q}}}`,
		strconv.FormatInt(time.Now().UnixNano(), 10))
	m := h.memberAddon(name, member)
	require.NotNil(h.T, m)
	require.NoError(h.T, h.Client.Patch(h.T.Context(), m, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// TestLateFunctions checks that a function which does not return is reported by name, is not called again before it
// returns, and does not block other add-ons.
func TestLateFunctions(t *testing.T) { testkit.Virtual(t, testLateFunctions) }

func testLateFunctions(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.choose("all", "a", "b")
	crowd := []string{"c0", "c1", "c2", "c3", "c4"}
	h.members(crowd...)
	h.choose("crowd", crowd...)
	h.runAgents()
	h.color("colors", "blue")
	type row struct {
		function, condition, reason string
		everywhere                  bool // the function has no member
	}
	rows := []row{
		{"Version", v1alpha1.ConditionManifestsApplied, v1alpha1.ReasonManifestsFailed, true},
		{"ValidateConfig", v1alpha1.ConditionConfigured, v1alpha1.ReasonConfigInvalid, true},
		{"Allow", v1alpha1.ConditionConfigured, v1alpha1.ReasonUnsupported, false},
		{"Manifests", v1alpha1.ConditionManifestsApplied, v1alpha1.ReasonManifestsFailed, false},
		{"WorkOptions", v1alpha1.ConditionManifestsApplied, v1alpha1.ReasonManifestsFailed, false},
		{"Registration", v1alpha1.ConditionManifestsApplied, v1alpha1.ReasonManifestsFailed, false},
		{"Health", v1alpha1.ConditionAvailable, v1alpha1.ReasonNotReady, false},
		{"PreDelete", v1alpha1.ConditionDegraded, v1alpha1.ReasonHookFailed, false},
	}
	agents := map[string]*lateAgent{}
	options := addon.Options{CallTimeout: time.Second, Workers: 4}
	for _, r := range rows {
		name := strings.ToLower(r.function)
		agents[r.function] = &lateAgent{echo: echo{h.name(name)}, late: r.function, member: h.name("a"),
			returns: make(chan struct{})}
		options.Agents = append(options.Agents, agents[r.function])
	}
	never := make(chan struct{})
	options.Agents = append(options.Agents, echo{h.name("prompt")},
		failingAgent{h.name("crowd"), func(context.Context, addon.Input) ([]client.Object, error) {
			<-never
			return nil, nil
		}})
	options.Allow = func(m *v1alpha1.MemberAddon, _ v1alpha1.ConfigReference) error {
		agents["Allow"].call("Allow", strings.TrimPrefix(m.Namespace, "member-"))
		return nil
	}
	t.Cleanup(func() { close(never) })
	r := h.start(options)
	h.createMemberAddon("allow", "a", func(s *v1alpha1.MemberAddonSpec) {
		s.Configs = []v1alpha1.ConfigReference{h.reference("colors")}
	})
	for _, row := range rows {
		h.addon(strings.ToLower(row.function), func(s *v1alpha1.AddonSpec) {
			h.byPlacement("all")(s)
			s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs",
				Defaults: []v1alpha1.ObjectName{h.reference("colors").ObjectName}}}
			if row.function == "Health" {
				s.Health.Type = v1alpha1.HealthCustom
			}
		})
	}
	predelete := h.get("predelete")
	h.updated("predelete", "a")
	require.NoError(t, h.Client.Delete(t.Context(), predelete))

	testkit.Step(t, "an add-on without late functions", func() {
		h := h.in(t)
		h.addon("prompt", h.byPlacement("all"))
		h.updated("prompt", "a")
		h.updated("prompt", "b")
	})
	testkit.Step(t, "more members than concurrent calls", func() {
		h := h.in(t)
		h.addon("crowd", h.byPlacement("crowd"))
		messageContains := func(text string) func() bool {
			return func() bool {
				return count(crowd, func(name string) bool {
					m := h.memberAddon("crowd", name)
					return m != nil && strings.Contains(m.Status.Message, text)
				}) > 0
			}
		}
		h.Holds("a waiting member reports that the function is not called",
			messageContains("Manifests of add-on "+h.name("crowd")+" is not called: "))
		for _, name := range crowd {
			h.Holds("the function was called for "+name, func() bool {
				m := h.memberAddon("crowd", name)
				return m != nil && strings.Contains(m.Status.Message, "took longer than 1s")
			})
		}
	})
	for _, row := range rows {
		testkit.Step(t, row.function, func() {
			h, name, agent := h.in(t), strings.ToLower(row.function), agents[row.function]
			conditionContains := func(text string) func() bool {
				return func() bool {
					m := h.memberAddon(name, "a")
					if m == nil {
						return false
					}
					c := meta.FindStatusCondition(m.Status.Conditions, row.condition)
					return c != nil && c.Reason == row.reason && strings.Contains(c.Message, text)
				}
			}
			function := row.function + " of add-on " + h.name(name)
			if row.function == "Allow" {
				function = "addon.Options.Allow"
			}
			h.Holds("the late function is reported", conditionContains(function+" took longer than 1s"))
			triggered := time.Now()
			h.Holds("the message reports that the function has not returned", func() bool {
				if time.Since(triggered) > time.Second/4 {
					h.triggerReconcile(name, "a")
					triggered = time.Now()
				}
				return conditionContains(function + " took longer than 1s and has not returned since ")()
			})
			switch {
			case row.function == "PreDelete":
				h.Holds("the add-on is removed from the other member", func() bool { return h.memberAddon(name, "b") == nil })
			case !row.everywhere:
				h.updated(name, "b")
			}
			close(agent.returns)
			h.Holds("the add-on continues", func() bool {
				m := h.memberAddon(name, "a")
				if row.function == "PreDelete" {
					return m == nil
				}
				if time.Since(triggered) > time.Second/4 {
					h.triggerReconcile(name, "a")
					triggered = time.Now()
				}
				return isTrue(m, v1alpha1.ConditionAvailable) && m.Status.AppliedRevision != "" &&
					m.Status.AppliedRevision == m.Status.DesiredRevision
			})
			agent.mu.Lock()
			defer agent.mu.Unlock()
			if !row.everywhere {
				require.Equal(t, 1, agent.most, "a function that has not returned must not be called again")
			}
		})
	}
	r.quiet(t)
}
