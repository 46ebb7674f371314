package addon_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestCrash stops the controllers at each write of the lifecycle of an add-on, before the request is sent or before
// its response arrives, and lets other controllers continue.
func TestCrash(t *testing.T) {
	writes := 0
	t.Run("whole", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			whole := mustertest.NewCrash(0, mustertest.RequestLost)
			newCrashHub(t).runLifecycle(t, "whole", whole, 0)
			writes = whole.Writes()
		})
	})
	t.Logf("the lifecycle has %d writes", writes)
	require.Greater(t, writes, minWrites)
	for at := 1; at <= writes; at++ {
		for _, how := range []mustertest.Loss{mustertest.ResponseLost, mustertest.RequestLost} {
			if !testkit.Crashes(at, how) {
				continue
			}
			t.Run(fmt.Sprintf("at/%d-%s", at, how), func(t *testing.T) {
				testkit.Virtual(t, func(t *testing.T) {
					newCrashHub(t).runLifecycle(t, fmt.Sprintf("at-%d-%s", at, strings.ToLower(string(how))),
						mustertest.NewCrash(at, how),
						2*writes)
				})
			})
		}
	}
}

func newCrashHub(t *testing.T) *hub {
	h := newHub(t)
	h.members("a", "b")
	h.choose("all", "a", "b")
	h.runAgents()
	return h
}

// minWrites is the minimum number of writes of a lifecycle.
const minWrites = 20

// lifeTest is an add-on with separate controllers, next to other add-ons.
type lifeTest struct {
	*hub

	name   string
	events *observer
	onPoll func() // called before each check of until; may be nil
}

// runLifecycle runs the lifecycle of an add-on, and checks its objects after each step. most is the maximum number of
// writes; 0: any number.
func (h *hub) runLifecycle(t *testing.T, name string, c *mustertest.Crash, most int) {
	l := &lifeTest{hub: h.in(t), name: name}
	l.manage = func(o *manager.Options) {
		only := func(label, value string) cache.ByObject {
			return cache.ByObject{Label: labels.SelectorFromSet(labels.Set{label: value})}
		}
		o.Cache.ByObject = map[client.Object]cache.ByObject{
			&v1alpha1.Addon{}: only("life", name), &v1alpha1.MemberAddon{}: only(v1alpha1.AddonLabel, h.name(name)),
		}
	}
	l.wrap = c.Wrap
	options := addon.Options{Agents: []addon.Agent{cleaner{echo{h.name(name)}}}}
	first := l.start(options)
	var second *running
	l.onPoll = func() { // starts other controllers after the crash
		select {
		case <-c.Done():
			t.Logf("died at %s", c.Request())
			first.stop()
			l.wrap = nil
			second, l.onPoll = l.start(options), nil
		default:
		}
	}
	l.events = l.watchAddon(name, nil)

	l.color(name, "blue")
	a := &v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: l.hub.name(name), Labels: map[string]string{"life": name}}}
	l.byPlacement("all")(&a.Spec)
	a.Spec.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs"}}
	a.Spec.Install.Placements[0].Configs = []v1alpha1.ConfigReference{l.reference(name)}
	a.Spec.Install.Placements[0].Rollout = placementv1alpha1.RolloutStrategy{Type: placementv1alpha1.RolloutProgressive,
		MaxConcurrency: new(intstr.FromInt32(1))}
	require.NoError(t, l.Client.Create(t.Context(), a))
	l.until("all are blue", func() error { return l.all("blue", 1) })
	l.color(name, "red")
	l.until("all are red", func() error { return l.all("red", 2) })
	require.NoError(t, l.Client.Delete(t.Context(), a))
	l.until("all is gone", func() error {
		for _, m := range []string{"a", "b"} {
			if works := l.works(name, m); l.memberAddon(name, m) != nil || len(works) > 0 {
				return fmt.Errorf("%s has %d Works", m, len(works))
			}
		}
		if !l.isDeleted(a) {
			return errors.New("the Addon exists")
		}
		return nil
	})
	l.requireCreatedOnce()
	if most > 0 {
		// The number of status writes depends on how fast the members report, so lifecycles differ in length.
		if c.Request() == "" {
			require.Greater(t, c.At(), minWrites, "want a crash, got none")
			return
		}
		sent := c.Writes()
		for _, n := range second.wire.Writes() {
			sent += n
		}
		require.LessOrEqual(t, sent, most)
	}
}

// all returns nil if all members have the add-on with a color, in one Work with this generation, and all are healthy.
func (l *lifeTest) all(color string, generation int64) error {
	for _, m := range []string{"a", "b"} {
		works, on := l.works(l.name, m), l.memberAddon(l.name, m)
		switch {
		case len(works) != 1 || works[0].Generation != generation || l.colorOf(l.name, m) != color:
			return fmt.Errorf("member %s: want one Work of generation %d in %s, got %d Works, color %q", m, generation, color,
				len(works), l.colorOf(l.name, m))
		case !isTrue(on, v1alpha1.ConditionAvailable) || isTrue(on, v1alpha1.ConditionProgressing) ||
			on.Status.AppliedRevision != on.Status.DesiredRevision:
			return fmt.Errorf("member %s: message %q", m, on.Status.Message)
		}
	}
	status := &l.get(l.name).Status
	if status.Counts.Available != 2 || status.Counts.Updated != 2 || len(status.Placements) != 1 ||
		status.Placements[0].Rollout.Phase != placementv1alpha1.PhaseSucceeded {
		return fmt.Errorf("Addon: message %q", status.Message)
	}
	return nil
}

// requireCreatedOnce requires that no object was created again, that the hooks ran on each member, and that no removal
// was forced.
func (l *lifeTest) requireCreatedOnce() {
	l.T.Helper()
	hooks, works, addon := l.steps(l.name)
	for _, m := range []string{"a", "b"} {
		l.until("all of it was seen", func() error {
			if l.events.first(func(s observation) bool {
				return s.object.GetNamespace() == l.namespaceOf(m) && addon("gone").matches(s)
			}) == 0 {
				return errors.New("the deletion of the MemberAddon was not observed")
			}
			return nil
		})
		l.events.inOrder(m, addon("made"), works("made"), addon("deleted"), hooks("made"), works("deleted"), hooks("deleted"),
			addon("gone"))
	}
	uids := map[string]map[types.UID]bool{}
	l.events.first(func(s observation) bool {
		description := "MemberAddon of " + s.object.GetNamespace()
		if w, is := s.object.(*workv1alpha1.Work); is {
			description = w.Namespace + "/" + w.Name
		}
		if uids[description] == nil {
			uids[description] = map[types.UID]bool{}
		}
		uids[description][s.object.GetUID()] = true
		return false
	})
	require.Len(l.T, uids, 6)
	for description, of := range uids {
		require.Len(l.T, of, 1, "%s was created again", description)
	}
	require.Zero(l.T, l.events.first(hasReason(v1alpha1.ConditionDegraded, v1alpha1.ReasonDeadlineExceeded).matches))
}

// until waits until a function returns no error.
func (l *lifeTest) until(description string, check func() error) {
	l.T.Helper()
	var last error
	err := wait.PollUntilContextTimeout(l.T.Context(), 100*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) {
			if l.onPoll != nil {
				l.onPoll()
			}
			last = check()
			return last == nil, nil
		})
	require.NoError(l.T, err, "%s: %v", description, last)
}
