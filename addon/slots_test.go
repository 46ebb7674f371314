package addon_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// lookout observes all changes of the Works of an add-on on the API server in their order, and records violations.
type slotObserver struct {
	slots int

	mu         sync.Mutex
	works      map[string]*workv1alpha1.Work // by namespace
	most       int                           // maximum number of members that were updated concurrently
	violations []string
}

// observe watches the Works of an add-on, one for each member, until the test ends.
func (h *hub) observe(name string, slots int) *slotObserver {
	o := &slotObserver{slots: slots, works: map[string]*workv1alpha1.Work{}}
	ctx, cancel := context.WithCancel(context.Background())
	events, err := h.Client.Watch(ctx, &workv1alpha1.WorkList{}, client.MatchingLabels{v1alpha1.AddonLabel: h.name(name)})
	require.NoError(h.T, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			if work, is := event.Object.(*workv1alpha1.Work); is {
				o.record(event.Type, work)
			}
		}
		if ctx.Err() == nil {
			o.addViolation("the watch has ended")
		}
	}()
	h.T.Cleanup(func() { cancel(); events.Stop(); <-done })
	return o
}

func (o *slotObserver) addViolation(format string, args ...any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.violations = append(o.violations, fmt.Sprintf(format, args...))
}

// saw handles a change. The number of members that are being updated never exceeds the number of slots.
func (o *slotObserver) record(event watch.EventType, work *workv1alpha1.Work) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.works[work.Namespace] = work; event == watch.Deleted {
		delete(o.works, work.Namespace)
	}
	n := 0
	for _, w := range o.works {
		if isUpdating(w) {
			n++
		}
	}
	if o.most = max(o.most, n); n > o.slots {
		o.violations = append(o.violations, fmt.Sprintf("%d members are being updated, with %s", n, work.Namespace))
	}
}

// isUpdating reports whether a member has a revision on which it has not reported success or failure yet.
func isUpdating(w *workv1alpha1.Work) bool {
	reportedStatus := w.Status.ObservedGeneration == w.Generation
	return !reportedStatus || !meta.IsStatusConditionTrue(w.Status.Conditions,
		workv1alpha1.ConditionAvailable) && !failed(w)
}

func failed(w *workv1alpha1.Work) bool {
	return w.Status.ObservedGeneration == w.Generation &&
		meta.IsStatusConditionTrue(w.Status.Conditions, workv1alpha1.ConditionDegraded)
}

// check requires that there were no violations, and that the slots were used.
func (o *slotObserver) check(t require.TestingT) {
	o.mu.Lock()
	defer o.mu.Unlock()
	require.Empty(t, o.violations)
	require.LessOrEqual(t, o.most, o.slots)
	require.Greater(t, o.most, o.slots/2, "want most of the slots to be used")
	o.most = 0
}

// namespacesWith returns the namespaces of the members whose Work has a text in its manifests.
func (o *slotObserver) namespacesWith(text string) (all []string) {
	for namespace, w := range o.now() {
		if manifestsContain(w, text) {
			all = append(all, namespace)
		}
	}
	return all
}

// manifestsContain reports whether a Work has a text in its manifests.
func manifestsContain(w *workv1alpha1.Work, text string) bool {
	return slices.ContainsFunc(w.Spec.Manifests, func(m workv1alpha1.Manifest) bool {
		return strings.Contains(string(m.Raw), text)
	})
}

func (o *slotObserver) now() map[string]*workv1alpha1.Work {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.works)
}
