package fleet

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/registration/kubeconfig"
)

// hostile returns a config, like that of runners, for a member whose API server is a handler.
func hostile(t *testing.T, o Options, handler http.HandlerFunc) (*rest.Config, *way) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	o, err := o.withDefaults()
	require.NoError(t, err)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	access, err := kubeconfig.Parse(map[string][]byte{
		kubeconfig.ServerKey: []byte(server.URL), kubeconfig.CAKey: ca, kubeconfig.TokenKey: []byte("t"),
	}, "", kubeconfig.Options{})
	require.NoError(t, err)
	w, err := newWay(access, &o)
	require.NoError(t, err)
	t.Cleanup(w.end)
	w.known.Store(true)
	config, takeBack, err := w.lend()
	require.NoError(t, err)
	t.Cleanup(takeBack)
	return config, w
}

// endless writes a list of Secrets of this size, one item at a time.
func endless(out io.Writer, size int) {
	item := fmt.Sprintf(`{"metadata":{"name":"a"},"data":{"a":"%s"}},`, strings.Repeat("QUFB", 16<<10))
	_, err := io.WriteString(out, `{"apiVersion":"v1","kind":"SecretList","items":[`)
	for written := 0; err == nil && written < size; written += len(item) {
		_, err = io.WriteString(out, item)
	}
	_, _ = io.WriteString(out, `{}]}`)
}

// TestLimits_HostileMember lists 300 MiB from a member eight times concurrently, and checks that the hub reads no more
// than the limit.
func TestLimits_HostileMember(t *testing.T) {
	const limit = 16 << 20
	// The peak of the heap contains garbage, whose amount depends on GOGC.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	for name, write := range map[string]func(http.ResponseWriter){
		"plain": func(w http.ResponseWriter) { endless(w, 300<<20) },
		"compressed": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			compressor := gzip.NewWriter(w)
			endless(compressor, 300<<20)
			_ = compressor.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			config, w := hostile(t, Options{MaxResponseBytes: limit}, func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", "application/json")
				write(out)
			})
			config.QPS = -1
			c, err := kubernetes.NewForConfig(config)
			require.NoError(t, err)
			stop := make(chan struct{})
			peak := peakHeap(stop)
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					_, err := c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
					if _, is := errors.AsType[*ResponseTooLargeError](err); !is {
						t.Errorf("list Secrets: %v, want ResponseTooLargeError", err)
					}
				})
			}
			group.Wait()
			close(stop)
			used := <-peak
			t.Logf("the heap grew by at most %d MiB", used>>20)
			require.Less(t, used, uint64(8*limit))
			require.Zero(t, w.limits.reading.Load(), "the budget is returned")
		})
	}
}

// peakHeap returns the maximum growth of the heap until stop is closed.
func peakHeap(stop <-chan struct{}) <-chan uint64 {
	out := make(chan uint64, 1)
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	before, peak := stats.HeapAlloc, uint64(0)
	ticker := time.NewTicker(5 * time.Millisecond)
	go func() {
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				out <- peak
				return
			case <-ticker.C:
				runtime.ReadMemStats(&stats)
				if stats.HeapAlloc > before {
					peak = max(peak, stats.HeapAlloc-before)
				}
			}
		}
	}()
	return out
}

// TestLimits_Timeout checks that a body that never ends has a timeout, and that a watch has none.
func TestLimits_Timeout(t *testing.T) {
	config, w := hostile(t, Options{ResponseTimeout: 300 * time.Millisecond}, func(out http.ResponseWriter,
		r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") != "" {
			_, _ = io.WriteString(out,
				`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"}}}`+"\n")
		}
		out.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	watch, err := c.CoreV1().Secrets("").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watch.Stop()
	event := <-watch.ResultChan()
	require.EqualValues(t, "ADDED", event.Type)

	_, err = c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "not complete within 300ms")
	select {
	case event, open := <-watch.ResultChan():
		t.Fatalf("the watch has the event %v, open: %t", event, open)
	default:
	}
	require.Zero(t, w.limits.reading.Load())
}

// TestLimits_Small checks that a response within the limits is returned, also if it has a Content-Length.
func TestLimits_Small(t *testing.T) {
	var body bytes.Buffer
	endless(&body, 1<<20)
	handler := func(out http.ResponseWriter, _ *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		out.Header().Set("Content-Length", fmt.Sprint(body.Len()))
		_, _ = out.Write(body.Bytes())
	}
	config, _ := hostile(t, Options{MaxResponseBytes: int64(body.Len())}, handler)
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	list, err := c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, list.Items)

	config, _ = hostile(t, Options{MaxResponseBytes: int64(body.Len()) - 1}, handler)
	c, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = c.CoreV1().Secrets("").List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	require.ErrorContains(t, err, "exceeds the limit of")
}
