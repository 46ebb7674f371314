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

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/internal/selection"
)

func withConfig(config *rest.Config) func(*selection.Options) {
	return func(o *selection.Options) { o.Config = config }
}

func withClock(clock *testclock.FakeClock) func(*selection.Options) {
	return func(o *selection.Options) { o.Clock = clock }
}

func listAndWatch(resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names,
		Verbs: []string{"list", "watch"}}
}

// TestSelect_MissingPermissions checks that the hub's controller needs only list and watch on the selected objects, and
// that a Problem reports a missing permission.
func TestSelect_MissingPermissions(t *testing.T) {
	h := newHubOnPlane(t)
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = h.Namespace, "key"
	h.Create(h.configMap("a", nil), secret)
	user, config, grant := h.user(listAndWatch("configmaps", "a"))
	r := h.start(withConfig(config))

	got := r.selectFor("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got),
		"a rule with resourceNames is sufficient for a selector with the name")
	require.Equal(t, []selection.Problem{
		{Selector: 0, Reason: selection.ReasonForbidden,
			Message: "the hub's controller is not allowed to read the objects: grant list and watch on secrets in " +
				"namespace " + h.Namespace +
				" to " + user},
		{Selector: 2, Reason: selection.ReasonForbidden,
			Message: "the hub's controller is not allowed to read the objects: grant list and watch on configmaps in " +
				"namespace " + h.Namespace +
				" to " + user},
	}, got.Problems)
	requestsBefore := r.transport.requests("LIST secrets")
	require.Equal(t, got, r.selectFor("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap")),
		"another Select does not wait")
	h.Holds("the list is retried", func() bool { return r.transport.requests("LIST secrets") > requestsBefore })
	require.Zero(t, r.changedCalls("web"), "Changed must not be called for the same problem")

	grant(listAndWatch("configmaps"), listAndWatch("secrets"))
	r.awaitChanged("web", 1)
	got = r.selectFor("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a", "Secret key"}, names(got))
	require.Empty(t, got.Problems)

	calls := r.changedCalls("web")
	grant()
	r.transport.cut() // the API server checks permissions when a watch starts
	r.awaitChanged("web", calls+2)
	got = r.selectFor("web", all("Secret"), named("ConfigMap", "a"), all("ConfigMap"))
	require.Equal(t, []string{"Forbidden", "Forbidden", "Forbidden"}, reasons(got))
	require.Equal(t, []string{"ConfigMap a", "Secret key"}, names(got), "known objects are kept")
}

// TestSelect_ListWithoutWatch checks that the permission list without watch is a Problem, because changes could not be
// observed.
func TestSelect_ListWithoutWatch(t *testing.T) { testkit.Virtual(t, testSelectListWithoutWatch) }

func testSelectListWithoutWatch(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	rule := listAndWatch("configmaps")
	rule.Verbs = []string{"list"}
	_, config, grant := h.user(rule)
	r := h.start(withConfig(config))
	got := r.selectFor("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	if len(got.Problems) == 0 {
		r.awaitChanged("web", 0)
	}
	require.Equal(t, []string{"Forbidden"}, reasons(r.selectFor("web", all("ConfigMap"))))
	calls, lists := r.changedCalls("web"), r.transport.requests("LIST configmaps")
	h.Holds("the list is retried", func() bool { return r.transport.requests("LIST configmaps") > lists+1 })
	require.Equal(t, calls, r.changedCalls("web"), "Changed must not be called for a list that succeeds in between")
	require.Equal(t, []string{"Forbidden"}, reasons(r.selectFor("web", all("ConfigMap"))))

	grant(listAndWatch("configmaps"))
	r.awaitChanged("web", calls)
	got = r.selectFor("web", all("ConfigMap"))
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

// TestSelect_SlowAPIServer checks that Select waits at most a few seconds for a hub that does not respond, and delays
// no other owner.
func TestSelect_SlowAPIServer(t *testing.T) { testkit.Virtual(t, testSelectSlowAPIServer) }

func testSelectSlowAPIServer(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(withClock(clock))
	released := make(chan struct{})
	r.transport.setIntercept(func(request *http.Request) *http.Response {
		if strings.HasSuffix(request.URL.Path, "/configmaps") {
			select {
			case <-released:
			case <-request.Context().Done():
			}
		}
		return nil
	})
	selecting := make(chan selection.Selected)
	go func() { selecting <- r.selectFor("web", all("ConfigMap")) }()
	h.Holds("the request is sent", func() bool {
		return r.transport.requests("WATCH configmaps") == 1 && clock.HasWaiters()
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	want := []selection.Problem{{Reason: selection.ReasonNotSynced,
		Message: "configmaps in namespace " + h.Namespace + " are not listed yet: wait, or check why the API server is slow"}}
	require.Equal(t, want, r.Select(ctx, h.owner("hurried"), of(all("ConfigMap"))).Problems)
	require.Empty(t, reasons(r.selectFor("other", all("Secret"))), "other owners do not wait")

	h.Holds("Select times out", func() bool {
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
	require.Equal(t, want, r.selectFor("late", all("ConfigMap")).Problems, "another Select does not wait")
	require.Equal(t, 1, r.transport.requests("WATCH configmaps"))

	close(released)
	for _, owner := range []string{"web", "hurried", "late"} {
		r.awaitChanged(owner, 0)
		require.Equal(t, []string{"ConfigMap a"}, names(r.selectFor(owner, all("ConfigMap"))))
	}
	require.Zero(t, r.changedCalls("other"))
}

// TestSelect_TransientFailures checks that a transient failure after a successful list is not reported for a minute.
func TestSelect_TransientFailures(t *testing.T) {
	testkit.Virtual(t, testSelectTransientFailures)
}

func testSelectTransientFailures(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	clock := testclock.NewFakeClock(time.Now())
	r := h.start(withClock(clock))
	require.Equal(t, []string{"ConfigMap a"}, names(r.selectFor("web", all("ConfigMap"))))
	fail := func(request *http.Request) *http.Response {
		if strings.HasSuffix(request.URL.Path, "/configmaps") {
			return answer(http.StatusInternalServerError, broken)
		}
		return nil
	}
	r.transport.setIntercept(fail)
	r.transport.cut()
	lists := r.transport.requests("LIST configmaps")
	h.Holds("the list fails twice", func() bool { return r.transport.requests("LIST configmaps") >= lists+2 })
	require.Zero(t, r.changedCalls("web"))
	require.Empty(t, reasons(r.selectFor("web", all("ConfigMap"))))
	require.Equal(t, []selection.Problem{{
		Reason: selection.ReasonNotSynced,
		Message: "listing configmaps \"b\" in namespace " + h.Namespace +
			" fails and is retried: conversion webhook failed",
	}}, r.selectFor("new", named("ConfigMap", "b")).Problems, "a failing first list is a problem")

	clock.Step(2 * time.Minute)
	require.Equal(t, 1, r.awaitChanged("web", 0))
	got := r.selectFor("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Equal(t, []selection.Problem{{
		Reason: selection.ReasonStale,
		Message: "watching configmaps in namespace " + h.Namespace +
			" fails and is retried: conversion webhook failed",
	}}, got.Problems)

	h.Create(h.configMap("b", nil))
	r.transport.setIntercept(nil)
	r.awaitChanged("web", 1)
	r.awaitChanged("new", 0)
	for _, owner := range []string{"web", "new"} {
		got = r.selectFor(owner, all("ConfigMap"))
		require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(got))
		require.Empty(t, got.Problems)
	}
}

// TestAPIServerRestarts checks that a restart of the API server loses no change, and that unchanged objects are not
// reported.
func TestAPIServerRestarts(t *testing.T) {
	p := plane.ForTest(t)
	h := hubOn(t, p)
	h.Create(h.configMap("a", nil), h.configMap("b", nil))
	r := h.start()
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(r.selectFor("web", all("ConfigMap"))))
	require.Equal(t, []string{"NotFound"}, reasons(r.selectFor("idle", named("Secret", "none"))))

	require.NoError(t, p.KillAPIServer())
	requestsBefore := r.transport.requests("WATCH configmaps")
	h.Holds("the watch is retried", func() bool { return r.transport.requests("WATCH configmaps") > requestsBefore })
	got := r.selectFor("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a", "ConfigMap b"}, names(got), "known objects are kept")
	require.Empty(t, got.Problems)
	require.Equal(t, []string{"NotSynced"}, reasons(r.selectFor("new", all("Service"))), "unknown objects are a problem")

	require.NoError(t, p.StartAPIServer(t.Context()))
	require.NoError(t, h.Client.Delete(t.Context(), h.configMap("a", nil)))
	h.Create(h.configMap("c", nil))
	h.Holds("the changes are selected", func() bool {
		got := r.selectFor("web", all("ConfigMap"))
		return len(got.Problems) == 0 && strings.Join(names(got), " ") == "ConfigMap b ConfigMap c"
	})
	r.awaitChanged("new", 0)
	h.Holds("the list of the new selector is complete", func() bool {
		return len(r.selectFor("new", all("Service")).Problems) == 0
	})
	require.Equal(t, []string{"NotFound"}, reasons(r.selectFor("idle", named("Secret", "none"))))
}

// TestStartWaitsForWatches checks that all watches have ended when Start returns.
func TestStartWaitsForWatches(t *testing.T) { testkit.Virtual(t, testStartWaitsForWatches) }

func testStartWaitsForWatches(t *testing.T) {
	h := newHub(t)
	r := h.start()
	r.selectFor("web", all("ConfigMap"), all("Secret"), all("Service"), all("ServiceAccount"))
	require.Equal(t, 4, r.transport.watches())
	r.stop()
	require.Zero(t, r.transport.watches())
}

// TestStop checks that Start also returns while the API server is not reachable.
func TestStop(t *testing.T) {
	p := plane.ForTest(t)
	h := hubOn(t, p)
	r := h.start()
	r.selectFor("web", all("ConfigMap"), all("Widget"))
	require.NoError(t, p.KillAPIServer())
	defer func() { require.NoError(t, p.StartAPIServer(t.Context())) }() // for other tests
	requestsBefore := r.transport.requests("WATCH configmaps")
	h.Holds("the watch is retried twice", func() bool {
		return r.transport.requests("WATCH configmaps") > requestsBefore+1
	})
	stopped := make(chan struct{})
	go func() { r.stop(); close(stopped) }()
	h.Holds("Start returns", func() bool {
		select {
		case <-stopped:
			return true
		default:
			return false
		}
	})
	calls := r.changedCalls("web")
	got := r.selectFor("web", all("ConfigMap"))
	require.Equal(t, []selection.Problem{{Reason: selection.ReasonNotSynced,
		Message: "this instance of the hub's controller is stopping: wait for the next leader"}}, got.Problems)
	r.Forget(h.owner("web"))
	require.Equal(t, calls, r.changedCalls("web"))
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

// TestSelect_ServerWithoutStreamedLists checks the API of Kubernetes up to 1.31, which lists without a stream.
func TestSelect_ServerWithoutStreamedLists(t *testing.T) {
	testkit.Virtual(t, testSelectServerWithoutStreamedLists)
}

func testSelectServerWithoutStreamedLists(t *testing.T) {
	h := newHub(t)
	h.Create(h.configMap("a", nil))
	r := h.start()
	r.transport.setIntercept(func(request *http.Request) *http.Response {
		if request.URL.Query().Has("sendInitialEvents") {
			return answer(http.StatusUnprocessableEntity,
				`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"sendInitialEvents is `+
					`forbidden","code":422}`)
		}
		return nil
	})
	got := r.selectFor("web", all("ConfigMap"))
	require.Equal(t, []string{"ConfigMap a"}, names(got))
	require.Empty(t, got.Problems)
	require.Equal(t, 1, r.transport.requests("LIST configmaps"))
	h.Create(h.configMap("b", nil))
	require.Equal(t, 1, r.awaitChanged("web", 0))
	require.Equal(t, 2, r.transport.requests("WATCH configmaps"))
}
