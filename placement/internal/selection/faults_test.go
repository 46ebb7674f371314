package selection_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	testclock "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement/internal/selection"
)

func as(config *rest.Config) func(*selection.Options) {
	return func(o *selection.Options) { o.Config = config }
}

func on(clock *testclock.FakeClock) func(*selection.Options) {
	return func(o *selection.Options) { o.Clock = clock }
}

func may(resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names,
		Verbs: []string{"list", "watch"}}
}

// TestForbidden checks that the hub's controller needs only list and watch on the selected objects, and that a Problem
// reports a missing permission.
func TestForbidden(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = h.namespace, "key"
	h.create(h.configMap("a", nil), secret)
	user, config, grant := h.user(may("configmaps", "a"))
	r := h.start(as(config))

	got := r.selects("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got), "a rule with the name is enough for a selector with it")
	require.Equal(t, []selection.Problem{
		{Selector: 0, Reason: selection.ReasonForbidden,
			Message: "the hub's controller is not allowed to read the objects: grant list and watch on secrets in " +
				"namespace " + h.namespace +
				" to " + user},
		{Selector: 2, Reason: selection.ReasonForbidden,
			Message: "the hub's controller is not allowed to read the objects: grant list and watch on configmaps in " +
				"namespace " + h.namespace +
				" to " + user},
	}, got.Problems)
	asked := r.wire.requests("LIST secrets")
	require.Equal(t, got, r.selects("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap")),
		"it is not waited for again")
	eventually(t, "it is to be tried again", func() bool { return r.wire.requests("LIST secrets") > asked })
	require.Zero(t, r.called("web"), "that it still may not is no news")

	grant(may("configmaps"), may("secrets"))
	r.hears("web", 1)
	got = r.selects("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a", "Secret key"}, names(got))
	require.Empty(t, got.Problems)

	calls := r.called("web")
	grant()
	r.wire.cut() // an API server asks for permission at the beginning of a watch
	r.hears("web", calls+2)
	got = r.selects("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap"))
	require.Equal(t, []string{"Forbidden", "Forbidden", "Forbidden"}, reasons(got))
	require.Equal(t, []string{"ConfigMap a", "Secret key"}, names(got), "what was known before is still known")
}

// TestListAlone checks that the permission list without watch is a Problem, because changes could not be observed.
func TestListAlone(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.create(h.configMap("a", nil))
	rule := may("configmaps")
	rule.Verbs = []string{"list"}
	_, config, grant := h.user(rule)
	r := h.start(as(config))
	got := r.selects("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	if len(got.Problems) == 0 {
		r.hears("web", 0)
	}
	require.Equal(t, []string{"Forbidden"}, reasons(r.selects("web", all("ConfigMap"))))
	calls, lists := r.called("web"), r.wire.requests("LIST configmaps")
	eventually(t, "it is to be tried again", func() bool { return r.wire.requests("LIST configmaps") > lists+1 })
	require.Equal(t, calls, r.called("web"), "the list that succeeds in between is no news")
	require.Equal(t, []string{"Forbidden"}, reasons(r.selects("web", all("ConfigMap"))))

	grant(may("configmaps"))
	r.hears("web", calls)
	got = r.selects("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Empty(t, got.Problems)
}

func answer(status int, body string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

const broken = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"InternalError","message":"conversion ` +
	`webhook failed","code":500}`

// TestSlow checks that Select waits at most a few seconds for a hub that does not respond, and delays no other owner.
func TestSlow(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.create(h.configMap("a", nil))
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(on(clock))
	answers := make(chan struct{})
	r.wire.disturb(func(request *http.Request) *http.Response {
		if strings.HasSuffix(request.URL.Path, "/configmaps") {
			select {
			case <-answers:
			case <-request.Context().Done():
			}
		}
		return nil
	})
	selecting := make(chan selection.Selected)
	go func() { selecting <- r.selects("web", all("ConfigMap")) }()
	eventually(t, "it is to ask", func() bool { return r.wire.requests("WATCH configmaps") == 1 && clock.HasWaiters() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := []selection.Problem{{Reason: selection.ReasonNotSynced,
		Message: "configmaps in namespace " + h.namespace + " are not listed yet: wait, or check why the API server is slow"}}
	require.Equal(t, want, r.Select(ctx, h.owner("hurried"), of(all("ConfigMap"))).Problems)
	require.Empty(t, reasons(r.selects("other", all("Secret"))), "others do not wait")

	eventually(t, "its patience is to end", func() bool {
		clock.Step(time.Second)
		select {
		case got := <-selecting:
			require.Equal(t, want, got.Problems)
			return true
		default:
			return false
		}
	})
	clock.Step(time.Minute)
	require.Equal(t, want, r.selects("late", all("ConfigMap")).Problems, "nobody waits for it again")
	require.Equal(t, 1, r.wire.requests("WATCH configmaps"))

	close(answers)
	for _, owner := range []string{"web", "hurried", "late"} {
		r.hears(owner, 0)
		require.Equal(t, []string{"ConfigMap a"}, names(r.selects(owner, all("ConfigMap"))))
	}
	require.Zero(t, r.called("other"))
}

// TestStale checks that a transient failure after a successful list is not reported for a minute.
func TestStale(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.create(h.configMap("a", nil))
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(on(clock))
	require.Equal(t, []string{"ConfigMap a"}, names(r.selects("web", all("ConfigMap"))))
	fail := func(request *http.Request) *http.Response {
		if strings.HasSuffix(request.URL.Path, "/configmaps") {
			return answer(http.StatusInternalServerError, broken)
		}
		return nil
	}
	r.wire.disturb(fail)
	r.wire.cut()
	lists := r.wire.requests("LIST configmaps")
	eventually(t, "it is to fail twice", func() bool { return r.wire.requests("LIST configmaps") >= lists+2 })
	require.Zero(t, r.called("web"))
	require.Empty(t, reasons(r.selects("web", all("ConfigMap"))))
	require.Equal(t, []selection.Problem{{
		Reason: selection.ReasonNotSynced,
		Message: "listing configmaps \"b\" in namespace " + h.namespace +
			" fails and is retried: conversion webhook failed",
	}}, r.selects("new", named("ConfigMap", "b")).Problems, "what has not been listed is another matter")

	clock.Step(2 * time.Minute)
	require.Equal(t, 1, r.hears("web", 0))
	got := r.selects("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Equal(t, []selection.Problem{{
		Reason: selection.ReasonStale,
		Message: "watching configmaps in namespace " + h.namespace +
			" fails and is retried: conversion webhook failed",
	}}, got.Problems)

	h.create(h.configMap("b", nil))
	r.wire.disturb(nil)
	r.hears("web", 1)
	r.hears("new", 0)
	for _, owner := range []string{"web", "new"} {
		got = r.selects(owner, all("ConfigMap"))
		require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(got))
		require.Empty(t, got.Problems)
	}
}

// TestAPIServerRestarts checks that a restart of the API server loses no change, and that unchanged objects are not
// reported.
func TestAPIServerRestarts(t *testing.T) {
	t.Parallel()
	p := localplane.ForTest(t, localplane.Options{Name: "victim"})
	h := hubOn(t, p)
	h.create(h.configMap("a", nil), h.configMap("b", nil))
	r := h.start()
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selects("web", all("ConfigMap"))))
	require.Equal(t, []string{"NotFound"}, reasons(r.selects("idle", named("Secret", "none"))))

	require.NoError(t, p.KillAPIServer())
	asked := r.wire.requests("WATCH configmaps")
	eventually(t, "it is to try again", func() bool { return r.wire.requests("WATCH configmaps") > asked })
	got := r.selects("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(got), "what was known is known")
	require.Empty(t, got.Problems)
	require.Equal(t, []string{"NotSynced"}, reasons(r.selects("new", all("Service"))), "what was not is not")

	require.NoError(t, p.StartAPIServer(t.Context()))
	require.NoError(t, h.client.Delete(t.Context(), h.configMap("a", nil)))
	h.create(h.configMap("c", nil))
	eventually(t, "it is to catch up", func() bool {
		got := r.selects("web", all("ConfigMap"))
		return len(got.Problems) == 0 && strings.Join(names(got), " ") == "ConfigMap b ConfigMap c"
	})
	r.hears("new", 0)
	eventually(t, "the new one is to have its list", func() bool {
		return len(r.selects("new", all("Service")).Problems) == 0
	})
	require.Equal(t, []string{"NotFound"}, reasons(r.selects("idle", named("Secret", "none"))))
}

// TestStartWaitsForWatches checks that all watches have ended when Start returns.
func TestStartWaitsForWatches(t *testing.T) {
	h := newHub(t)
	r := h.start()
	r.selects("web", all("ConfigMap"), all("Secret"), all("Service"), all("ServiceAccount"))
	require.Equal(t, 4, r.wire.watches())
	r.stop()
	require.Zero(t, r.wire.watches())
}

// TestStop checks that Start also returns while the API server is not reachable.
func TestStop(t *testing.T) {
	t.Parallel()
	p := localplane.ForTest(t, localplane.Options{Name: "end"})
	h := hubOn(t, p)
	r := h.start()
	r.selects("web", all("ConfigMap"), all("Widget"))
	require.NoError(t, p.KillAPIServer())
	asked := r.wire.requests("WATCH configmaps")
	eventually(t, "it is to try again, and wait", func() bool { return r.wire.requests("WATCH configmaps") > asked+1 })
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	eventually(t, "it is to stop", func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
	calls := r.called("web")
	got := r.selects("web", all("ConfigMap"))
	require.Equal(t, []selection.Problem{{Reason: selection.ReasonNotSynced,
		Message: "this instance of the hub's controller is stopping: wait for the next leader"}}, got.Problems)
	r.Forget(h.owner("web"))
	require.Equal(t, calls, r.called("web"))
}

func TestNew(t *testing.T) {
	_, err := selection.New(selection.Options{Changed: func(types.NamespacedName) {}})
	require.ErrorContains(t, err, "must be set")
	_, err = selection.New(selection.Options{Config: &rest.Config{}})
	require.ErrorContains(t, err, "must be set")
	_, err = selection.New(selection.Options{Config: &rest.Config{Host: "https://[::1"},
		Changed: func(types.NamespacedName) {}})
	require.ErrorContains(t, err, "make a client of the hub")
}

// TestServerThatDoesNotStreamLists checks the API of Kubernetes up to 1.31, which lists without a stream.
func TestServerThatDoesNotStreamLists(t *testing.T) {
	h := newHub(t)
	h.create(h.configMap("a", nil))
	r := h.start()
	r.wire.disturb(func(request *http.Request) *http.Response {
		if request.URL.Query().Has("sendInitialEvents") {
			return answer(http.StatusUnprocessableEntity,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"sendInitialEvents is `+
					`forbidden","code":422}`)
		}
		return nil
	})
	got := r.selects("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Empty(t, got.Problems)
	require.Equal(t, 1, r.wire.requests("LIST configmaps"))
	h.create(h.configMap("b", nil))
	require.Equal(t, 1, r.hears("web", 0))
	require.Equal(t, 2, r.wire.requests("WATCH configmaps"))
}
