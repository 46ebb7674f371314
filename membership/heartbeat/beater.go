package heartbeat

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/internal/storeversion"
	"github.com/muster-sdk/muster/membership"
)

// Leases is the part of a client that a [Beater] uses, bound to the member's namespace. That of client-go
// costs the hub the least, since it speaks protobuf:
//
//	client, err := coordinationv1.NewForConfig(config)
//	beater := heartbeat.NewBeater(client.Leases("member-east"), heartbeat.BeaterOptions{})
//
// Make it a client of its own, so that no one else's requests use up its rate limit.
type Leases interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (*coordinationv1.Lease, error)
	Create(ctx context.Context, lease *coordinationv1.Lease, opts metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, lease *coordinationv1.Lease, opts metav1.UpdateOptions) (*coordinationv1.Lease, error)
}

// BeaterOptions are the options of a [Beater]. The zero value of each is its documented default.
type BeaterOptions struct {
	// Period is the longest time between two heartbeats while all is well. Zero means [DefaultPeriod];
	// others are moved into [MinPeriod] to [MaxPeriod].
	Period time.Duration
	// Identity is who holds the Lease, for people to read. Empty means the host's name, which is the
	// pod's in a cluster. A new one takes the Lease over and counts one more in its leaseTransitions; two
	// agents of one member show as many.
	Identity string
	// Clock is what the heartbeats are timed by. Nil means the real one.
	Clock clock.Clock
	// Random returns numbers in [0, 1), from one goroutine at a time. Nil means math/rand/v2.
	Random func() float64
}

// Status is how a [Beater] fares.
type Status struct {
	// LastSuccess is when the Lease was last renewed, zero if never.
	LastSuccess time.Time
	// LastError is why the last attempt failed; nil if it succeeded or none was made. It wraps the
	// API server's answer, so that apierrors tells what the matter is:
	//
	//   - IsUnauthorized: the credential is not accepted.
	//   - IsForbidden: its permissions are gone, or the namespace is being deleted if it also
	//     HasStatusCause(err, corev1.NamespaceTerminatingCause).
	//   - IsNotFound: the namespace is gone. A missing Lease is made anew, and is no error.
	LastError error
	// Failures is how many attempts have failed since the last success.
	Failures int
	// Rewound is true from the heartbeat on whose answer showed that the store of the hub was restored to an earlier
	// state. Whatever was read from that hub before must be read again; make a new Beater then.
	Rewound bool
}

// Beater renews the Lease of one member. All its methods may be called concurrently.
type Beater struct {
	leases   Leases
	identity string
	clock    clock.Clock
	random   func() float64

	outcomes chan Status
	nudge    chan struct{} // the period has changed

	running sync.Mutex
	lease   *coordinationv1.Lease // as last seen; belongs to whoever holds running
	store   storeversion.Detector // of the Leases that were written; used while running is locked

	mu     sync.Mutex
	period time.Duration
	status Status
}

// NewBeater returns a Beater that is not running yet.
func NewBeater(leases Leases, opts BeaterOptions) *Beater {
	if opts.Identity == "" {
		opts.Identity, _ = os.Hostname()
		opts.Identity = cmp.Or(opts.Identity, membership.AgentName)
	}
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	return &Beater{
		leases: leases, identity: opts.Identity, clock: opts.Clock, random: opts.Random, period: bounded(opts.Period),
		outcomes: make(chan Status, 1), nudge: make(chan struct{}, 1),
	}
}

// Run sends heartbeats until the context ends, and then returns nil. It sends the first at once, and may be
// called again afterwards, which is how to pause; while it runs a second call returns an error.
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
			// A nudge may be older than this run, which began with that period already: it must not put off a retry.
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

// wake is why a sleep ended.
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

// SetPeriod changes the period, bounded as in BeaterOptions, and takes effect at once: the next heartbeat
// comes within the new period. When it comes in it is random, since a change reaches all agents together.
func (b *Beater) SetPeriod(period time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if period = bounded(period); period == b.period {
		return
	}
	b.period = period
	select {
	case b.nudge <- struct{}{}:
	default: // one is on its way, and will find this period
	}
}

// Status returns how the Beater fares.
func (b *Beater) Status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}

// Outcomes returns a channel on which the status is sent after each attempt. It has room for one; a
// status that nobody has received is replaced by the next, so the heartbeat never waits. It is one channel,
// for one receiver, and is not closed.
func (b *Beater) Outcomes() <-chan Status { return b.outcomes }

func (b *Beater) currentPeriod() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.period
}

func (b *Beater) report(now time.Time, err error) {
	rewound := err == nil && b.store.Observe(b.lease.ResourceVersion)
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
	b.outcomes <- status // has room: nobody else sends
}
