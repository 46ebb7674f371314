package addon_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// cleaner is an add-on with a Job that runs before its removal.
type cleaner struct{ echo }

func (c cleaner) Manifests(ctx context.Context, in addon.Input) ([]client.Object, error) {
	all, err := c.echo.Manifests(ctx, in)
	return append(all, cleanup(c.name, in.InstallNamespace)), err
}

func cleanup(name, namespace string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name + "-cleanup", Annotations: map[string]string{v1alpha1.PreDeleteAnnotation: "true"},
		},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "cleanup", Image: "example.com/cleanup"}},
		}}},
	}
}

// preDeleter is an add-on that implements PreDeleter.
type preDeleter struct {
	echo
	mu      *sync.Mutex
	calls   int
	members []string // "gone" or "there" for each call: whether the input has a member
	answer  func(calls int) (bool, error)
}

func (p *preDeleter) PreDelete(_ context.Context, in addon.Input) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	p.members = append(p.members, map[bool]string{true: "gone", false: "there"}[in.Member == nil])
	return p.answer(p.calls)
}

func (p *preDeleter) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

// template creates an AddonTemplate with a ConfigMap and a hook, and returns the reference to it.
func (h *hub) template(name string) v1alpha1.ConfigReference {
	h.T.Helper()
	t := &v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: h.name(name)}}
	for _, object := range []client.Object{
		&corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: h.name(name)}},
		cleanup(h.name(name), ""),
	} {
		raw, err := json.Marshal(object)
		require.NoError(h.T, err)
		t.Spec.Manifests = append(t.Spec.Manifests, v1alpha1.TemplateManifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	require.NoError(h.T, h.Client.Create(h.T.Context(), t))
	h.T.Cleanup(func() { _ = h.Client.Delete(context.Background(), t) })
	return v1alpha1.ConfigReference{Group: v1alpha1.GroupName, Resource: "addontemplates",
		ObjectName: v1alpha1.ObjectName{Name: t.Name}}
}

// templated installs an add-on of a template on the members of a Placement.
func (h *hub) templated(placement string, template v1alpha1.ConfigReference) func(*v1alpha1.AddonSpec) {
	return func(s *v1alpha1.AddonSpec) {
		h.byPlacement(placement)(s)
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addontemplates",
			Defaults: []v1alpha1.ObjectName{template.ObjectName}}}
	}
}

// hooksOn returns the Work of an add-on's hooks; nil: it does not exist.
func (h *hub) hooksOn(name, member string) *workv1alpha1.Work {
	h.T.Helper()
	works := h.works(name, member)
	for i := range works {
		if works[i].Name == "addon-"+h.name(name)+"-hooks" {
			return &works[i]
		}
	}
	return nil
}

// intact reports whether the add-on's Works without hooks are unchanged.
func (h *hub) worksUnchanged(name, member string) bool {
	h.T.Helper()
	works := slices.DeleteFunc(h.works(name, member), func(w workv1alpha1.Work) bool {
		return strings.HasSuffix(w.Name, "-hooks")
	})
	return len(works) > 0 && !slices.ContainsFunc(works, func(w workv1alpha1.Work) bool {
		return w.DeletionTimestamp != nil
	})
}

// reason returns the reason of a condition that is True.
func reason(m *v1alpha1.MemberAddon, kind string) string {
	if m == nil {
		return ""
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.Reason
	}
	return ""
}

// countEvents returns the number of Events with a reason about a MemberAddon.
func (h *hub) countEvents(name, member, reason string) (n int) {
	h.T.Helper()
	var list eventsv1.EventList
	require.NoError(h.T, h.Client.List(h.T.Context(), &list, client.InNamespace(h.namespaceOf(member))))
	for i := range list.Items {
		if e := &list.Items[i]; e.Regarding.Name == h.name(name) && e.Regarding.Kind == "MemberAddon" && e.Reason == reason {
			n++
			if e.Series != nil {
				n += int(e.Series.Count) - 1
			}
		}
	}
	return n
}

// installed creates an Addon and waits until members have it.
func (h *hub) installed(name string, spec func(*v1alpha1.AddonSpec), members ...string) *v1alpha1.Addon {
	h.T.Helper()
	a := h.addon(name, spec)
	for _, m := range members {
		h.Holds(m+" has "+name, func() bool { return isTrue(h.memberAddon(name, m), v1alpha1.ConditionAvailable) })
	}
	return a
}

func (h *hub) isDeleted(o client.Object) bool {
	h.T.Helper()
	err := h.Client.Get(h.T.Context(), client.ObjectKeyFromObject(o), o)
	require.NoError(h.T, client.IgnoreNotFound(err))
	return apierrors.IsNotFound(err)
}

// in returns the hub for a subtest.
func (h *hub) in(t testing.TB) *hub {
	own, sub := *h.Hub, *h
	own.T, sub.Hub = t, &own
	return &sub
}

// TestHooks checks the hooks that run before an add-on is removed, on the member and on the hub.
func TestHooks(t *testing.T) { testkit.Virtual(t, testHooks) }

func testHooks(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.choose("all", "a")
	members := h.runAgents()
	var mu sync.Mutex
	stopped, refused := map[string]bool{}, map[string]bool{} // by name of the Work
	script := func(of map[string]bool, name string, value bool) {
		mu.Lock()
		of["addon-"+h.name(name)+"-hooks"] = value
		mu.Unlock()
		members.ignoreWorks(members.ignored)
	}
	for _, name := range []string{"code", "plain"} {
		script(stopped, name, true)
	}
	script(refused, "fails", true)
	members.ignoreWorks(func(w *workv1alpha1.Work) bool { mu.Lock(); defer mu.Unlock(); return stopped[w.Name] })
	members.setReadiness(func(w *workv1alpha1.Work) bool { mu.Lock(); defer mu.Unlock(); return !refused[w.Name] })
	patient := &preDeleter{echo: echo{h.name("patient")}, mu: &mu, answer: func(calls int) (bool, error) {
		return calls > 2, nil
	}}
	sorry := &preDeleter{echo: echo{h.name("sorry")}, mu: &mu, answer: func(calls int) (bool, error) {
		switch calls {
		case 1:
			return false, errors.New("the database is locked")
		case 2:
			panic("a nil map")
		}
		return true, nil
	}}
	h.start(addon.Options{Agents: []addon.Agent{
		cleaner{echo{h.name("code")}}, cleaner{echo{h.name("fails")}}, patient, sorry,
	}})

	for _, name := range []string{"code", "plain"} {
		testkit.Step(t, "a Job of "+name, func() {
			h := h.in(t)
			spec := h.byPlacement("all")
			if name == "plain" {
				spec = h.templated("all", h.template("plain"))
			}
			events := h.watchAddon(name, nil)
			a := h.installed(name, spec, "a")
			for _, w := range h.works(name, "a") {
				require.NotContains(t, string(w.Spec.Manifests[len(w.Spec.Manifests)-1].Raw), `"Job"`,
					"want no Job before the removal")
			}
			require.Nil(t, h.hooksOn(name, "a"))
			require.NoError(t, h.Client.Delete(t.Context(), a))
			h.Holds("the hook runs", func() bool {
				return h.hooksOn(name, "a") != nil &&
					reason(h.memberAddon(name, "a"), v1alpha1.ConditionProgressing) == v1alpha1.ReasonPreDelete
			})
			require.Len(t, h.hooksOn(name, "a").Spec.Manifests, 1)
			require.Contains(t, string(h.hooksOn(name, "a").Spec.Manifests[0].Raw), `"Job"`)
			require.True(t, h.worksUnchanged(name, "a"))
			script(stopped, name, false)
			h.Holds("all objects are deleted", func() bool { return h.isDeleted(a) && len(h.works(name, "a")) == 0 })
			hooks, works, addon := h.steps(name)
			h.Holds("all events are observed", func() bool { return events.first(addon("gone").matches) > 0 })
			events.inOrder("a", addon("deleted"), hooks("made"), works("deleted"), works("gone"), hooks("deleted"),
				hooks("gone"),
				addon("gone"))
			require.Zero(t, h.countEvents(name, "a", v1alpha1.ReasonDeadlineExceeded))
		})
	}
	testkit.Step(t, "a failed Job is retried", func() {
		h := h.in(t)
		a := h.installed("fails", h.byPlacement("all"), "a")
		require.NoError(t, h.Client.Delete(t.Context(), a))
		h.Holds("the failure is reported", func() bool {
			return reason(h.memberAddon("fails", "a"), v1alpha1.ConditionDegraded) == v1alpha1.ReasonHookFailed
		})
		first := h.hooksOn("fails", "a")
		require.NotNil(t, first)
		require.Contains(t, h.memberAddon("fails", "a").Status.Message, "the Deployment is refused",
			"want the message of the Job")
		h.Holds("an Event is recorded", func() bool {
			return h.countEvents("fails", "a", v1alpha1.ReasonHookFailed) == 1
		})
		h.Holds("the Job is created again", func() bool {
			w := h.hooksOn("fails", "a")
			return w != nil && w.UID != first.UID
		})
		require.True(t, h.worksUnchanged("fails", "a"))
		script(refused, "fails", false)
		h.Holds("all objects are deleted", func() bool { return h.isDeleted(a) && len(h.works("fails", "a")) == 0 })
	})
	testkit.Step(t, "a function is called until it is done", func() {
		h := h.in(t)
		events := h.watchAddon("patient", nil)
		a := h.installed("patient", h.byPlacement("all"), "a")
		require.NoError(t, h.Client.Delete(t.Context(), a))
		h.Holds("the function is called", func() bool { return patient.count() > 0 })
		require.True(t, h.worksUnchanged("patient", "a"))
		h.Holds("all objects are deleted", func() bool { return h.isDeleted(a) })
		require.Equal(t, 3, patient.count(), "the function must not be called after it is done")
		_, works, addon := h.steps("patient")
		events.inOrder("a", addon("deleted"), hasReason(v1alpha1.ConditionProgressing, v1alpha1.ReasonPreDelete),
			works("deleted"))
	})
	testkit.Step(t, "a failed function is called again", func() {
		h := h.in(t)
		a := h.installed("sorry", h.byPlacement("all"), "a")
		require.NoError(t, h.Client.Delete(t.Context(), a))
		for _, message := range []string{"the database is locked", "panicked: a nil map"} {
			h.Holds("the message contains "+message, func() bool {
				m := h.memberAddon("sorry", "a")
				return reason(m, v1alpha1.ConditionDegraded) == v1alpha1.ReasonHookFailed && strings.Contains(m.Status.Message,
					message)
			})
			require.True(t, h.worksUnchanged("sorry", "a"))
		}
		h.Holds("all objects are deleted", func() bool { return h.isDeleted(a) })
		require.Equal(t, 3, sorry.count())
	})
}
