package apiserver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/mustertest/internal/kinds"
	"github.com/muster-sdk/muster/mustertest/internal/store"
)

// Options configure a Server. The zero value is valid.
type Options struct {
	// Name distinguishes several servers of one process in URLs and certificates. The host name is
	// "<name>.in-memory.muster.test". Default: "kubernetes".
	Name string
	// Clock is the source of the current time and of timers. Default: the real clock, which is the virtual clock inside a
	// testing/synctest bubble.
	Clock clock.Clock
	// Seed and Name determine UIDs and generated names. Two servers with the same Name and Seed that receive the same
	// requests in the same order return the same responses, apart from times and the bytes of keys and certificates.
	Seed uint64
	// Faults, if set, is called before each request and returns the fault of the request.
	Faults Faults
	// Observe, if set, is called for each change of an object, in the order of resourceVersions. The Server is locked
	// during the call, so Observe must return immediately and must not send requests. A Restore does not call Observe.
	Observe func(Change)
	// ManualControllers disables the controllers in the background. They run only in Settle.
	ManualControllers bool
	// History is the minimum number of changes per resource that a watch can read. Older changes are compacted. Default:
	// 20000. A negative number keeps all changes.
	History int
	// BookmarkInterval is the time between two bookmarks of a watch that allows bookmarks. Default: one minute.
	BookmarkInterval time.Duration
	// WatchTimeout is the time after which a watch without timeoutSeconds ends. Default: 30 minutes, and a random
	// additional time of up to 30 minutes that depends on Seed. With a negative duration, such a watch does not end.
	WatchTimeout time.Duration
}

// A Change is one change of one object in a Server, by a request or by a built-in controller. Callers must not modify
// the objects.
type Change struct {
	Type     watch.EventType // Added, Modified or Deleted
	Resource schema.GroupResource
	Object   *unstructured.Unstructured // after the change; for Deleted the last state
	Before   *unstructured.Unstructured // nil for Added
}

var changeTypes = map[store.EventType]watch.EventType{
	store.Added: watch.Added, store.Modified: watch.Modified, store.Deleted: watch.Deleted,
}

func (s *Server) reportChange(event store.Event) {
	change := Change{Type: changeTypes[event.Type], Resource: event.Item.Key.Resource, Object: event.Item.Unstructured()}
	if event.Before != nil {
		change.Before = event.Before.Unstructured()
	}
	s.options.Observe(change)
}

// A Server is an API server in memory. Create it with New. All its methods may be called concurrently.
type Server struct {
	options Options // with defaults
	store   *store.Store

	served    servedKinds
	ids       ids
	tokens    tokens
	authority *authority

	epoch       epoch
	controllers controllers
	listener    listener
	ctx         context.Context
	stop        context.CancelFunc
	background  sync.WaitGroup
}

// New returns a Server with the namespaces, roles and bindings of a new cluster. The caller must Close it. Inside a
// testing/synctest bubble, New must be called and the Server must be used in the same bubble.
func New(options Options) (*Server, error) {
	if options.Name == "" {
		options.Name = "kubernetes"
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	switch {
	case options.History == 0:
		options.History = 20000
	case options.History < 0:
		options.History = 0
	}
	if options.BookmarkInterval <= 0 {
		options.BookmarkInterval = time.Minute
	}
	key := sha256.Sum256(fmt.Appendf(nil, "muster in-memory API server %s %d", options.Name, options.Seed))
	s := &Server{
		options: options, store: store.New(options.History),
		served: servedKinds{byResource: map[schema.GroupVersionResource]*kinds.Kind{}},
		ids:    ids{source: rand.New(rand.NewPCG(options.Seed, binary.BigEndian.Uint64(key[:])))},
		tokens: tokens{static: map[string]user{}, key: key}, epoch: epoch{ended: make(chan struct{})},
	}
	if options.Observe != nil {
		s.store.Observe(s.reportChange)
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	var err error
	if s.authority, err = newAuthority(s.host(), s.options.Clock.Now()); err != nil {
		return nil, fmt.Errorf("make the certificate authority of API server %s: %w", options.Name, err)
	}
	s.served.add(builtinKinds()...)
	s.controllers.init()
	if err := s.bootstrap(); err != nil {
		s.stop()
		return nil, fmt.Errorf("create the initial objects of API server %s: %w", options.Name, err)
	}
	if !options.ManualControllers {
		s.background.Go(s.runControllers)
	}
	return s, nil
}

// builtinKinds returns the built-in kinds. All servers share them, because a Kind is immutable and its field managers
// are expensive.
var builtinKinds = sync.OnceValue(kinds.Builtins)

// Close ends all watches and connections, and waits for the goroutines of the Server.
func (s *Server) Close() {
	s.stop()
	s.epoch.end()
	s.listener.close()
	s.background.Wait()
}

// Compact makes all resourceVersions below the current one unreadable, as a compaction of etcd does. A watch or a
// continued list that starts at one of them fails with 410 Gone. Open watches continue.
func (s *Server) Compact() { s.store.Compact() }

// DropWatches ends all open watches without an error, as a restart of the API server does.
func (s *Server) DropWatches() { s.epoch.end() }

// ResourceVersion returns the resourceVersion of the latest write.
func (s *Server) ResourceVersion() uint64 { return s.store.Revision() }

// A Snapshot is the state of a Server at one time.
type Snapshot struct{ state store.State }

// Save returns the current state of all objects.
func (s *Server) Save() Snapshot { return Snapshot{s.store.Save()} }

// Restore resets the Server to a saved state and ends all watches, as a restore of etcd from a backup does:
// resourceVersions decrease. Keys and certificates remain valid.
func (s *Server) Restore(snapshot Snapshot) {
	s.controllers.mu.Lock()
	defer s.controllers.mu.Unlock()
	s.store.Restore(snapshot.state)
	s.store.Feed()
	s.controllers.init()
	s.rebuild()
	s.epoch.end()
}

func (s *Server) host() string { return s.options.Name + ".in-memory.muster.test" }

func (s *Server) now() string { return s.options.Clock.Now().UTC().Format(time.RFC3339) }
