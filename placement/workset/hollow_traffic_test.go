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
	done    map[string]int // what was carried out, as in "PATCH works"
	refused map[string]int // what was not, with its code
	each    map[string]int // what was carried out, with its path
	reads   map[string]int
	order   []string // what was carried out, in the order of the answers
	paced   int      // the writes of a WorkSet's status that repeat its gist
	gists   map[string]v1alpha1.WorkSetStatus
}

func (w *traffic) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done, w.refused, w.each, w.reads, w.order = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{},
		nil
	w.paced = 0 // The gists stay: the next status is compared with the last one.
}

func (w *traffic) over(next http.RoundTripper) http.RoundTripper {
	return mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodGet {
			r = r.WithContext(context.WithoutCancel(r.Context())) // what is sent arrives, also if the sender dies
		}
		response, err := next.RoundTrip(r)
		resource := mustertest.AttributesOf(r).Resource
		what := r.Method + " " + resource
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/"+resource):
			w.reads["one of "+resource]++
		case r.Method == http.MethodGet:
			w.reads[resource]++
		case resource == "events": // what is told to people is no part of what a controller has to write
		case err != nil:
			w.refused[what+": "+err.Error()]++
		case response.StatusCode == http.StatusTooManyRequests:
			// The API server is overloaded. The client sends the request again, which is counted then.
		case response.StatusCode >= http.StatusBadRequest:
			w.refused[what+": "+response.Status]++
		default:
			w.done[what]++
			w.order = append(w.order, what)
			w.each[r.Method+" "+r.URL.Path]++
			if what == "PATCH worksets/status" {
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
	now := *workset.Gist(&set.Status)
	if last, known := w.gists[path]; known && equality.Semantic.DeepEqual(last, now) {
		w.paced++
	}
	if w.gists == nil {
		w.gists = map[string]v1alpha1.WorkSetStatus{}
	}
	w.gists[path] = now
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
	often := maps.Clone(w.each)
	maps.DeleteFunc(often, func(what string, n int) bool { return n < 2 || !strings.Contains(what, "/works/") })
	return often
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
func (w *traffic) read(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads[what]
}

// control runs a manager with the controllers of Placements and of WorkSets, until the test ends or stop is called.
// between wraps their transport to the API server, and may be nil.
func (f *hollows) control(t testing.TB, namespace string, w *traffic, between transport.WrapperFunc,
	also ...func(manager.Manager) error) (stop func()) {
	t.Helper()
	config := rest.CopyConfig(f.config)
	config.Wrap(w.over)
	if between != nil {
		config.Wrap(between)
	}
	options := manager.Options{
		Scheme: scheme, GracefulShutdownTimeout: new(time.Minute),
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	}
	ready := workset.NewReadiness()
	return mustertest.StartManager(t, config, options, append([]func(manager.Manager) error{
		func(mgr manager.Manager) error {
			return placement.SetupWithManager(mgr, placement.Options{Ready: ready})
		},
		func(mgr manager.Manager) error {
			return workset.SetupWithManager(mgr, workset.Options{Readiness: ready})
		},
	}, also...)...)
}
