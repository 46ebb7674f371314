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

// latecomer is an add-on of which one function does not return before it is released, for one member or for none in
// particular.
type latecomer struct {
	echo
	late, member string
	returns      chan struct{}

	mu        sync.Mutex
	out, most int // calls that have not returned
}

func (l *latecomer) in(function string, member string) {
	if function != l.late || member != l.member && member != "" {
		return
	}
	l.mu.Lock()
	l.out++
	l.most = max(l.most, l.out)
	l.mu.Unlock()
	<-l.returns
	l.mu.Lock()
	l.out--
	l.mu.Unlock()
}

func (l *latecomer) Version() string { l.in("Version", ""); return "1" }

func (l *latecomer) ValidateConfig(*unstructured.Unstructured) error {
	l.in("ValidateConfig", "")
	return nil
}

func (l *latecomer) Manifests(ctx context.Context, in addon.Input) ([]client.Object, error) {
	l.in("Manifests", in.Member.Name)
	return l.echo.Manifests(ctx, in)
}

func (l *latecomer) WorkOptions(in addon.Input) workv1alpha1.WorkSpec {
	l.in("WorkOptions", in.Member.Name)
	return workv1alpha1.WorkSpec{}
}

func (l *latecomer) Registration(in addon.Input) *v1alpha1.TemplateRegistration {
	l.in("Registration", in.Member.Name)
	return nil
}

func (l *latecomer) Health(_ context.Context, in addon.Input, _ []health.Work) (health.Answer, error) {
	l.in("Health", in.Member.Name)
	return health.Answer{Health: rollout.Succeeded}, nil
}

func (l *latecomer) PreDelete(_ context.Context, in addon.Input) (bool, error) {
	l.in("PreDelete", in.Member.Name)
	return true, nil
}

// poke triggers a reconcile of a MemberAddon.
func (h *hub) poke(name, member string) {
	h.t.Helper()
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"example.com/poked":%q}}}`,
		strconv.FormatInt(time.Now().UnixNano(), 10))
	m := h.memberAddon(name, member)
	require.NotNil(h.t, m)
	require.NoError(h.t, h.client.Patch(h.t.Context(), m, client.RawPatch("application/merge-patch+json", []byte(patch))))
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
	h.obey()
	h.color("colors", "blue")
	type row struct {
		function, condition, reason string
		everywhere                  bool // it is not about a member
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
	agents := map[string]*latecomer{}
	options := addon.Options{CallTimeout: time.Second, Workers: 4}
	for _, r := range rows {
		name := strings.ToLower(r.function)
		agents[r.function] = &latecomer{echo: echo{h.name(name)}, late: r.function, member: h.name("a"),
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
		agents["Allow"].in("Allow", strings.TrimPrefix(m.Namespace, "member-"))
		return nil
	}
	t.Cleanup(func() { close(never) })
	r := h.start(options)
	h.own("allow", "a", func(s *v1alpha1.MemberAddonSpec) {
		s.Configs = []v1alpha1.ConfigReference{h.reference("colors")}
	})
	for _, row := range rows {
		h.addon(strings.ToLower(row.function), func(s *v1alpha1.AddonSpec) {
			h.placed("all")(s)
			s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs",
				Defaults: []v1alpha1.ObjectName{h.reference("colors").ObjectName}}}
			if row.function == "Health" {
				s.Health.Type = v1alpha1.HealthCustom
			}
		})
	}
	predelete := h.get("predelete")
	h.updated("predelete", "a")
	require.NoError(t, h.client.Delete(t.Context(), predelete))

	testkit.Step(t, "others", func() {
		h := h.in(t)
		h.addon("prompt", h.placed("all"))
		h.updated("prompt", "a")
		h.updated("prompt", "b")
	})
	testkit.Step(t, "too many members", func() {
		h := h.in(t)
		h.addon("crowd", h.placed("crowd"))
		say := func(text string) func() bool {
			return func() bool {
				return count(crowd, func(name string) bool {
					m := h.memberAddon("crowd", name)
					return m != nil && strings.Contains(m.Status.Message, text)
				}) > 0
			}
		}
		h.eventually("who waits for long says so", say("Manifests of add-on "+h.name("crowd")+" is not called: "))
		for _, name := range crowd {
			h.eventually(name+" has had its turn", func() bool {
				m := h.memberAddon("crowd", name)
				return m != nil && strings.Contains(m.Status.Message, "took longer than 1s")
			})
		}
	})
	for _, row := range rows {
		testkit.Step(t, row.function, func() {
			h, name, agent := h.in(t), strings.ToLower(row.function), agents[row.function]
			says := func(text string) func() bool {
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
			h.eventually("it says which function is late", says(function+" took longer than 1s"))
			poked := time.Now()
			h.eventually("it says that it waits for it", func() bool {
				if time.Since(poked) > time.Second/4 {
					h.poke(name, "a")
					poked = time.Now()
				}
				return says(function + " took longer than 1s and has not returned since ")()
			})
			switch {
			case row.function == "PreDelete":
				h.eventually("the other is rid of it", func() bool { return h.memberAddon(name, "b") == nil })
			case !row.everywhere:
				h.updated(name, "b")
			}
			close(agent.returns)
			h.eventually("it goes on", func() bool {
				m := h.memberAddon(name, "a")
				if row.function == "PreDelete" {
					return m == nil
				}
				if time.Since(poked) > time.Second/4 {
					h.poke(name, "a")
					poked = time.Now()
				}
				return is(m, v1alpha1.ConditionAvailable) && m.Status.AppliedRevision != "" &&
					m.Status.AppliedRevision == m.Status.DesiredRevision
			})
			agent.mu.Lock()
			defer agent.mu.Unlock()
			if !row.everywhere {
				require.Equal(t, 1, agent.most, "what has not returned is not called again")
			}
		})
	}
	r.quiet(t)
}
