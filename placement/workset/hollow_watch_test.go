package workset_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// worksObserved contains the Works on the hub as a watch reports them, in the order of their changes. Invariants are
// checked after each event.
type worksObserved struct {
	mu     sync.Mutex
	now    map[string]*workv1alpha1.Work // by <namespace>/<name>; they are not changed
	always func(map[string]*workv1alpha1.Work) error
	broken error // the first violation of always
}

// watchWorks watches the Works of the hub until the test ends.
func (f *hollows) watchWorks() *worksObserved {
	f.T.Helper()
	s := &worksObserved{}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.follow(ctx, f.Client)
			select {
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond): // while the hub is down, attempts fail immediately
			}
		}
	}()
	f.root.Cleanup(func() { cancel(); <-done })
	return s
}

// follow lists and watches Works until the watch ends.
func (s *worksObserved) follow(ctx context.Context, c client.WithWatch) {
	var list workv1alpha1.WorkList
	if c.List(ctx, &list) != nil {
		return
	}
	s.mu.Lock()
	s.now = map[string]*workv1alpha1.Work{}
	for i := range list.Items {
		s.now[nameOf(&list.Items[i])] = &list.Items[i]
	}
	s.evaluate()
	s.mu.Unlock()
	events, err := c.Watch(ctx, &workv1alpha1.WorkList{},
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		return
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		work, ok := event.Object.(*workv1alpha1.Work)
		if !ok {
			return
		}
		s.mu.Lock()
		if event.Type == watch.Deleted {
			delete(s.now, nameOf(work))
		} else {
			s.now[nameOf(work)] = work
		}
		s.evaluate()
		s.mu.Unlock()
	}
}

func nameOf(o client.Object) string { return o.GetNamespace() + "/" + o.GetName() }

func (s *worksObserved) evaluate() {
	if s.always != nil && s.broken == nil {
		s.broken = s.always(s.now)
	}
}

// check checks an invariant from now on. The returned function ends the check, and returns the first violation.
func (s *worksObserved) check(always func(map[string]*workv1alpha1.Work) error) (end func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.always, s.broken = always, nil
	s.evaluate()
	return func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.always = nil
		return s.broken
	}
}

// all returns the current Works.
func (s *worksObserved) all() map[string]*workv1alpha1.Work {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.now)
}

// waitCurrent waits until the watch has reported the state of the API server. An API server that has started accepts
// writes earlier than watches.
func (f *hollows) waitCurrent() {
	f.T.Helper()
	f.wait("the watch has reported the current Works", func() bool {
		var list workv1alpha1.WorkList
		if f.Client.List(f.T.Context(), &list) != nil {
			return false
		}
		now := f.observed.all()
		return len(now) == len(list.Items) && !slices.ContainsFunc(list.Items, func(w workv1alpha1.Work) bool {
			work := now[nameOf(&w)]
			return work == nil || work.UID != w.UID || work.ResourceVersion != w.ResourceVersion
		})
	})
}

// of returns the Works of the WorkSets in a namespace.
func (s *worksObserved) of(namespace string) map[string]*workv1alpha1.Work {
	all := s.all()
	maps.DeleteFunc(all, func(_ string, w *workv1alpha1.Work) bool {
		return w.Labels[v1alpha1.WorkSetNamespaceLabel] != namespace
	})
	return all
}

// isAvailable reports whether the member has applied the current generation of a Work completely, and its objects are
// available.
func isAvailable(w *workv1alpha1.Work) bool {
	return w.DeletionTimestamp == nil && conditionTrue(w, workv1alpha1.ConditionApplied) &&
		conditionTrue(w, workv1alpha1.ConditionAvailable) && !conditionTrue(w, workv1alpha1.ConditionDegraded)
}

// conditionTrue reports whether a condition is True for the current generation of a Work.
func conditionTrue(w *workv1alpha1.Work, kind string) bool {
	c := meta.FindStatusCondition(w.Status.Conditions, kind)
	return w.Status.ObservedGeneration == w.Generation && c != nil && c.Status == metav1.ConditionTrue &&
		c.ObservedGeneration == w.Generation
}

// atMostProgressing returns a check that at most this many Works of a revision are in progress at the same time:
// written, and neither available nor failed.
func atMostProgressing(namespace, revision string, most int) func(map[string]*workv1alpha1.Work) error {
	return func(works map[string]*workv1alpha1.Work) error {
		n := 0
		for _, w := range works {
			if w.Labels[v1alpha1.WorkSetNamespaceLabel] == namespace && w.Annotations[v1alpha1.RevisionAnnotation] != revision &&
				!isAvailable(w) && !conditionTrue(w, workv1alpha1.ConditionDegraded) {
				n++
			}
		}
		if n > most {
			return fmt.Errorf("%d clusters progress to another revision than %s, want at most %d", n, revision, most)
		}
		return nil
	}
}
