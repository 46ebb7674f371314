package apiserver

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// watcher is one open watch.
type watcher struct {
	s      *Server
	r      *request
	w      http.ResponseWriter
	chosen selection
	cursor *store.Cursor
	after  uint64 // events up to this revision are not sent
	out    bytes.Buffer
}

// epoch is the period in which watches stay open. Its end closes all of them.
type epoch struct {
	mu    sync.RWMutex
	ended chan struct{} // closed when all watches must end
}

// current returns the channel that is closed when the current watches must end.
func (e *epoch) current() <-chan struct{} {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.ended
}

// end ends all open watches.
func (e *epoch) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.ended)
	e.ended = make(chan struct{})
}

func (s *Server) watch(w http.ResponseWriter, r *request) error {
	options, err := r.listOptions()
	if err != nil {
		return err
	}
	if r.response.accept.media == kinds.YAML {
		return notAcceptable()
	}
	epoch := s.epoch.current()
	wt := &watcher{s: s, r: r, w: w, chosen: r.selection(options)}
	initial, revision, failed, err := wt.begin(options)
	if err != nil {
		return err
	}
	r.header(w)
	media := kinds.JSON
	if r.response.accept.media == kinds.Protobuf {
		media = kinds.Protobuf + ";stream=watch"
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Cache-Control", "no-cache, private")
	w.WriteHeader(http.StatusOK)
	// The response has begun, so the watch ends without an error if the client has disconnected.
	if failed != nil {
		if wt.failure(failed) == nil {
			_ = wt.flush()
		}
		return nil
	}
	if wt.start(options, initial, revision) {
		wt.follow(options, epoch)
	}
	return nil
}

// start sends the initial events. It returns false if the client has disconnected.
func (wt *watcher) start(options *internalversion.ListOptions, initial []*store.Item, revision uint64) bool {
	for _, item := range initial {
		if wt.send(watch.Added, item) != nil {
			return false
		}
	}
	if options.SendInitialEvents != nil && *options.SendInitialEvents && options.AllowWatchBookmarks {
		if wt.bookmark(revision, true) != nil {
			return false
		}
	}
	return wt.flush() == nil
}

// begin returns the initial objects of the watch and the revision of that state. Failed is an error with which the
// watch ends immediately; err is an error response instead of a watch.
func (wt *watcher) begin(options *internalversion.ListOptions) (initial []*store.Item, revision uint64, failed,
	err error) {
	r, s := wt.r, wt.s
	version := uint64(0)
	if options.ResourceVersion != "" {
		if version, err = strconv.ParseUint(options.ResourceVersion, 10, 64); err != nil {
			return nil, 0, nil, badVersion(options.ResourceVersion, err)
		}
	}
	sendInitial := version == 0
	if options.SendInitialEvents != nil {
		sendInitial = *options.SendInitialEvents
		if current := s.store.Revision(); sendInitial && version > current {
			return nil, 0, nil, tooLarge(version, current)
		}
	}
	if sendInitial || version == 0 {
		items, revision, cursor := s.store.Snapshot(r.kind.Storage, wt.chosen.namespace)
		wt.cursor = cursor
		if sendInitial {
			for _, item := range items {
				if wt.chosen.matches(item) {
					initial = append(initial, item)
				}
			}
		}
		return initial, revision, nil, nil
	}
	wt.after = version // a version of the future hides events until it is reached, as the watch cache does
	wt.cursor, err = s.store.From(r.kind.Storage, min(version, s.store.Revision()))
	if errors.Is(err, store.ErrCompacted) {
		return nil, 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", version,
			s.store.Revision())), nil
	}
	return nil, version, nil, err
}

// follow sends events until the watch ends.
func (wt *watcher) follow(options *internalversion.ListOptions, epoch <-chan struct{}) {
	s := wt.s
	timeout := s.watchTimeout(options.TimeoutSeconds)
	if cut := wt.r.response.cut; cut > 0 && (timeout < 0 || cut < timeout) {
		timeout = cut
	}
	var end <-chan time.Time
	if timeout >= 0 {
		timer := s.options.Clock.NewTimer(timeout)
		defer timer.Stop()
		end = timer.C()
	}
	var marks <-chan time.Time
	var marker clock.Timer
	if options.AllowWatchBookmarks {
		marker = s.options.Clock.NewTimer(s.options.BookmarkInterval)
		defer marker.Stop()
		marks = marker.C()
	}
	for {
		events, revision, changed, err := wt.cursor.Next()
		if err != nil {
			if err := wt.failure(apierrors.NewResourceExpired(
				"The resourceVersion for the provided watch is too old.")); err == nil {
				_ = wt.flush() // the watch ends in any case
			}
			return
		}
		for _, event := range events {
			if err := wt.event(event); err != nil {
				return
			}
		}
		if err := wt.flush(); err != nil {
			return
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-changed:
		case <-end:
			return
		case <-marks:
			if err := wt.bookmark(max(revision, wt.after), false); err != nil || wt.flush() != nil {
				return
			}
			marker.Reset(s.options.BookmarkInterval)
		case <-epoch:
			return
		case <-wt.r.ctx.Done():
			return
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Server) watchTimeout(seconds *int64) time.Duration {
	switch {
	case seconds != nil && *seconds > 0:
		return time.Duration(*seconds) * time.Second
	case s.options.WatchTimeout != 0:
		return s.options.WatchTimeout
	}
	const shortest = 30 * time.Minute
	return shortest + time.Duration(s.ids.random()%uint64(shortest))
}

// event sends a change according to the selection: an object that starts to match is Added, and one that no longer
// matches is Deleted.
func (wt *watcher) event(event store.Event) error {
	if event.Item.Revision <= wt.after {
		return nil
	}
	before := event.Before != nil && wt.chosen.matches(event.Before)
	after := event.Type != store.Deleted && wt.chosen.matches(event.Item)
	switch {
	case after && !before:
		return wt.send(watch.Added, event.Item)
	case after:
		return wt.send(watch.Modified, event.Item)
	case before && event.Type == store.Deleted:
		return wt.send(watch.Deleted, event.Item)
	case before: // no longer selected: the last selected state, with the revision of the change
		return wt.send(watch.Deleted, event.Before.At(event.Item.Revision))
	}
	return nil
}

func (wt *watcher) send(kind watch.EventType, item *store.Item) error {
	r := wt.r
	if r.response.accept.media == kinds.Protobuf || r.response.accept.as != "" {
		obj := r.kind.ToServed(item.Object)
		encoded, err := r.encode(r.kind, obj, item.JSON)
		if err != nil {
			return err
		}
		return wt.write(kind, wt.trim(encoded))
	}
	encoded, err := r.itemJSON(item)
	if err != nil {
		return err
	}
	return wt.write(kind, encoded)
}

func (wt *watcher) write(kind watch.EventType, encoded []byte) error {
	if wt.r.response.accept.media == kinds.Protobuf {
		event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: encoded}}
		frame, err := event.Marshal()
		if err != nil {
			return err
		}
		var length [4]byte
		binary.BigEndian.PutUint32(length[:], uint32(len(frame)))
		wt.out.Write(length[:])
		wt.out.Write(frame)
		return nil
	}
	wt.out.WriteString(`{"type":"`)
	wt.out.WriteString(string(kind))
	wt.out.WriteString(`","object":`)
	wt.out.Write(encoded)
	wt.out.WriteString("}\n")
	return nil
}

func (wt *watcher) flush() error {
	if wt.out.Len() > 0 {
		if _, err := wt.w.Write(wt.out.Bytes()); err != nil {
			return err
		}
		wt.out.Reset()
	}
	if flusher, ok := wt.w.(http.Flusher); ok {
		flusher.Flush()
	}
	return nil
}

func (wt *watcher) bookmark(revision uint64, initialEventsEnd bool) error {
	r := wt.r
	metadata := map[string]any{"resourceVersion": strconv.FormatUint(revision, 10)}
	if initialEventsEnd {
		metadata["annotations"] = map[string]any{metav1.InitialEventsAnnotationKey: "true"}
	}
	obj := kinds.Object{
		"kind": r.kind.GVK.Kind, "apiVersion": r.kind.GVK.GroupVersion().String(), "metadata": metadata,
	}
	if r.kind.Builtin() {
		r.kind.Normalize(obj)
	}
	encoded, err := r.encode(r.kind, obj, func() ([]byte, error) { return json.Marshal(obj) })
	if err != nil {
		return err
	}
	return wt.write(watch.Bookmark, wt.trim(encoded))
}

func (wt *watcher) failure(reason error) error {
	status := asStatus(reason)
	if wt.r.response.accept.media == kinds.Protobuf {
		encoded, err := kinds.EncodeProtobuf(status)
		if err != nil {
			return err
		}
		return wt.write(watch.Error, encoded)
	}
	encoded, err := json.Marshal(status)
	if err != nil {
		return err
	}
	return wt.write(watch.Error, encoded)
}

// trim removes the line feed at the end of a JSON document.
func (wt *watcher) trim(encoded []byte) []byte {
	if wt.r.response.accept.media == kinds.Protobuf {
		return encoded
	}
	return bytes.TrimRight(encoded, "\n")
}
