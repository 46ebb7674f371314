package heartbeat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/membership"
)

// Leases is the part of a client that a [Beater] uses, for the member's namespace. The client of client-go causes the
// lowest cost on the hub, because it uses protobuf:
//
//	client, err := coordinationv1.NewForConfig(config)
//	beater := heartbeat.NewBeater(client.Leases("member-east"), heartbeat.BeaterOptions{})
//
// Use a separate client, so that other requests do not use up its rate limit.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// BeaterOptions are the options of a [Beater]. The zero value of each field is its documented default.
type BeaterOptions struct {
	// Period is the maximum time between two heartbeats while no attempt fails. Zero means [DefaultPeriod]; other values
	// are limited to [MinPeriod] to [MaxPeriod].
	Period time.Duration
	// Identity is the holder identity of the Lease. It must be unique to this process, because [Watcher.Holders] uses it
	// to distinguish agents with the same credential. An agent with another identity acquires the Lease and increments
	// its leaseTransitions. Empty means [NewIdentity].
	Identity string
	// Clock is the clock for the heartbeats. Nil means the system clock.
	Clock clock.Clock
	// Random returns numbers in [0, 1). One goroutine calls it at a time. Nil means math/rand/v2.
	Random func() float64
}

// Status is the status of a [Beater].
type Status struct {
	// LastSuccess is the time at which the Lease was last renewed; zero: never.
	LastSuccess time.Time
	// LastError is the error of the last attempt; nil if the attempt succeeded or none was made. It wraps the API server's
	// error, so that the functions of apierrors apply:
	//
	//   - IsUnauthorized: the credential is not accepted.
	//   - IsForbidden: the credential has no permissions any more, or the namespace is being deleted if the error also
	//     HasStatusCause(err, corev1.NamespaceTerminatingCause).
	//   - IsNotFound: the namespace does not exist, or the Lease is missing and only the hub may create it.
	LastError error
	// Failures is the number of failed attempts since the last success.
	Failures int
	// Rewound is true after the response to a heartbeat showed that the store of the hub was restored to an earlier
	// state, and stays true. All state that was read from the hub before must be read again. Create a new Beater then.
	Rewound bool
}

// Beater renews the Lease of one member. Its methods may be called concurrently.
type Beater struct {
	leases   Leases
	identity string
	clock    clock.Clock
	random   func() float64

	outcomes chan Status
	nudge    chan struct{} // the period has changed

	running sync.Mutex
	own     ownLease // used while running is locked

	mu     sync.Mutex
	period time.Duration
	status Status
}

// ownLease is the observed state of a Beater's Lease.
type ownLease struct {
	current  *coordinationv1.Lease // as last observed; nil: unknown
	written  *coordinationv1.Lease // as last written; nil: never
	reverted bool                  // the hub had an earlier version than written
	store    storeversion.Detector // of the versions that were written
}

// NewIdentity returns the host name, which in a cluster is the name of the pod, with a random suffix.
func NewIdentity() string {
	host, _ := os.Hostname()
	return cmp.Or(host, membership.AgentName) + "_" + rand.Text()[:8]
}

// NewBeater returns a Beater. It does not start it.
func NewBeater(leases Leases, opts BeaterOptions) *Beater {
	if opts.Identity == "" {
		opts.Identity = NewIdentity()
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Random == nil {
		opts.Random = mathrand.Float64
	}
	return &Beater{
		leases: leases, identity: opts.Identity, clock: opts.Clock, random: opts.Random, period: bounded(opts.Period),
		outcomes: make(chan Status, 1), nudge: make(chan struct{}, 1),
	}
}

// Run sends heartbeats until the context ends, and then returns nil. It sends the first heartbeat immediately. It may
// be called again afterwards, for example after a pause. While it runs, a second call returns an error.
func (b *Beater) Run(ctx context.Context) error {
	if !b.running.TryLock() {
		return errors.New("heartbeat: the Beater is running already")
	}
	defer b.running.Unlock()

	s := schedule{period: b.currentPeriod(), random: b.random}
	next := b.clock.Now()
	for {
		switch b.sleep(ctx, next.Sub(b.clock.Now())) {
		case stopped:
			return nil
		case nudged:
			// The signal may be older than this run, which already uses that period. It must not delay a retry.
			if period := b.currentPeriod(); period != s.period {
				next = s.change(period, b.clock.Now())
			}
		case due:
			err := b.renew(ctx, s.period)
			if ctx.Err() != nil {
				return nil
			}
			now := b.clock.Now()
			b.report(now, err)
			if err != nil {
				next = s.failed(now)
			} else {
				next = s.succeeded(now)
			}
		}
	}
}

// wake is the reason why a sleep ended.
type wake int

const (
	due wake = iota
	nudged
	stopped
)

func (b *Beater) sleep(ctx context.Context, d time.Duration) wake {
	if d <= 0 {
		return due
	}
	timer := b.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return stopped
	case <-b.nudge:
		return nudged
	case <-timer.C():
		return due
	}
}

// SetPeriod changes the period, with the limits of BeaterOptions. The change has an immediate effect: the next
// heartbeat is sent within the new period, at a random time, because a change reaches all agents at the same time.
func (b *Beater) SetPeriod(period time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if period = bounded(period); period == b.period {
		return
	}
	b.period = period
	select {
	case b.nudge <- struct{}{}:
	default: // a signal is pending, and its receiver will read this period
	}
}

// Status returns the status after the last attempt.
func (b *Beater) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// Outcomes returns a channel that receives the status after each attempt. Its capacity is one, and a new status
// replaces one that was not received, so that the heartbeat never blocks. All calls return the same channel, which
// must have one receiver and is never closed.
func (b *Beater) Outcomes() <-chan Status { return b.outcomes }

func (b *Beater) currentPeriod() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.period
}

func (b *Beater) report(now time.Time, err error) {
	rewound := err == nil && b.own.store.Observe(b.own.current.ResourceVersion) || b.own.reverted
	b.mu.Lock()
	b.status.LastError = err
	b.status.Rewound = b.status.Rewound || rewound
	if err != nil {
		b.status.Failures++
	} else {
		b.status.LastSuccess, b.status.Failures = now, 0
	}
	status := b.status
	b.mu.Unlock()

	select {
	case <-b.outcomes:
	default:
	}
	b.outcomes <- status // never blocks: there is no other sender
}
