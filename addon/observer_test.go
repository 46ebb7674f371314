package addon_test

import (
	"context"
	"slices"
	"strconv"
	"sync"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// observation is an event of a watch, with the resource version of the hub at that time.
type observation struct {
	version uint64
	kind    watch.EventType
	object  client.Object
}

// observer records the events of the Works and MemberAddons of an add-on, in their order.
type observer struct {
	h *hub

	mu     sync.Mutex
	seen   []observation
	notify func(s observation) // called with each; nil: no call
}

// watchAddon observes an add-on's Works and MemberAddons until the test ends.
func (h *hub) watchAddon(name string, notify func(observation)) *observer {
	h.T.Helper()
	o := &observer{h: h, notify: notify}
	ctx, cancel := context.WithCancel(h.T.Context())
	var running sync.WaitGroup
	for _, list := range []client.ObjectList{&workv1alpha1.WorkList{}, &v1alpha1.MemberAddonList{}} {
		ofAddon := client.MatchingLabels{v1alpha1.AddonLabel: h.name(name)}
		require.NoError(h.T, h.Client.List(ctx, list, ofAddon))
		events, err := h.Client.Watch(ctx, list, ofAddon,
			&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
		require.NoError(h.T, err)
		running.Go(func() {
			defer events.Stop()
			for event := range events.ResultChan() {
				if object, is := event.Object.(client.Object); is {
					o.record(event.Type, object)
				}
			}
		})
	}
	h.T.Cleanup(func() { cancel(); running.Wait() })
	return o
}

func (o *observer) record(kind watch.EventType, object client.Object) {
	version, err := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s := observation{version, kind, object}
	o.seen = append(o.seen, s)
	if o.notify != nil {
		o.notify(s)
	}
}

// first returns the version at which a condition was first observed; zero: never.
func (o *observer) first(condition func(observation) bool) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	sorted := slices.SortedFunc(slices.Values(o.seen), func(a, b observation) int {
		return int(int64(a.version) - int64(b.version))
	})
	for _, s := range sorted {
		if condition(s) {
			return s.version
		}
	}
	return 0
}

// inOrder requires that all steps were observed on a member, each after the one before.
func (o *observer) inOrder(member string, steps ...step) {
	o.h.T.Helper()
	last := uint64(0)
	for _, s := range steps {
		at := o.first(func(seen observation) bool {
			return seen.object.GetNamespace() == o.h.namespaceOf(member) && s.matches(seen)
		})
		require.NotZero(o.h.T, at, "%s: %s", member, s.description)
		require.Greater(o.h.T, at, last, "%s: %s observed too early", member, s.description)
		last = at
	}
}

// step is a condition that can be observed.
type step struct {
	description string
	matches     func(observation) bool
}

// steps returns the observable steps of Works and MemberAddons.
func (h *hub) steps(name string) (hooks, works, addon func(event string) step) {
	of := func(description string, is func(client.Object) bool) func(string) step {
		return func(event string) step {
			return step{description + " " + event, func(s observation) bool {
				switch {
				case !is(s.object):
					return false
				case event == "made":
					return s.kind == watch.Added
				case event == "deleted":
					return s.object.GetDeletionTimestamp() != nil
				}
				return s.kind == watch.Deleted // gone
			}}
		}
	}
	isWork := func(o client.Object) bool { _, is := o.(*workv1alpha1.Work); return is }
	isHooks := func(o client.Object) bool { return isWork(o) && o.GetName() == "addon-"+h.name(name)+"-hooks" }
	return of("hooks", isHooks), of("Work", func(o client.Object) bool {
		return isWork(o) && !isHooks(o)
	}), of("MemberAddon", func(o client.Object) bool { return !isWork(o) })
}

// hasReason returns the step that a MemberAddon has a condition with a reason.
func hasReason(kind, reason string) step {
	return step{kind + " " + reason, func(s observation) bool {
		m, is := s.object.(*v1alpha1.MemberAddon)
		if !is {
			return false
		}
		for _, c := range m.Status.Conditions {
			if c.Type == kind && c.Reason == reason && c.Status == "True" {
				return true
			}
		}
		return false
	}}
}
