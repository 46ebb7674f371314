package workset_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
)

// rollBackOnFirstFailure configures a rollback when a single cluster fails.
func rollBackOnFirstFailure(s *v1alpha1.WorkSetSpec) {
	s.Rollout = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromInt32(1)),
		OnFailure: v1alpha1.FailureRollBack}
}

// TestMovedObject_NoFailure checks that an object that is too large for its Work moves to another Work. The move takes
// two updates by the member, and is not a failure.
func TestMovedObject_NoFailure(t *testing.T) { testkit.Virtual(t, testMovedObjectNoFailure) }

func testMovedObjectNoFailure(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	h.start(workset.Options{})
	object := func(name string, size int) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name,
			Labels: map[string]string{"app": "web"}}, Data: map[string]string{"x": strings.Repeat("x", size)}}
	}
	growing := object("growing", 200<<10)
	require.NoError(t, h.Client.Create(t.Context(), growing))
	require.NoError(t, h.Client.Create(t.Context(), object("steady", 200<<10)))
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		rollBackOnFirstFailure(s)
		s.Resources = []v1alpha1.ResourceSelector{{Kind: "ConfigMap",
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	})
	h.succeeded("web", 2)
	require.Equal(t, "[a/web-0 b/web-0]", keys(h.works("web")))
	growing.Data["x"] = strings.Repeat("x", 600<<10)
	require.NoError(t, h.Client.Update(t.Context(), growing))
	h.Holds("each cluster has a second Work", func() bool {
		return keys(h.works("web")) == "[a/web-0 a/web-1 b/web-0 b/web-1]"
	})
	h.succeeded("web", 2)
	for name, work := range h.works("web") {
		require.Len(t, work.Spec.Manifests, 1, name)
		require.Equal(t, strings.HasSuffix(name, "-1"), strings.Contains(string(work.Spec.Manifests[0].Raw), "growing"), name)
	}
}

// failing returns a transport that responds to some requests with an error.
func failing(fail func(*http.Request) bool, status int, body string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if !fail(r) {
				return next.RoundTrip(r)
			}
			response := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": []string{"application/json"}},
				Request: r}
			response.Body = http.NoBody
			if body != "" {
				response.Body = readCloser{strings.NewReader(body)}
			}
			return response, nil
		})
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

func writesWorks(r *http.Request) bool {
	return (r.Method == http.MethodPatch || r.Method == http.MethodPost) && mustertest.AttributesOf(r).Resource == "works"
}

// TestHubWrites_FailTemporarily checks that temporarily failing writes on the hub do not count as a failure of the
// revision.
func TestHubWrites_FailTemporarily(t *testing.T) { testkit.Virtual(t, testHubWritesFailTemporarily) }

func testHubWritesFailTemporarily(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	var failed atomic.Int32
	var broken atomic.Bool
	h.wrap = failing(func(r *http.Request) bool {
		if fails := broken.Load() && writesWorks(r); fails {
			failed.Add(1)
			return true
		}
		return false
	}, http.StatusInternalServerError, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"etcdserver: `+
		`leader changed","reason":"InternalError","code":500}`)
	h.start(workset.Options{})
	h.distribute("web", "all", rollBackOnFirstFailure, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 2)
	broken.Store(true)
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	h.Holds("the write is tried again", func() bool { return failed.Load() > 3 })
	h.Holds("the cluster reports the error", func() bool {
		c := h.cluster("web", "a")
		return c.State == v1alpha1.ClusterProgressing && strings.Contains(c.Message, "leader changed")
	})
	broken.Store(false)
	h.succeeded("web", 2)
	for name, work := range h.works("web") {
		require.Contains(t, string(work.Spec.Manifests[0].Raw), "green", name)
	}
}

// TestRevisionWithoutChanges_Recorded checks that a revision that does not change the content of a cluster is recorded
// in its Works, and that the rollout continues even if this takes long.
func TestRevisionWithoutChanges_Recorded(t *testing.T) {
	testkit.Virtual(t, testRevisionWithoutChangesRecorded)
}

func testRevisionWithoutChangesRecorded(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	slow := make(chan struct{})
	h.wrap = func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && mustertest.AttributesOf(r).Resource == "works" {
				<-slow
			}
			return next.RoundTrip(r)
		})
	}
	r := h.start(workset.Options{})
	h.distribute("web", "all", nil, configMap("web", nil))
	h.succeeded("web", 2)
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Overrides = &v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{
			Clusters:   []v1alpha1.ClusterSelector{{Names: []string{"nobody"}}},
			MergePatch: &runtime.RawExtension{Raw: []byte(`{"data":{"a":"b"}}`)},
		}}}
	})
	h.Holds("the revision exists", func() bool { return len(h.get("web").Status.Revisions) == 2 })
	r.quiet(t)
	close(slow)
	h.succeeded("web", 2)
}

// TestOverride_FailsForOneCluster checks that a cluster whose override fails keeps its objects and its replicas, and
// that the other clusters are updated.
func TestOverride_FailsForOneCluster(t *testing.T) {
	testkit.Virtual(t, testOverrideFailsForOneCluster)
}

func testOverrideFailsForOneCluster(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", func(s *v1alpha1.WorkSetSpec) {
		s.Replicas = &v1alpha1.ReplicaDivision{Strategy: v1alpha1.DivisionStaticWeight}
	}, deployment("web", 4))
	h.succeeded("web", 2)
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = deployment("web", 6)
		s.Spec.Overrides = &v1alpha1.Overrides{Rules: []v1alpha1.OverrideRule{{
			Clusters:  []v1alpha1.ClusterSelector{{Names: []string{h.member("a")}}},
			JSONPatch: []v1alpha1.JSONPatchOperation{{Op: "remove", Path: "/spec/nothing"}},
		}}}
	})
	h.Holds("the cluster reports the failed override", func() bool {
		c := h.cluster("web", "a")
		return c.State == v1alpha1.ClusterFailed && strings.Contains(c.Message, "the path does not exist")
	})
	h.Holds("the other cluster has the revision", func() bool {
		s := h.get("web").Status
		return h.works("web")["b/web-0"].Annotations[v1alpha1.RevisionAnnotation] == s.Revision
	})
	r.quiet(t)
	require.Equal(t, map[string]int64{"a/web-0": 2, "b/web-0": 4}, h.replicas("web"),
		"replicas that one cluster keeps are not assigned to the other cluster")
	require.Zero(t, r.wire.Count("DELETE works"))
	require.Equal(t, "[a/web-0 b/web-0]", keys(h.works("web")))
}

// TestPinnedRevision_Deleted checks that a revision that a user deleted is not rolled out, and that no status reports
// it.
func TestPinnedRevision_Deleted(t *testing.T) { testkit.Virtual(t, testPinnedRevisionDeleted) }

func testPinnedRevisionDeleted(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("some", "a")
	h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "some", nil, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 1)
	blue := h.get("web").Status.Revision
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "green"})
	})
	h.succeeded("web", 1)
	green := h.get("web").Status.Revision
	r.stop()
	require.NoError(t, h.Client.Delete(t.Context(),
		&v1alpha1.WorkSetRevision{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: blue}}))
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Revision = blue })
	h.choose("some", "a", "b")
	h.start(workset.Options{})
	h.Holds("the WorkSet reports the missing revision", func() bool {
		return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonRevisionNotFound
	})
	h.Holds("the new cluster has the revision of the other cluster", func() bool {
		b := h.works("web")["b/web-0"]
		return b != nil && strings.Contains(string(b.Spec.Manifests[0].Raw), "green") &&
			b.Annotations[v1alpha1.RevisionAnnotation] == green
	})
	h.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Revision = "" })
	h.succeeded("web", 2)
}

// TestRollback_RevisionDeleted checks a rollback to a revision that a user deleted: clusters stay unchanged, and the
// WorkSet reports the reason.
func TestRollback_RevisionDeleted(t *testing.T) { testkit.Virtual(t, testRollbackRevisionDeleted) }

func testRollbackRevisionDeleted(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.place("all")
	stopAgents := h.simulateAgents()
	r := h.start(workset.Options{})
	h.distribute("web", "all", rollBackOnFirstFailure, configMap("web", map[string]string{"color": "blue"}))
	h.succeeded("web", 2)
	blue := h.get("web").Status.Revision
	stopAgents()
	h.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Manifests[0] = configMap("web", map[string]string{"color": "red"})
	})
	h.Holds("the first cluster is updated", func() bool { return h.get("web").Status.Counts.Updated == 1 })
	r.stop()
	require.NoError(t, h.Client.Delete(t.Context(),
		&v1alpha1.WorkSetRevision{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: blue}}))
	h.reportStatus(t.Context(), h.works("web")["a/web-0"], metav1.ConditionFalse)
	r = h.start(workset.Options{})
	h.Holds("the WorkSet reports the missing revision", func() bool {
		return h.condition("web", v1alpha1.ConditionDegraded).Reason == v1alpha1.ReasonRevisionNotFound
	})
	r.quiet(t)
	require.NotEqual(t, v1alpha1.PhaseRolledBack, h.get("web").Status.Rollout.Phase)
	require.Contains(t, string(h.works("web")["a/web-0"].Spec.Manifests[0].Raw), "red")
	require.Contains(t, string(h.works("web")["b/web-0"].Spec.Manifests[0].Raw), "blue")
}
