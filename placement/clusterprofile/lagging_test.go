package clusterprofile_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// gate delays the events of watches of profiles while the gate is closed.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil: the gate is open. In virtual time, a channel can be waited for, and a mutex cannot.
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

func (g *gate) wait() {
	g.mu.Lock()
	opened := g.opened
	g.mu.Unlock()
	if opened != nil {
		<-opened
	}
}

func (g *gate) wrap(inner http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := inner.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") != "" && strings.HasSuffix(r.URL.Path, "/"+profiles) {
			response.Body = &gatedBody{response.Body, g}
		}
		return response, err
	})
}

type gatedBody struct {
	io.ReadCloser
	gate *gate
}

func (b *gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.wait()
	return n, err
}

// TestExport_LaggingWatch checks that an export with a lagging watch knows its own writes, and does not overwrite
// changes of other clients.
func TestExport_LaggingWatch(t *testing.T) { testkit.Virtual(t, testExportLaggingWatch) }

func testExportLaggingWatch(t *testing.T) {
	h := newHub(t, profiles)
	var g gate
	r := h.start(func(config *rest.Config, _ *manager.Options) { config.Wrap(g.wrap) })
	h.member("east")
	profile := h.requireObject(profiles, "east", complete)
	before := len(r.awaitQuiet(t))
	setHealthy := func(to metav1.ConditionStatus) {
		h.status("east", func(s *membershipv1alpha1.MemberClusterStatus) { s.Conditions[1].Status = to })
	}
	hasHealthy := func(want string) func(*unstructured.Unstructured) bool {
		return func(u *unstructured.Unstructured) bool { return status(u, "ControlPlaneHealthy") == want }
	}
	g.close()
	t.Cleanup(g.open)
	for i, to := range []metav1.ConditionStatus{"False", "Unknown", "True", "False"} {
		setHealthy(to)
		h.requireObject(profiles, "east", hasHealthy(string(to)))
		require.Len(t, r.awaitQuiet(t), before+i+1, "each transition is one successful request")
	}
	conditions, _, err := unstructured.NestedSlice(h.get(profiles, "east").Object, "status", "conditions")
	require.NoError(t, err)
	mine := map[string]any{"type": "Mine", "status": "True", "reason": "Mine", "message": "",
		"lastTransitionTime": "2026-03-01T12:00:00Z"}
	patch, err := (&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": profile.GetAPIVersion(), "kind": profile.GetKind(),
		"status": map[string]any{"conditions": append(conditions, mine)},
	}}).MarshalJSON()
	require.NoError(t, err)
	h.patch(profile, string(patch), "status")
	for i := range 12 { // more than the burst
		setHealthy([]metav1.ConditionStatus{"Unknown", "True"}[i%2])
		h.Holds("another write is sent", func() bool { return len(r.recorder.writes()) == before+5+i })
	}
	require.Len(t, r.awaitQuiet(t), before+16)
	require.Equal(t, "False", status(h.get(profiles, "east"), "ControlPlaneHealthy"), "outdated writes are refused")
	g.open()
	require.Equal(t, "True", status(h.requireObject(profiles, "east", hasHealthy("True")), "Mine"))
}
