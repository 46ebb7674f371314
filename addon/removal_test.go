package addon_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// within sets the deadline of the removal of an add-on.
func within(seconds int32, spec func(*v1alpha1.AddonSpec)) func(*v1alpha1.AddonSpec) {
	return func(s *v1alpha1.AddonSpec) {
		spec(s)
		s.Removal.DeadlineSeconds = seconds
	}
}

func isHooks(w *workv1alpha1.Work) bool { return strings.HasSuffix(w.Name, "-hooks") }

// TestRemoval_Deadline checks that a removal which does not end by itself is forced, and that this is recorded before
// allowAll is released.
func TestRemoval_Deadline(t *testing.T) { testkit.Virtual(t, testRemovalDeadline) }

func testRemovalDeadline(t *testing.T) {
	h := newHub(t)
	h.members("a", "dead")
	h.choose("a", "a")
	h.choose("dead", "dead")
	members := h.runAgents()
	members.ignoreWorks(isHooks)
	h.start(addon.Options{Agents: []addon.Agent{cleaner{echo{h.name("stuck")}}, cleaner{echo{h.name("lost")}},
		cleaner{echo{h.name("now")}}}})
	stuck := h.installed("stuck", within(10, h.byPlacement("a")), "a")
	lost := h.installed("lost", within(10, h.byPlacement("dead")), "dead")
	now := h.installed("now", within(600, h.byPlacement("dead")), "dead")
	members.stopAgent("dead")
	h.health("dead", metav1.ConditionUnknown)

	testkit.Step(t, "a hook that never ends", func() {
		h := h.in(t)
		events := h.watchAddon("stuck", nil)
		require.NoError(t, h.Client.Delete(t.Context(), stuck))
		h.Holds("the hook runs", func() bool { return h.hooksOn("stuck", "a") != nil })
		h.Holds("all objects are deleted", func() bool { return h.isDeleted(stuck) && len(h.works("stuck", "a")) == 0 })
		hooks, works, addon := h.steps("stuck")
		h.Holds("all events are observed", func() bool { return events.first(addon("gone").matches) > 0 })
		forced := hasReason(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded)
		events.inOrder("a", addon("deleted"), hooks("made"), forced, works("deleted"), works("gone"), hooks("gone"),
			addon("gone"))
		h.Holds("an Event is recorded", func() bool {
			return h.countEvents("stuck", "a", v1alpha1.ReasonDeadlineExceeded) == 1
		})
	})
	testkit.Step(t, "an unreachable member", func() {
		h := h.in(t)
		events := h.watchAddon("lost", nil)
		require.NoError(t, h.Client.Delete(t.Context(), lost))
		h.Holds("all objects are deleted", func() bool { return h.isDeleted(lost) && len(h.works("lost", "dead")) == 0 })
		_, works, addon := h.steps("lost")
		h.Holds("all events are observed", func() bool { return events.first(addon("gone").matches) > 0 })
		events.inOrder("dead", addon("deleted"), hasReason(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded),
			works("deleted"), works("gone"), addon("gone"))
		h.Holds("an Event is recorded", func() bool {
			return h.countEvents("lost", "dead", v1alpha1.ReasonDeadlineExceeded) == 1
		})
	})
	testkit.Step(t, "a deadline of 0", func() {
		h := h.in(t)
		events := h.watchAddon("now", nil)
		require.NoError(t, h.Client.Delete(t.Context(), now))
		h.Holds("the hook is reported", func() bool {
			return reason(h.memberAddon("now", "dead"), v1alpha1.ConditionProgressing) == v1alpha1.ReasonPreDelete
		})
		m := h.memberAddon("now", "dead")
		before := m.DeepCopy()
		m.Spec.RemovalDeadlineSeconds = new(int32(0))
		require.NoError(t, h.Client.Patch(t.Context(), m, client.MergeFrom(before)))
		h.Holds("all objects are deleted", func() bool { return h.isDeleted(now) && len(h.works("now", "dead")) == 0 })
		_, works, addon := h.steps("now")
		h.Holds("all events are observed", func() bool { return events.first(addon("gone").matches) > 0 })
		events.inOrder("dead", addon("deleted"), hasReason(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded),
			works("deleted"), addon("gone"))
		require.NotZero(t, events.first(func(s observation) bool {
			m, is := s.object.(*v1alpha1.MemberAddon)
			return is && strings.Contains(m.Status.Message, "removalDeadlineSeconds is 0")
		}), "want the reason of the forced removal")
	})
}

// TestRemoval_MissingMember checks that a missing MemberCluster is not a request to remove its add-ons. A requested
// removal from a member that does not exist has no deadline, and the PreDeleter is called before.
func TestRemoval_MissingMember(t *testing.T) { testkit.Virtual(t, testRemovalMissingMember) }

func testRemovalMissingMember(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.choose("all", "a", "b")
	members := h.runAgents()
	var mu sync.Mutex
	leaving := &preDeleter{echo: echo{h.name("leaves")}, mu: &mu,
		answer: func(calls int) (bool, error) { return true, nil }}
	h.start(addon.Options{Agents: []addon.Agent{leaving, cleaner{echo{h.name("stays")}}}})
	a := h.installed("leaves", h.byPlacement("all"), "a", "b")
	stays := h.installed("stays", h.byPlacement("all"), "a", "b")
	members.stopAgent("a")
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.name("a")}}
	require.NoError(t, h.Client.Delete(t.Context(), member))
	for _, name := range []string{"leaves", "stays"} {
		h.Holds(name+" reports the missing member", func() bool {
			return strings.Contains(h.memberAddon(name, "a").Status.Message, "does not belong to a member")
		})
		require.Nil(t, h.memberAddon(name, "a").DeletionTimestamp)
		require.Len(t, h.works(name, "a"), 1)
		require.NoError(t, h.Client.Delete(t.Context(), h.memberAddon(name, "a")))
	}
	for _, name := range []string{"leaves", "stays"} {
		h.Holds(name+" is removed from a", func() bool {
			return h.memberAddon(name, "a") == nil && len(h.works(name, "a")) == 0
		})
	}
	mu.Lock()
	require.Equal(t, []string{"gone"}, leaving.members)
	mu.Unlock()
	for _, object := range []*v1alpha1.Addon{a, stays} {
		require.NoError(t, h.Client.Delete(t.Context(), object))
	}
	h.Holds("all objects are deleted", func() bool { return h.isDeleted(a) && h.isDeleted(stays) })
}

// TestRemoval_NamespaceWithoutMember checks that a MemberAddon that a user created in a namespace of no member stays,
// but does not block the deletion of an Addon.
func TestRemoval_NamespaceWithoutMember(t *testing.T) {
	testkit.Virtual(t, testRemovalNamespaceWithoutMember)
}

func testRemovalNamespaceWithoutMember(t *testing.T) {
	h := newHub(t)
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	a := h.addon("echo", nil)
	// The MemberAddons of an Addon that was deleted before are unknown.
	h.Holds("the Addon has the finalizer", func() bool {
		return h.Client.Get(t.Context(), client.ObjectKeyFromObject(a), a) == nil && len(a.Finalizers) > 0
	})
	foreign := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: a.Name}}
	require.NoError(t, h.Client.Create(t.Context(), foreign))
	h.Holds("the missing member is reported", func() bool {
		return h.Client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign) == nil &&
			strings.Contains(foreign.Status.Message, "does not belong to a member")
	})
	require.NoError(t, h.Client.Delete(t.Context(), a))
	h.Holds("all objects are deleted", func() bool { return h.isDeleted(a) && h.isDeleted(foreign) })
}

// TestRemoval_MemberAddonIsCreatedAgain checks that a MemberAddon which a user deletes is created again while a
// Placement selects the member, but not before its removal is complete.
func TestRemoval_MemberAddonIsCreatedAgain(t *testing.T) {
	testkit.Virtual(t, testRemovalMemberAddonIsCreatedAgain)
}

func testRemovalMemberAddonIsCreatedAgain(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.choose("all", "a")
	h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{cleaner{echo{h.name("echo")}}}})
	h.installed("echo", h.byPlacement("all"), "a")
	first := h.memberAddon("echo", "a")
	require.NoError(t, h.Client.Delete(t.Context(), first))
	h.Holds("the MemberAddon is created again", func() bool {
		m := h.memberAddon("echo", "a")
		return isTrue(m, v1alpha1.ConditionAvailable) && m.UID != first.UID
	})
	require.True(t, h.worksUnchanged("echo", "a"))
	require.Nil(t, h.hooksOn("echo", "a"))

	p := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "all"}}
	second := h.memberAddon("echo", "a")
	require.NoError(t, h.Client.Delete(t.Context(), p))
	h.Holds("the missing Placement is reported", func() bool {
		return strings.Contains(h.get("echo").Status.Message, "does not exist")
	})
	r.quiet(t)
	require.Equal(t, second.UID, h.memberAddon("echo", "a").UID, "want the MemberAddon to stay")
	h.choose("all", "a")
	h.Holds("the Placement is found again", func() bool {
		return !strings.Contains(h.get("echo").Status.Message,
			"does not exist")
	})
	r.quiet(t)
	require.Equal(t, second.UID, h.memberAddon("echo", "a").UID)
}

// TestRemoval_MaxRemoving checks the limit of concurrent removals when an Addon is deleted, and that unreachable
// members do not block others.
func TestRemoval_MaxRemoving(t *testing.T) { testkit.Virtual(t, testRemovalMaxRemoving) }

func testRemovalMaxRemoving(t *testing.T) {
	h := newHub(t)
	const most = 7
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	h.members(names...)
	h.choose("all", names...)
	members := h.runAgents()
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}, MaxRemoving: most})
	a := h.installed("echo", within(600, h.byPlacement("all")), names...)
	dead := names[10:15]
	isDead := map[string]bool{}
	for _, name := range dead {
		members.stopAgent(name)
		h.health(name, metav1.ConditionUnknown)
		isDead[h.namespaceOf(name)] = true
	}
	removing, peak := map[string]bool{}, 0
	events := h.watchAddon("echo", func(s observation) {
		m, is := s.object.(*v1alpha1.MemberAddon)
		switch {
		case !is || isDead[m.Namespace]:
		case s.kind == "DELETED":
			delete(removing, m.Namespace)
		case m.DeletionTimestamp != nil:
			removing[m.Namespace] = true
			peak = max(peak, len(removing))
		}
	})
	require.NoError(t, h.Client.Delete(t.Context(), a))
	var left v1alpha1.MemberAddonList
	list := func() {
		require.NoError(t, h.Client.List(t.Context(), &left, client.MatchingLabels{v1alpha1.AddonLabel: a.Name}))
	}
	h.Holds("only unreachable members remain", func() bool { list(); return len(left.Items) <= len(dead) })
	for i := range left.Items {
		require.True(t, isDead[left.Items[i].Namespace], left.Items[i].Namespace)
		require.NotNil(t, left.Items[i].DeletionTimestamp,
			"want the removal from unreachable members to start, so that its deadline passes")
	}
	require.Len(t, left.Items, len(dead))
	for i := range left.Items {
		before := left.Items[i].DeepCopy()
		left.Items[i].Spec.RemovalDeadlineSeconds = new(int32(0))
		require.NoError(t, h.Client.Patch(t.Context(), &left.Items[i], client.MergeFrom(before)))
	}
	h.Holds("all objects are deleted", func() bool { list(); return len(left.Items) == 0 && h.isDeleted(a) })
	events.mu.Lock()
	defer events.mu.Unlock()
	require.LessOrEqual(t, peak, most)
	require.Greater(t, peak, 1)
	t.Logf("at most %d concurrent removals", peak)
}

// TestRemoval_MissingTemplate checks an add-on whose template is missing: its hooks are unknown, but their existence is
// still known.
func TestRemoval_MissingTemplate(t *testing.T) { testkit.Virtual(t, testRemovalMissingTemplate) }

func testRemovalMissingTemplate(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.choose("all", "a")
	h.runAgents()
	r := h.start(addon.Options{})
	with, without := h.template("with"), h.template("without")
	bare := &v1alpha1.AddonTemplate{}
	bare.Name = without.Name
	mustertest.Change(t, h.Client, bare, func(b *v1alpha1.AddonTemplate) { b.Spec.Manifests = b.Spec.Manifests[:1] })
	hooked, plain := h.installed("with", h.templated("all", with), "a"),
		h.installed("without", h.templated("all", without), "a")
	r.quiet(t)
	for _, object := range []client.Object{&v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: with.Name}}, bare} {
		require.NoError(t, h.Client.Delete(t.Context(), object))
	}
	h.Holds("the missing template is reported", func() bool {
		return strings.Contains(h.memberAddon("with", "a").Status.Message, "not there") ||
			!isTrue(h.memberAddon("with", "a"), v1alpha1.ConditionConfigured)
	})
	require.True(t, h.worksUnchanged("with", "a"))
	for _, object := range []client.Object{hooked, plain} {
		require.NoError(t, h.Client.Delete(t.Context(), object))
	}
	h.Holds("the add-on without hooks is removed",
		func() bool { return h.isDeleted(plain) && len(h.works("without", "a")) == 0 })
	h.Holds("the add-on with hooks names the missing template", func() bool {
		m := h.memberAddon("with", "a")
		return reason(m, v1alpha1.ConditionDegraded) == v1alpha1.ReasonHookFailed &&
			strings.Contains(m.Status.Message, with.Name)
	})
	require.True(t, h.worksUnchanged("with", "a"))
	h.template("with")
	h.Holds("the removal continues with the template",
		func() bool { return h.isDeleted(hooked) && len(h.works("with", "a")) == 0 })
	require.True(t, apierrors.IsNotFound(h.Client.Get(t.Context(), client.ObjectKeyFromObject(hooked), hooked)))
}

// TestInstall_FailingMemberDelaysNoOther checks that a member on which an add-on cannot be installed delays neither
// other members nor the rollout.
func TestInstall_FailingMemberDelaysNoOther(t *testing.T) {
	testkit.Virtual(t, testInstallFailingMemberDelaysNoOther)
}

func testInstallFailingMemberDelaysNoOther(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	broken := &membershipv1alpha1.MemberCluster{}
	require.NoError(t, h.Client.Get(t.Context(), client.ObjectKey{Name: h.name("b")}, broken))
	before := broken.DeepCopy()
	broken.Status.Namespace = "nowhere-" + h.Namespace
	require.NoError(t, h.Client.Status().Patch(t.Context(), broken, client.MergeFrom(before)))
	h.choose("all", "a", "b")
	h.runAgents()
	r := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	h.installed("echo", h.byPlacement("all"), "a")
	h.Holds("the Addon counts the other member", func() bool { return h.get("echo").Status.Counts.Available == 1 })
	require.Less(t, r.wire.Writes()["POST memberaddons"], 30, "want pauses between attempts")
}
