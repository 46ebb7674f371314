package hub

import (
	"context"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muster-sdk/muster/membership/heartbeat"
)

// notedLeases records the resource versions that a watch of Leases delivers.
type notedLeases struct {
	heartbeat.AllLeases
	note func(resourceVersion string)
}

func (l notedLeases) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events, err := l.AllLeases.Watch(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &notedWatch{events: events, results: make(chan watch.Event), stopped: make(chan struct{})}
	go w.forward(l.note)
	return w, nil
}

// notedWatch forwards the events of a watch. The function watch.Filter of apimachinery is no alternative: its goroutine
// never ends if the reader stops while an event is pending.
type notedWatch struct {
	events  watch.Interface
	results chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

// ResultChan returns the channel of the events. It is closed when the watch has ended.
func (w *notedWatch) ResultChan() <-chan watch.Event { return w.results }

// Stop ends the watch.
func (w *notedWatch) Stop() {
	w.once.Do(func() { close(w.stopped) })
	w.events.Stop()
}

func (w *notedWatch) forward(note func(resourceVersion string)) {
	defer close(w.results)
	for event := range w.events.ResultChan() {
		if lease, ok := event.Object.(*coordinationv1.Lease); ok {
			note(lease.ResourceVersion)
		}
		select {
		case w.results <- event:
		case <-w.stopped:
			return
		}
	}
}
