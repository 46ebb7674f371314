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

// TestDeadline checks that a removal which does not end by itself is forced, and that this is recorded before
// anything is released.
func TestDeadline(t *testing.T) { testkit.Virtual(t, testDeadline) }

func testDeadline(t *testing.T) {
	h := newHub(t)
	h.members("a", "dead")
	h.choose("a", "a")
	h.choose("dead", "dead")
	members := h.obey()
	members.hush(isHooks)
	h.start(addon.Options{Agents: []addon.Agent{cleaner{echo{h.name("stuck")}}, cleaner{echo{h.name("lost")}},
		cleaner{echo{h.name("now")}}}})
	stuck := h.installed("stuck", within(10, h.placed("a")), "a")
	lost := h.installed("lost", within(10, h.placed("dead")), "dead")
	now := h.installed("now", within(600, h.placed("dead")), "dead")
	members.die("dead")
	h.health("dead", metav1.ConditionUnknown)

	testkit.Step(t, "a hook that never ends", func() {
		h := h.in(t)
		seen := h.watchAddon("stuck", nil)
		require.NoError(t, h.client.Delete(t.Context(), stuck))
		h.eventually("the hook runs", func() bool { return h.hooksOn("stuck", "a") != nil })
		h.eventually("all is gone", func() bool { return h.gone(stuck) && len(h.works("stuck", "a")) == 0 })
		hooks, works, addon := h.steps("stuck")
		h.eventually("all of it was seen", func() bool { return seen.first(addon("gone").is) > 0 })
		forced := records(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded)
		seen.inOrder("a", addon("deleted"), hooks("made"), forced, works("deleted"), works("gone"), hooks("gone"),
			addon("gone"))
		h.eventually("an Event tells", func() bool { return h.reported("stuck", "a", v1alpha1.ReasonDeadlineExceeded) == 1 })
	})
	testkit.Step(t, "a member that is dead", func() {
		h := h.in(t)
		seen := h.watchAddon("lost", nil)
		require.NoError(t, h.client.Delete(t.Context(), lost))
		h.eventually("all is gone", func() bool { return h.gone(lost) && len(h.works("lost", "dead")) == 0 })
		_, works, addon := h.steps("lost")
		h.eventually("all of it was seen", func() bool { return seen.first(addon("gone").is) > 0 })
		seen.inOrder("dead", addon("deleted"), records(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded),
			works("deleted"), works("gone"), addon("gone"))
		h.eventually("an Event tells", func() bool {
			return h.reported("lost", "dead", v1alpha1.ReasonDeadlineExceeded) == 1
		})
	})
	testkit.Step(t, "a deadline of 0", func() {
		h := h.in(t)
		seen := h.watchAddon("now", nil)
		require.NoError(t, h.client.Delete(t.Context(), now))
		h.eventually("it waits", func() bool {
			return reason(h.memberAddon("now", "dead"), v1alpha1.ConditionProgressing) == v1alpha1.ReasonPreDelete
		})
		m := h.memberAddon("now", "dead")
		before := m.DeepCopy()
		m.Spec.RemovalDeadlineSeconds = new(int32(0))
		require.NoError(t, h.client.Patch(t.Context(), m, client.MergeFrom(before)))
		h.eventually("all is gone", func() bool { return h.gone(now) && len(h.works("now", "dead")) == 0 })
		_, works, addon := h.steps("now")
		h.eventually("all of it was seen", func() bool { return seen.first(addon("gone").is) > 0 })
		seen.inOrder("dead", addon("deleted"), records(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded),
			works("deleted"), addon("gone"))
		require.NotZero(t, seen.first(func(s renewal) bool {
			m, is := s.object.(*v1alpha1.MemberAddon)
			return is && strings.Contains(m.Status.Message, "removalDeadlineSeconds is 0")
		}), "it says why")
	})
}

// TestGone checks that a missing MemberCluster is not a request to remove its add-ons. A requested removal from a
// member that does not exist has no deadline, and the PreDeleter is called before.
func TestGone(t *testing.T) { testkit.Virtual(t, testGone) }

func testGone(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.choose("all", "a", "b")
	members := h.obey()
	var mu sync.Mutex
	leaves := &polite{echo: echo{h.name("leaves")}, mu: &mu, answer: func(asked int) (bool, error) { return true, nil }}
	h.start(addon.Options{Agents: []addon.Agent{leaves, cleaner{echo{h.name("stays")}}}})
	a := h.installed("leaves", h.placed("all"), "a", "b")
	stays := h.installed("stays", h.placed("all"), "a", "b")
	members.die("a")
	member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: h.name("a")}}
	require.NoError(t, h.client.Delete(t.Context(), member))
	for _, name := range []string{"leaves", "stays"} {
		h.eventually(name+" says what to do", func() bool {
			return strings.Contains(h.memberAddon(name, "a").Status.Message, "does not belong to a member")
		})
		require.Nil(t, h.memberAddon(name, "a").DeletionTimestamp)
		require.Len(t, h.works(name, "a"), 1)
		require.NoError(t, h.client.Delete(t.Context(), h.memberAddon(name, "a")))
	}
	for _, name := range []string{"leaves", "stays"} {
		h.eventually(name+" is gone from a", func() bool {
			return h.memberAddon(name, "a") == nil && len(h.works(name, "a")) == 0
		})
	}
	mu.Lock()
	require.Equal(t, []string{"gone"}, leaves.members)
	mu.Unlock()
	for _, object := range []*v1alpha1.Addon{a, stays} {
		require.NoError(t, h.client.Delete(t.Context(), object))
	}
	h.eventually("all is gone", func() bool { return h.gone(a) && h.gone(stays) })
}

// TestForeignNamespace checks that a MemberAddon that a user created in a namespace of no member stays, but does not
// block the deletion of an Addon.
func TestForeignNamespace(t *testing.T) { testkit.Virtual(t, testForeignNamespace) }

func testForeignNamespace(t *testing.T) {
	h := newHub(t)
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	a := h.addon("echo", nil)
	// of an Addon that was deleted before, it is not known what it had
	h.eventually("it is not to go before what is made of it", func() bool {
		return h.client.Get(t.Context(), client.ObjectKeyFromObject(a), a) == nil && len(a.Finalizers) > 0
	})
	theirs := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: a.Name}}
	require.NoError(t, h.client.Create(t.Context(), theirs))
	h.eventually("it says so", func() bool {
		return h.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs) == nil &&
			strings.Contains(theirs.Status.Message, "does not belong to a member")
	})
	require.NoError(t, h.client.Delete(t.Context(), a))
	h.eventually("all is gone", func() bool { return h.gone(a) && h.gone(theirs) })
}

// TestComesBack checks that a MemberAddon which a user deletes is created again while a Placement selects the member,
// but not before its removal is complete.
func TestComesBack(t *testing.T) { testkit.Virtual(t, testComesBack) }

func testComesBack(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.choose("all", "a")
	h.obey()
	r := h.start(addon.Options{Agents: []addon.Agent{cleaner{echo{h.name("echo")}}}})
	h.installed("echo", h.placed("all"), "a")
	first := h.memberAddon("echo", "a")
	require.NoError(t, h.client.Delete(t.Context(), first))
	h.eventually("it is back", func() bool {
		m := h.memberAddon("echo", "a")
		return is(m, v1alpha1.ConditionAvailable) && m.UID != first.UID
	})
	require.True(t, h.intact("echo", "a"))
	require.Nil(t, h.hooksOn("echo", "a"))

	p := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "all"}}
	second := h.memberAddon("echo", "a")
	require.NoError(t, h.client.Delete(t.Context(), p))
	h.eventually("the Addon says that it is missing", func() bool {
		return strings.Contains(h.get("echo").Status.Message, "does not exist")
	})
	r.quiet(t)
	require.Equal(t, second.UID, h.memberAddon("echo", "a").UID, "it keeps what it has")
	h.choose("all", "a")
	h.eventually("it is back", func() bool { return !strings.Contains(h.get("echo").Status.Message, "does not exist") })
	r.quiet(t)
	require.Equal(t, second.UID, h.memberAddon("echo", "a").UID)
}

// TestManyRemovals checks the limit of concurrent removals when an Addon is deleted, and that unreachable members do
// not block others.
func TestManyRemovals(t *testing.T) { testkit.Virtual(t, testManyRemovals) }

func testManyRemovals(t *testing.T) {
	h := newHub(t)
	const most = 7
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("m%02d", i))
	}
	h.members(names...)
	h.choose("all", names...)
	members := h.obey()
	h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}, MaxRemoving: most})
	a := h.installed("echo", within(600, h.placed("all")), names...)
	dead := names[10:15]
	isDead := map[string]bool{}
	for _, name := range dead {
		members.die(name)
		h.health(name, metav1.ConditionUnknown)
		isDead[h.namespaceOf(name)] = true
	}
	going, peak := map[string]bool{}, 0
	seen := h.watchAddon("echo", func(s renewal) {
		m, is := s.object.(*v1alpha1.MemberAddon)
		switch {
		case !is || isDead[m.Namespace]:
		case s.kind == "DELETED":
			delete(going, m.Namespace)
		case m.DeletionTimestamp != nil:
			going[m.Namespace] = true
			peak = max(peak, len(going))
		}
	})
	require.NoError(t, h.client.Delete(t.Context(), a))
	var left v1alpha1.MemberAddonList
	list := func() {
		require.NoError(t, h.client.List(t.Context(), &left, client.MatchingLabels{v1alpha1.AddonLabel: a.Name}))
	}
	h.eventually("only the dead are left", func() bool { list(); return len(left.Items) <= len(dead) })
	for i := range left.Items {
		require.True(t, isDead[left.Items[i].Namespace], left.Items[i].Namespace)
		require.NotNil(t, left.Items[i].DeletionTimestamp, "they have begun, so that their deadline has")
	}
	require.Len(t, left.Items, len(dead))
	for i := range left.Items {
		before := left.Items[i].DeepCopy()
		left.Items[i].Spec.RemovalDeadlineSeconds = new(int32(0))
		require.NoError(t, h.client.Patch(t.Context(), &left.Items[i], client.MergeFrom(before)))
	}
	h.eventually("all is gone", func() bool { list(); return len(left.Items) == 0 && h.gone(a) })
	seen.mu.Lock()
	defer seen.mu.Unlock()
	require.LessOrEqual(t, peak, most)
	require.Greater(t, peak, 1)
	t.Logf("%d at a time at the most", peak)
}

// TestTemplateGone checks an add-on whose template is missing: its hooks are unknown, but their existence is still
// known.
func TestTemplateGone(t *testing.T) { testkit.Virtual(t, testTemplateGone) }

func testTemplateGone(t *testing.T) {
	h := newHub(t)
	h.members("a")
	h.choose("all", "a")
	h.obey()
	r := h.start(addon.Options{})
	with, without := h.template("with"), h.template("without")
	bare := &v1alpha1.AddonTemplate{}
	bare.Name = without.Name
	mustertest.Change(t, h.client, bare, func(b *v1alpha1.AddonTemplate) { b.Spec.Manifests = b.Spec.Manifests[:1] })
	hooked, plain := h.installed("with", h.templated("all", with), "a"),
		h.installed("without", h.templated("all", without), "a")
	r.quiet(t)
	for _, object := range []client.Object{&v1alpha1.AddonTemplate{ObjectMeta: metav1.ObjectMeta{Name: with.Name}}, bare} {
		require.NoError(t, h.client.Delete(t.Context(), object))
	}
	h.eventually("it keeps what it has", func() bool {
		return strings.Contains(h.memberAddon("with", "a").Status.Message, "not there") ||
			!is(h.memberAddon("with", "a"), v1alpha1.ConditionConfigured)
	})
	require.True(t, h.intact("with", "a"))
	for _, object := range []client.Object{hooked, plain} {
		require.NoError(t, h.client.Delete(t.Context(), object))
	}
	h.eventually("what has no hooks goes", func() bool { return h.gone(plain) && len(h.works("without", "a")) == 0 })
	h.eventually("what has some says what it lacks", func() bool {
		m := h.memberAddon("with", "a")
		return reason(m, v1alpha1.ConditionDegraded) == v1alpha1.ReasonHookFailed &&
			strings.Contains(m.Status.Message, with.Name)
	})
	require.True(t, h.intact("with", "a"))
	h.template("with")
	h.eventually("with its template it goes on", func() bool { return h.gone(hooked) && len(h.works("with", "a")) == 0 })
	require.True(t, apierrors.IsNotFound(h.client.Get(t.Context(), client.ObjectKeyFromObject(hooked), hooked)))
}

// TestOneFails checks that a member on which an add-on cannot be installed delays neither other members nor the
// rollout.
func TestOneFails(t *testing.T) { testkit.Virtual(t, testOneFails) }

func testOneFails(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	broken := &membershipv1alpha1.MemberCluster{}
	require.NoError(t, h.client.Get(t.Context(), client.ObjectKey{Name: h.name("b")}, broken))
	before := broken.DeepCopy()
	broken.Status.Namespace = "nowhere-" + h.namespace
	require.NoError(t, h.client.Status().Patch(t.Context(), broken, client.MergeFrom(before)))
	h.choose("all", "a", "b")
	h.obey()
	r := h.start(addon.Options{Agents: []addon.Agent{echo{h.name("echo")}}})
	h.installed("echo", h.placed("all"), "a")
	h.eventually("the Addon counts", func() bool { return h.get("echo").Status.Counts.Available == 1 })
	require.Less(t, r.wire.Writes()["POST memberaddons"], 30, "it is not tried without a pause")
}
