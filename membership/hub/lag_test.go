package hub_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// TestLaggingCache_Members checks that a hub whose cache does not contain a member yet neither answers its agent that
// the member was deregistered, which would make the agent discard its claim, nor creates another member for that
// cluster.
func TestLaggingCache_Members(t *testing.T) { testkit.Virtual(t, testLaggingCacheMembers) }

func testLaggingCacheMembers(t *testing.T) {
	members := lagging{suffix: "/memberclusters"}
	h := startHub(t, newMemory(t), hub.Options{}, members.wrap)
	bootstrap := h.token("lagging", v1alpha1.JoinTokenSpec{AutoAccept: true})
	members.pause()
	defer members.resume()
	a := h.newAgent(bootstrap, agent.Options{Name: "lagging"}).start()
	request := h.request("id-lagging", v1alpha1.AnswerPending, v1alpha1.ReasonPreparing)
	require.NotEmpty(t, request.Status.MemberUID)

	second := h.newAgent(bootstrap, agent.Options{Name: "lagging-too", ClusterID: "id-lagging"}).start()
	h.request("id-lagging", v1alpha1.AnswerHeld, v1alpha1.ReasonClusterIDTaken)
	second.stop()

	members.resume()
	h.untilCondition("lagging", v1alpha1.ConditionJoined, metav1.ConditionTrue, v1alpha1.ReasonAgentJoined)
	require.Equal(t, request.Status.MemberUID, h.member("lagging").UID)
	h.remove("lagging")
	a.stop()
}

// TestLaggingCache_Namespaces checks that a hub whose cache does not contain a member's namespace does not remove the
// MemberCluster before the namespace.
func TestLaggingCache_Namespaces(t *testing.T) { testkit.Virtual(t, testLaggingCacheNamespaces) }

func testLaggingCacheNamespaces(t *testing.T) {
	namespaces := lagging{suffix: "/api/v1/namespaces"}
	h := startHub(t, newMemory(t), hub.Options{}, namespaces.wrap)
	h.token("unseen", v1alpha1.JoinTokenSpec{}) // the hub has started
	namespaces.pause()
	defer namespaces.resume()
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "unseen"}, Spec: v1alpha1.MemberClusterSpec{Accepted: new(true)},
	})
	h.untilPrepared("unseen")
	h.remove("unseen")
	err := h.Client.Get(t.Context(), client.ObjectKey{Name: "member-unseen"}, &corev1.Namespace{})
	require.True(t, apierrors.IsNotFound(err), "the MemberCluster was removed before its namespace: %v", err)
}

// untilPrepared waits until the objects of a member exist that an agent needs.
func (h *testHub) untilPrepared(name string) {
	h.T.Helper()
	h.Eventually("member "+name+" has a Membership", func() error {
		key := client.ObjectKey{Namespace: membership.DefaultNamespacePrefix + name, Name: membership.MembershipName}
		return h.Client.Get(h.T.Context(), key, &v1alpha1.Membership{})
	})
}

// TestLaggingCache_Memberships checks that a hub whose cache does not show that an agent has joined keeps the agent's
// access until the agent has cleaned up.
func TestLaggingCache_Memberships(t *testing.T) { testkit.Virtual(t, testLaggingCacheMemberships) }

func testLaggingCacheMemberships(t *testing.T) {
	memberships := lagging{suffix: "/memberships"}
	h := startHub(t, newMemory(t), hub.Options{}, memberships.wrap)
	bootstrap := h.token("unheard", v1alpha1.JoinTokenSpec{})
	h.Create(&v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "unheard"},
		Spec:       v1alpha1.MemberClusterSpec{Accepted: new(true), ClusterID: "id-unheard"},
	})
	h.untilPrepared("unheard")
	pause(time.Second) // for the cache of the hub
	memberships.pause()
	defer memberships.resume()

	var calls atomic.Int32
	var clean atomic.Bool
	works := membership.GateFunc("works", func(context.Context, membership.Member) ([]string, error) {
		calls.Add(1)
		if clean.Load() {
			return nil, nil
		}
		return []string{"work/guestbook"}, nil
	})
	a := h.newAgent(bootstrap, agent.Options{Name: "unheard", Cleaners: []membership.LeaveGate{works}}).start()
	h.Eventually("the agent has joined", func() error {
		conditions := h.membership("unheard").Status.Conditions
		return orError(meta.IsStatusConditionTrue(conditions, v1alpha1.ConditionJoined), "%s", messages(conditions))
	})
	require.NoError(t, h.Client.Delete(t.Context(), h.member("unheard")))
	h.Eventually("the agent cleans up",
		func() error { return orError(calls.Load() > 1, "the cleaner was called %d times", calls.Load()) })
	cluster := h.untilPhase("unheard", v1alpha1.PhaseLeaving)
	require.Equal(t, "agent", cluster.Status.Leave.Waiting)
	clean.Store(true)
	h.untilGone("unheard")
	h.untilEmpty("unheard")
	a.stop()
}

// TestMember_RemainsOfFormerMember checks that a member that a user removed, with all its objects, does not block a new
// one of the same name.
func TestMember_RemainsOfFormerMember(t *testing.T) {
	testkit.Virtual(t, testMemberRemainsOfFormerMember)
}

func testMemberRemainsOfFormerMember(t *testing.T) {
	server := newMemory(t)
	h := startHub(t, server, hub.Options{})
	bootstrap := h.token("remains", v1alpha1.JoinTokenSpec{})
	a := h.joined(bootstrap, agent.Options{Name: "remains"})
	// The request of an agent that has joined would make the next hub create its MemberCluster again.
	h.Eventually("the JoinRequest is deleted", func() error {
		var requests v1alpha1.JoinRequestList
		if err := h.Client.List(t.Context(), &requests); err != nil {
			return err
		}
		exists := slices.ContainsFunc(requests.Items, func(r v1alpha1.JoinRequest) bool {
			return r.Spec.ClusterID == "id-remains"
		})
		return orError(!exists, "the JoinRequest exists")
	})
	a.stop()
	h.stop()
	h.change("remains", func(c *v1alpha1.MemberCluster) { c.Finalizers = nil })
	h.remove("remains")

	h = startHub(t, server, hub.Options{})
	a = h.joined(bootstrap, agent.Options{Name: "remains"})
	require.Equal(t, h.member("remains").UID, h.membership("remains").Spec.MemberUID)
	h.remove("remains")
	h.untilEmpty("remains")
	a.stop()
}

// lagging is a transport whose watches of one kind can be paused.
type lagging struct {
	suffix  string // of the paths
	mu      sync.Mutex
	resumed chan struct{} // nil or closed: not paused
}

func (l *lagging) wrap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return mustertest.RoundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && strings.HasSuffix(request.URL.Path, l.suffix) && request.URL.Query().Get("watch") != "" {
				response.Body = &laggingBody{ReadCloser: response.Body, watches: l, done: request.Context().Done()}
			}
			return response, err
		})
	})
	return config
}

func (l *lagging) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resumed = make(chan struct{})
}

func (l *lagging) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed != nil {
		close(l.resumed)
		l.resumed = nil
	}
}

type laggingBody struct {
	io.ReadCloser
	watches *lagging
	done    <-chan struct{}
}

// Read delays the data that it has read, because a read is in progress when the watches are paused.
func (b *laggingBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	b.watches.mu.Lock()
	resumed := b.watches.resumed
	b.watches.mu.Unlock()
	if resumed != nil {
		select {
		case <-resumed:
		case <-b.done:
		}
	}
	return n, err
}
