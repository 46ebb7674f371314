// Package storeversion detects that the store of an API server was restored to an earlier state while a process runs.
//
// Caches and watches assume that resourceVersions only increase. After etcd was restored from a backup, the API server
// accepts a watch from a resourceVersion that does not exist yet, and sends no event until the new resourceVersions
// exceed it. A process that does not detect this continues with objects that no longer exist. The remedy is to list
// everything again, as a restarted process does.
package storeversion

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Detector records the highest resourceVersion that an API server returned. The zero value is ready for use. It must
// not be used concurrently.
type Detector struct{ highest uint64 }

// Observe records the resourceVersion of a response that was not read from a cache, such as the response to a write, or
// to a list without a resourceVersion. Responses must be observed in the order of their requests. Observe returns true
// if the store is older than before; the detector then continues from this resourceVersion. Observe ignores
// resourceVersions that are not numbers, which Kubernetes excludes since version 1.35.
func (d *Detector) Observe(resourceVersion string) bool {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return false
	}
	rewound := version < d.highest
	d.highest = version
	return rewound
}

// RewoundError is the error for a store that was restored to an earlier state.
type RewoundError struct{ Server string }

func (e *RewoundError) Error() string {
	return fmt.Sprintf(
		"the store of %s was restored to an earlier state: restart the process, so that its caches are rebuilt", e.Server)
}

// DefaultInterval is the time between two requests of a Monitor.
const DefaultInterval = 10 * time.Second

// Monitor is a Runnable for a manager. Start returns a *[RewoundError], which ends the manager, when the store of the
// API server was restored to an earlier state. A Monitor costs one list of at most one object in each interval.
//
// A watch also detects a restore that the lists between two intervals miss: of a backup that is a few seconds old. A
// second list of the watched kind confirms it, because the API server can have several stores.
type Monitor struct {
	// Reader reads from the API server, not from a cache. Required.
	Reader client.Reader
	// List is a kind that the reader may list. Required.
	List client.ObjectList
	// Options are the options of the list, such as a namespace.
	Options []client.ListOption
	// Watched is a kind that the reader may list, whose resourceVersions the caller passes to Note. Optional.
	Watched client.ObjectList
	// Server is the name of the API server in the error.
	Server string
	// Interval is the time between two requests. Default: [DefaultInterval].
	Interval time.Duration
	// Clock provides the time. Default: the system's clock.
	Clock clock.Clock

	noted atomic.Uint64 // the highest resourceVersion that was passed to Note

	mu      sync.Mutex
	rewound chan struct{} // closed by Report; nil: not created yet
}

// Note records the resourceVersion of an object of the kind Watched that a watch has delivered. It may be called
// concurrently.
func (m *Monitor) Note(resourceVersion string) {
	version, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return
	}
	for known := m.noted.Load(); version > known && !m.noted.CompareAndSwap(known, version); {
		known = m.noted.Load()
	}
}

// Compare compares an object from a cache with the version that the API server returned afterwards. A live version that
// is older than the cached one exists only after a restore, and ends Start. This detects a restore that later writes
// hide from the comparison of lists. Compare may be called concurrently.
func (m *Monitor) Compare(cached, live client.Object) {
	order, err := resourceversion.CompareResourceVersion(live.GetResourceVersion(), cached.GetResourceVersion())
	if err != nil || order >= 0 || live.GetUID() != cached.GetUID() {
		return
	}
	m.Report()
}

// Report ends Start, because the caller has detected that caches do not follow the API server. It may be called
// concurrently and repeatedly.
func (m *Monitor) Report() {
	found := m.found()
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-found:
	default:
		close(found)
	}
}

func (m *Monitor) found() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rewound == nil {
		m.rewound = make(chan struct{})
	}
	return m.rewound
}

// NeedLeaderElection returns false, because every replica has caches.
func (m *Monitor) NeedLeaderElection() bool { return false }

// Start observes the store until the context ends. It ignores errors of single requests, because they contain no
// information about the store. A failed list is repeated after the interval.
func (m *Monitor) Start(ctx context.Context) error {
	interval, c := m.Interval, m.Clock
	if interval <= 0 {
		interval = DefaultInterval
	}
	if c == nil {
		c = clock.RealClock{}
	}
	var detector Detector
	options := append([]client.ListOption{client.Limit(1)}, m.Options...)
	for {
		noted := m.noted.Load() // read before the request
		version, err := m.list(ctx, m.List, interval, options)
		if err == nil && (detector.Observe(version) || m.behind(ctx, version, noted, interval)) {
			return &RewoundError{Server: m.Server}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-m.found():
			return &RewoundError{Server: m.Server}
		case <-c.After(interval):
		}
	}
}

// list returns the resourceVersion of a list of at most one object.
func (m *Monitor) list(ctx context.Context, kind client.ObjectList, timeout time.Duration,
	options []client.ListOption) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	list := kind.DeepCopyObject().(client.ObjectList)
	err := m.Reader.List(ctx, list, options...)
	return list.GetResourceVersion(), err
}

// behind reports whether the store of the kind Watched is older than the resourceVersions from its watch. It makes no
// request if a list of the other kind is not older.
func (m *Monitor) behind(ctx context.Context, version string, noted uint64, timeout time.Duration) bool {
	older := func(version string) bool {
		is, err := strconv.ParseUint(version, 10, 64)
		return err == nil && is < noted
	}
	if m.Watched == nil || !older(version) {
		return false
	}
	version, err := m.list(ctx, m.Watched, timeout, []client.ListOption{client.Limit(1)})
	return err == nil && older(version)
}
