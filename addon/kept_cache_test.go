package addon_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// slowBody delays reads while it is set to slow.
type slowBody struct {
	io.ReadCloser
	slow *atomic.Bool
}

func (b slowBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for b.slow.Load() {
		<-time.After(10 * time.Millisecond)
	}
	return n, err
}

// TestRemoval_ForcedWithOutdatedCache checks a MemberAddon whose removal was forced, and which the finalizer of
// another component keeps: it still reports that it was forced if the cache has not observed the last writes yet.
func TestRemoval_ForcedWithOutdatedCache(t *testing.T) {
	testkit.Virtual(t, testRemovalForcedWithOutdatedCache)
}

func testRemovalForcedWithOutdatedCache(t *testing.T) {
	h := newHub(t)
	h.members("dead")
	members := h.runAgents()
	h.choose("all", "dead")
	var armed, slow atomic.Bool
	h.wrap = func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
			to := mustertest.AttributesOf(r)
			if armed.Load() && to.Verb == "patch" && to.Resource == "memberaddons/status" {
				slow.Store(true) // The cache shows neither this status nor the patch that removes the finalizer.
			}
			response, err := next.RoundTrip(r)
			if err == nil && to.Verb == "watch" && to.Resource == "memberaddons" {
				response.Body = slowBody{response.Body, &slow}
			}
			return response, err
		})
	}
	h.start(h.painters("x"))
	h.addon("x", h.byPlacements("all"))
	h.waitForColor("x", "dead", "all")
	members.stopAgent("dead")
	h.health("dead", metav1.ConditionUnknown)
	m := h.memberAddon("x", "dead")
	before := m.DeepCopy()
	m.Finalizers = append(m.Finalizers, "example.com/backup")
	m.Spec.RemovalDeadlineSeconds = new(int32(0))
	require.NoError(t, h.Client.Patch(t.Context(), m, client.MergeFrom(before)))
	h.Holds("the MemberAddon is observed", func() bool {
		return h.memberAddon("x", "dead").Status.ObservedGeneration == m.Generation
	})
	armed.Store(true)
	h.choose("all")
	h.Holds("our finalizer is removed", func() bool { return len(h.memberAddon("x", "dead").Finalizers) == 1 })
	h.Holds("the Works are gone", func() bool { return len(h.works("x", "dead")) == 0 })
	h.member("dead", func(m *membershipv1alpha1.MemberCluster) { // causes a reconcile of the MemberAddon
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "example.com/touched", "true")
	})
	<-time.After(5 * time.Second) // of virtual time
	armed.Store(false)
	slow.Store(false)
	<-time.After(time.Second) // of virtual time, in which the cache catches up
	h.Holds("the remaining finalizer is reported", func() bool {
		return strings.Contains(h.memberAddon("x", "dead").Status.Message, "example.com/backup")
	})
	degraded := meta.FindStatusCondition(h.memberAddon("x", "dead").Status.Conditions, v1alpha1.ConditionDegraded)
	require.Equal(t, v1alpha1.ReasonDeadlineExceeded, degraded.Reason)
	require.Contains(t, degraded.Message, "removalDeadlineSeconds")
}
