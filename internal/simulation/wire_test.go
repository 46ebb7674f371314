package simulation

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/mustertest"
)

// errLost is the error of a request that a fault loses.
var errLost = errors.New("simulation: connection lost")

// network decides on faults of requests. Each decision depends on the seed and on the number of earlier requests of the
// same kind, so that the order of concurrent requests does not change decisions about other kinds.
type network struct {
	seed uint64
	h    *history

	chaotic     atomic.Bool // single requests are lost or slow, and watches are cut
	mu          sync.Mutex
	partitioned map[string]bool // links, as "agent m0 > hub"
	forbidden   map[string]bool // links on which lists are forbidden
	counts      map[string]uint64
	credentials map[string]string // the last credential of each agent that the hub accepted in the member's namespace
}

func newNetwork(seed uint64, h *history) *network {
	return &network{
		seed: seed, h: h, partitioned: map[string]bool{}, forbidden: map[string]bool{}, counts: map[string]uint64{},
		credentials: map[string]string{},
	}
}

func (n *network) set(links map[string]bool, link string, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	links[link] = on
}

// random returns the source of decisions about the next request of its kind.
func (n *network) random(kind string) *rand.Rand {
	n.mu.Lock()
	n.counts[kind]++
	count := n.counts[kind]
	n.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write(binary.BigEndian.AppendUint64(nil, n.seed)) // has no error
	_, _ = io.WriteString(h, kind)                             // has no error
	return rand.New(rand.NewPCG(h.Sum64(), count))
}

// A wire connects one run of a process with one server.
type wire struct {
	n       *network
	process string
	server  string
	run     *process
	mutant  func(http.RoundTripper) http.RoundTripper
	allowed func(mustertest.Attributes, string) bool // reports whether a refusal by RBAC is expected
}

func (w *wire) link() string { return w.process + " > " + w.server }

func (w *wire) wrap(next http.RoundTripper) http.RoundTripper {
	roundTrip := mustertest.RoundTripper(func(r *http.Request) (*http.Response, error) { return w.roundTrip(r, next) })
	if w.mutant != nil {
		return w.mutant(roundTrip)
	}
	return roundTrip
}

// latency is longer than zero and differs between requests, so that few requests arrive at the same instant.
func latency(random *rand.Rand) time.Duration {
	return time.Millisecond + time.Duration(random.Int64N(int64(time.Millisecond)))
}

func (w *wire) roundTrip(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	a := mustertest.AttributesOf(r)
	request := a.Verb + " " + a.Resource + " " + a.Namespace + "/" + a.Name
	if a.Resource == "" || holdsMutex() {
		if err := w.broken(); err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			w.record(r, a, request, response)
		}
		return response, err
	}
	random := w.n.random(w.link() + " " + request)
	pause := latency(random)
	chaos := w.n.chaotic.Load()
	fault := random.IntN(100)
	if chaos && fault < 4 {
		pause += time.Duration(random.Int64N(int64(15 * time.Second)))
	}
	if err := sleep(r.Context(), pause); err != nil {
		return nil, err
	}
	if w.run.await() { // The request was in transit during the pause, and arrives although its sender may have timed out.
		r = r.Clone(context.WithoutCancel(r.Context()))
	}
	if err := w.broken(); err != nil {
		return nil, err
	}
	if a.Verb == "list" && w.on(w.n.forbidden) {
		return respond(r, apierrors.NewForbidden(resourceOf(a), "", errors.New("simulation: list forbidden")).ErrStatus)
	}
	if a.Verb == "watch" {
		return w.watch(r, next, random, chaos)
	}
	if chaos && fault >= 4 && fault < 7 {
		w.n.h.note("%s: %s is lost before its effect", w.link(), request)
		return nil, errLost
	}
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.record(r, a, request, response)
	if e := w.broken(); e != nil || chaos && fault >= 7 && fault < 10 {
		_ = response.Body.Close() // The client does not receive the response.
		w.n.h.note("%s: the response of %s is lost", w.link(), request)
		return nil, errors.Join(errLost, e)
	}
	return response, nil
}

// lockers are the functions that hold a mutex during requests. A goroutine that waits for a mutex is not durably
// blocked, so virtual time would stop if such a request had a latency. Their requests, and discovery, have no latency.
var lockers = []string{
	"membership/hub.(*joinRequestController)",
	"membership/hub.(*hubIdentity)",
	"membership/hub.(*consistency)",
	"membership/agent.(*pruneGuard)",
	"work/agent.(*markedObjects)",
	"client-go/tools/events.(*eventBroadcasterImpl)",
}

func holdsMutex() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		for _, locker := range lockers {
			if strings.Contains(frame.Function, locker) {
				return true
			}
		}
		if !more {
			return false
		}
	}
}

func (w *wire) on(links map[string]bool) bool {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	return links[w.link()]
}

func (w *wire) broken() error {
	if w.run.dead.Load() || w.on(w.n.partitioned) {
		return errLost
	}
	return nil
}

// record records writes and credentials, and reports a violation if the API server unexpectedly refuses a request.
func (w *wire) record(r *http.Request, a mustertest.Attributes, request string, response *http.Response) {
	asMember := strings.HasPrefix(w.process, "agent-") && strings.HasPrefix(a.Namespace, "member-")
	if w.server == "hub" && asMember && response.StatusCode < 300 {
		w.n.mu.Lock()
		w.n.credentials[w.process] = r.Header.Get("Authorization")
		w.n.mu.Unlock()
	}
	if response.StatusCode == http.StatusForbidden {
		body, _ := io.ReadAll(response.Body) // in memory
		_ = response.Body.Close()            // in memory
		response.Body = io.NopCloser(bytes.NewReader(body))
		var status metav1.Status
		_ = json.Unmarshal(body, &status) // without a status there is no message
		if strings.Contains(status.Message, " is forbidden: User ") && (w.allowed == nil || !w.allowed(a, status.Message)) {
			w.n.h.violated("%s: the shipped roles do not allow %s: %s", w.link(), request, status.Message)
		}
	}
	if r.Method == http.MethodGet || a.Resource == "" || strings.HasSuffix(a.Resource, "reviews") {
		return
	}
	if a.Resource == "events" {
		return
	}
	if response.StatusCode < 300 {
		w.n.h.countWrite(w.process, request)
	}
	if a.Resource != "leases" {
		w.n.h.note("%s: %s: %d", w.link(), request, response.StatusCode)
	}
}

// watch ends watches early, and responds to some of them with 410.
func (w *wire) watch(r *http.Request, next http.RoundTripper, random *rand.Rand, chaos bool) (*http.Response, error) {
	if chaos && random.IntN(10) == 0 {
		return respond(r, apierrors.NewResourceExpired("simulation: too old resource version").ErrStatus)
	}
	ctx, cancel := context.WithCancel(r.Context())
	response, err := next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	end := 24 * time.Hour
	if chaos {
		end = time.Duration(random.Int64N(int64(2 * time.Minute)))
	}
	// controller-runtime forwards events of metadata in a goroutine, which does not end if the watch ends during an event.
	// In a bubble, that is a deadlock.
	metadata := strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata")
	if chaos && !metadata && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		response.Body = newEvents(response.Body, random)
	}
	body := &cutBody{ReadCloser: response.Body, cancel: cancel, timer: time.NewTimer(end), done: make(chan struct{})}
	response.Body = body
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-body.done:
				body.timer.Stop()
				return
			case <-body.timer.C:
				cancel()
				return
			case <-tick.C: // a partition or the end of the process
				if w.broken() != nil {
					cancel()
					return
				}
			}
		}
	}()
	return response, nil
}

// events is the body of a watch. Some of its events arrive late or twice.
type events struct {
	io.Closer
	decoder *json.Decoder
	random  *rand.Rand
	rest    []byte
	closed  chan struct{}
	once    sync.Once
}

func newEvents(body io.ReadCloser, random *rand.Rand) *events {
	return &events{Closer: body, decoder: json.NewDecoder(body), random: random, closed: make(chan struct{})}
}

func (e *events) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		var event json.RawMessage
		if err := e.decoder.Decode(&event); err != nil {
			return 0, err
		}
		e.rest = append(event, '\n')
		switch e.random.IntN(20) {
		case 0:
			e.rest = append(e.rest, e.rest...)
		case 1, 2: // the cache is stale meanwhile
			timer := time.NewTimer(time.Duration(e.random.Int64N(int64(40 * time.Second))))
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-e.closed:
				return 0, io.ErrUnexpectedEOF
			}
		}
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func (e *events) Close() error {
	e.once.Do(func() { close(e.closed) })
	return e.Closer.Close()
}

type cutBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	timer  *time.Timer
	once   sync.Once
	done   chan struct{}
}

func (b *cutBody) Close() error {
	b.once.Do(func() { close(b.done) })
	b.cancel()
	return b.ReadCloser.Close()
}

func respond(r *http.Request, status metav1.Status) (*http.Response, error) {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: int(status.Code), Status: http.StatusText(int(status.Code)), Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1,
		Header:     http.Header{"Content-Type": {"application/json"}}, Request: r, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
