package agent_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestBusy_StatusesFirst checks that the statuses of Works that arrive together do not wait for the records of UIDs
// and for Events, and that both follow.
func TestBusy_StatusesFirst(t *testing.T) {
	testkit.Virtual(t, func(t *testing.T) {
		const works = 20
		w := newWorldInMemory(t)
		var mu sync.Mutex
		var order []string
		note := func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
			mu.Lock()
			order = append(order, describe(request))
			mu.Unlock()
			return next.RoundTrip(request)
		}
		w.toHub.disturb(note)
		w.toHost.disturb(note)
		var all []*v1alpha1.Work
		for i := range works {
			name := fmt.Sprintf("w%d", i)
			all = append(all, w.work(name, "{"+manifests(configMap(name, "{k: v}"))+"}"))
		}
		w.start(func(o *agent.Options) { o.Workers = 1 })
		for _, work := range all {
			w.ready(work)
			w.recorded(work)
		}
		<-time.After(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		statuses, records, events := 0, 0, 0
		recordsBefore, eventsBefore := 0, 0
		for _, request := range order {
			switch {
			case strings.HasPrefix(request, "PATCH works") && strings.HasSuffix(request, "status"):
				if statuses++; statuses == works {
					recordsBefore, eventsBefore = records, events
				}
			case strings.HasPrefix(request, "PUT appliedworks"):
				records++
			case strings.HasPrefix(request, "POST events"):
				events++
			}
		}
		require.Equal(t, works, statuses)
		require.Equal(t, works, records, "each UID is recorded once")
		require.Equal(t, works, events)
		require.LessOrEqual(t, recordsBefore, 1, "none but that of the last Work: %v", order)
		require.LessOrEqual(t, eventsBefore, 2, "one in a second: %v", order)
	})
}

// recorded waits until the inventory of a Work has a UID for each of its objects.
func (w *world) recorded(work *v1alpha1.Work) {
	w.t.Helper()
	w.eventually(func() error {
		applied := w.applied(work)
		if applied == nil || len(applied.Status.Resources) == 0 {
			return fmt.Errorf("%s has no inventory", work.Name)
		}
		for _, entry := range applied.Status.Resources {
			if entry.UID == "" {
				return fmt.Errorf("%s is recorded without a UID", entry)
			}
		}
		return nil
	})
}
