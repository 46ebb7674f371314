package clusterprofile_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/muster-sdk/muster/mustertest"
)

// recorder records the requests for exported kinds, their definitions and namespaces.
type recorder struct {
	mu       sync.Mutex
	requests []string // "VERB group/resource[/subresource]"
}

func (w *recorder) wrap(inner http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if a := mustertest.AttributesOf(r); a.Resource != "" {
			w.mu.Lock()
			w.requests = append(w.requests, a.Verb+" "+a.Group+"/"+a.Resource)
			w.mu.Unlock()
		}
		return inner.RoundTrip(r)
	})
}

// writes returns the requests that wrote something, except for Events.
func (w *recorder) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var writes []string
	for _, request := range w.requests {
		verb, resource, _ := strings.Cut(request, " ")
		if !slices.Contains([]string{"get", "list", "watch"}, verb) && !strings.HasSuffix(resource, "/events") {
			writes = append(writes, request)
		}
	}
	return writes
}

// all returns the distinct requests.
func (w *recorder) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := slices.Clone(w.requests)
	slices.Sort(all)
	return slices.Compact(all)
}

// times returns how often a request was sent.
func (w *recorder) times(request string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, r := range w.requests {
		if r == request {
			n++
		}
	}
	return n
}

func (w *recorder) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.requests)
}

// awaitQuiet waits until requests have stopped for a while, and returns the writes until then.
func (r *running) awaitQuiet(t testing.TB) []string {
	t.Helper()
	mustertest.Quiet(t, 700*time.Millisecond, r.recorder.count)
	return r.recorder.writes()
}
