package addon_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// diary records events of Works in their order.
type workEvents struct {
	mu  sync.Mutex
	all []string
}

func (h *hub) recordWorkEvents() *workEvents {
	d := &workEvents{}
	ctx, cancel := context.WithCancel(h.T.Context())
	events, err := h.Client.Watch(ctx, &workv1alpha1.WorkList{}, client.HasLabels{v1alpha1.AddonLabel})
	require.NoError(h.T, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if w, is := event.Object.(*workv1alpha1.Work); is {
				d.record(event.Type, w)
			}
		}
	}()
	h.T.Cleanup(func() { cancel(); <-done })
	return d
}

func (d *workEvents) record(event watch.EventType, w *workv1alpha1.Work) {
	side := "member"
	if w.Labels[v1alpha1.HostedForLabel] != "" {
		side = "hosting"
	}
	entry := strings.ToLower(string(event)) + " " + side + " " + names([]workv1alpha1.Work{*w})
	if event == watch.Modified {
		if w.DeletionTimestamp == nil {
			return
		}
		entry = "going " + side + " " + names([]workv1alpha1.Work{*w})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.all) == 0 || d.all[len(d.all)-1] != entry {
		d.all = append(d.all, entry)
	}
}

func (d *workEvents) index(entry string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, e := range d.all {
		if e == entry {
			return i
		}
	}
	return -1
}

// TestHosting_RemovalOrder checks that hooks run on their own cluster, then the objects on the member are deleted, and
// then its agent.
func TestHosting_RemovalOrder(t *testing.T) { testkit.Virtual(t, testHostingRemovalOrder) }

func testHostingRemovalOrder(t *testing.T) {
	h := newHostingHub(t)
	h.choose("all", "a")
	h.runAgents()
	h.start(addon.Options{Agents: []addon.Agent{hostedAgent{h.name("x"), true}}})
	h.addon("x", h.hosted("h"))
	h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") })
	d := h.recordWorkEvents()
	require.NoError(t, h.Client.Delete(t.Context(), h.get("x")))
	h.Holds("the MemberAddon is deleted", func() bool { return h.memberAddon("x", "a") == nil })
	h.Holds("all events are observed", func() bool {
		return d.index("deleted hosting stop") >= 0 && d.index("deleted member sweep") >= 0
	})
	before := -1
	for _, entries := range [][]string{
		{"added member sweep", "added hosting stop"}, {"going member rules"}, {"deleted member rules"},
		{"going hosting agent"}, {"deleted hosting agent"},
		{"going member sweep", "going hosting stop"},
	} {
		last := before
		for _, entry := range entries {
			index := d.index(entry)
			require.Greater(t, index, before, "%s in %q", entry, d.all)
			last = max(last, index)
		}
		before = last
	}
}

// TestHosting_RemovalFromUnreachableMember checks that a member or a hosting member that does not respond delays the
// removal no longer than the deadline, and that the objects on the other one are deleted.
func TestHosting_RemovalFromUnreachableMember(t *testing.T) {
	for _, dead := range []string{"a", "h"} {
		t.Run(dead, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h := newHostingHub(t)
				h.choose("all", "a")
				members := h.runAgents()
				h.start(addon.Options{Agents: []addon.Agent{hostedAgent{h.name("x"), false}}})
				h.addon("x", h.hosted("h"))
				h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") })
				members.stopAgent(dead)
				h.health(dead, metav1.ConditionUnknown)
				require.NoError(t, h.Client.Delete(t.Context(), h.get("x")))
				h.Holds("the message names the unreachable member", func() bool {
					m := h.memberAddon("x", "a")
					location := map[string]string{"a": "The member cannot", "h": "Member " + h.name("h") +
						", which hosts the add-on agent, cannot"}[dead]
					return m == nil || strings.Contains(m.Status.Message, location)
				})
				require.NotNil(t, h.memberAddon("x", "a"))
				h.Holds("the MemberAddon is deleted", func() bool {
					return h.memberAddon("x", "a") == nil && len(h.worksOn("x", "a")) == 0
				})
				left := h.worksFor("x", "a", "h")
				for _, w := range left {
					require.NotNil(t, w.DeletionTimestamp)
				}
				if dead == "h" {
					require.Len(t, left, 1, "want the Work of the unreachable hosting member to stay")
					members.startAgent("h")
				}
				h.Holds("no Works remain", func() bool { return len(h.worksFor("x", "a", "h")) == 0 })
			})
		})
	}
}

// TestHosting_RemovalFromMissingMember checks that the agent of a member that does not exist is deleted, and that
// nothing waits for a hosting member that does not exist.
func TestHosting_RemovalFromMissingMember(t *testing.T) {
	for _, gone := range []string{"a", "h"} {
		t.Run(gone, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) {
				h := newHostingHub(t)
				h.choose("all", "a")
				members := h.runAgents()
				h.start(addon.Options{Agents: []addon.Agent{hostedAgent{h.name("x"), true}}})
				h.addon("x", func(s *v1alpha1.AddonSpec) {
					h.hosted("h")(s)
					s.Removal.DeadlineSeconds = 3600
				})
				h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") })
				members.stopAgent(gone)
				require.NoError(t,
					h.Client.Delete(t.Context(), &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.name(gone)}}))
				if gone == "h" {
					h.Holds("the missing hosting member is reported", func() bool {
						return strings.Contains(h.memberAddon("x", "a").Status.Message, "is not a member")
					})
				}
				require.NoError(t, client.IgnoreNotFound(h.Client.Delete(t.Context(), h.memberAddon("x", "a"))))
				h.choose("all")
				h.Holds("no Works remain", func() bool {
					return h.memberAddon("x", "a") == nil && len(h.worksOn("x", "a")) == 0 && len(h.worksFor("x", "a", "h")) == 0
				})
			})
		})
	}
}

// TestHosting_MissingMemberAddonDeletesNothing checks that a missing MemberAddon is not a request to delete the objects
// of its agent on a hosting member. If the deletion of the MemberAddon was observed before, the Works have the
// annotation of the request, and are deleted.
func TestHosting_MissingMemberAddonDeletesNothing(t *testing.T) {
	testkit.Virtual(t, testHostingMissingMemberAddonDeletesNothing)
}

func testHostingMissingMemberAddonDeletesNothing(t *testing.T) {
	h := newHostingHub(t)
	h.choose("all", "a")
	h.runAgents()
	options := addon.Options{Agents: []addon.Agent{hostedAgent{h.name("x"), false}}}
	r := h.start(options)
	h.addon("x", h.hosted("h"))
	h.Holds("the add-on runs", func() bool { return h.runs("x", "a", "h") })
	r.quiet(t)
	r.stop()
	h.choose("all")
	m := h.memberAddon("x", "a")
	m.Finalizers = nil
	require.NoError(t, h.Client.Update(t.Context(), m))
	require.NoError(t, h.Client.Delete(t.Context(), m))
	r = h.start(options)
	r.quiet(t)
	left := h.worksFor("x", "a", "h")
	require.Len(t, left, 1)
	require.Nil(t, left[0].DeletionTimestamp)
	r.stop()
	left[0].Annotations[workv1alpha1.DeletionRequestedByAnnotation] = string(m.UID)
	require.NoError(t, h.Client.Update(t.Context(), &left[0]))
	h.start(options)
	h.Holds("the Work is deleted", func() bool { return len(h.worksFor("x", "a", "h")) == 0 })
}
