package workset_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/placement"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/placement/workset"
)

// traffic records the writes of controllers, over all controllers that run one after the other.
type traffic struct {
	mu      sync.Mutex
	done    map[string]int // the successful writes, as in "PATCH works"
	refused map[string]int // the failed writes, with the code
	byPath  map[string]int // the successful writes, with their paths
	reads   map[string]int
	order   []string // the successful writes, in the order of the responses
	paced   int      // the writes of the status of a WorkSet without a change of its urgent parts
	urgent  map[string]v1alpha1.WorkSetStatus
}

func (w *traffic) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.refused, w.byPath, w.reads, w.order = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{},
		nil
	w.paced = 0 // The urgent parts stay: the next status is compared with the last one.
}

func (w *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			r = r.WithContext(context.WithoutCancel(r.Context())) // a request that was sent arrives, also if the sender stops
		}
		response, err := next.RoundTrip(r)
		resource := mustertest.AttributesOf(r).Resource
		request := r.Method + " " + resource
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/"+resource):
			w.reads["one of "+resource]++
		case r.Method == http.MethodGet:
			w.reads[resource]++
		case resource == "events": // Events are not counted
		case err != nil:
			w.refused[request+": "+err.Error()]++
		case response.StatusCode == http.StatusTooManyRequests:
			// The API server is overloaded. The client sends the request again, which is counted then.
		case response.StatusCode >= http.StatusBadRequest:
			w.refused[request+": "+response.Status]++
		default:
			w.done[request]++
			w.order = append(w.order, request)
			w.byPath[r.Method+" "+r.URL.Path]++
			if request == "PATCH worksets/status" {
				err = w.status(r.URL.Path, response)
			}
		}
		return response, err
	})
}

// status compares the stored status of a WorkSet with the last one.
func (w *traffic) status(path string, response *http.Response) error {
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(text))
	var set v1alpha1.WorkSet
	if _, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode(text, nil, &set); err != nil {
		return err
	}
	now := *workset.UrgentParts(&set.Status)
	if last, known := w.urgent[path]; known && equality.Semantic.DeepEqual(last, now) {
		w.paced++
	}
	if w.urgent == nil {
		w.urgent = map[string]v1alpha1.WorkSetStatus{}
	}
	w.urgent[path] = now
	return nil
}

// pacedWrites returns the number of status writes of WorkSets that changed only the progress.
func (w *traffic) pacedWrites() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.paced
}

// counts returns the numbers of successful writes.
func (w *traffic) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.done)
}

// twice returns the Works that were written more than once, and how often.
func (w *traffic) twice() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := maps.Clone(w.byPath)
	maps.DeleteFunc(counts, func(request string, n int) bool {
		return n < 2 || !strings.Contains(request, "/works/")
	})
	return counts
}

// last returns the last successful write.
func (w *traffic) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.order[len(w.order)-1]
}

func (w *traffic) failures() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.refused)
}

// read returns how often a resource, or one object of a resource, was read.
func (w *traffic) read(resource string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads[resource]
}

// control runs a manager with the controllers of Placements and of WorkSets, until the test ends or stop is called.
// wrap wraps their transport to the API server, and may be nil.
func (f *hollows) control(t testing.TB, namespace string, w *traffic, wrap transport.WrapperFunc,
	also ...func(manager.Manager) error) (stop func()) {
	t.Helper()
	config := rest.CopyConfig(f.Config)
	config.Wrap(w.wrap)
	if wrap != nil {
		config.Wrap(wrap)
	}
	options := manager.Options{
		Scheme: scheme, GracefulShutdownTimeout: new(time.Minute),
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	ready := workset.NewReadiness()
	stopManager := mustertest.StartManager(t, config, options, append([]func(manager.Manager) error{
		func(mgr manager.Manager) error {
			return placement.SetupWithManager(mgr, placement.Options{Ready: ready})
		},
		func(mgr manager.Manager) error {
			return workset.SetupWithManager(mgr, workset.Options{Readiness: ready})
		},
	}, also...)...)
	if f.memory == nil {
		return stopManager
	}
	// An informer of some namespaces keeps a goroutine if it stops before its handlers have all objects.
	t.Cleanup(synctest.Wait)
	return func() {
		synctest.Wait()
		stopManager()
	}
}
