package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// follower watches the Membership while the hub permits it, and stores the latest observation. A watch that is
// interrupted continues from its last version. This does not show that the hub responds; the heartbeat does.
type follower struct {
	hub    *hubAPI
	member registered
	clock  clock.Clock
	retry  backoff

	// rereads makes the follower list the Membership again every rereadPeriod. The agent sets it while it waits for the
	// hub to confirm an epoch: if the hub is restored meanwhile, and its store has passed the version of the watch before
	// the watch continues, no event shows that the request to confirm is lost.
	rereads atomic.Bool

	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	latest *sighting
	mark   string        // the last observed resource version
	news   chan struct{} // of capacity 1
}

// follow starts a follower of the agent's Membership from the version of the list.
func (a *agent) follow(ctx context.Context, list *v1alpha1.MembershipList) *follower {
	f := &follower{
		hub: a.connection.hub, member: a.connection.member, clock: a.Clock, retry: backoff{random: a.random},
		done: make(chan struct{}), news: make(chan struct{}, 1),
	}
	ctx, f.stop = context.WithCancel(ctx)
	go func() {
		defer close(f.done)
		f.run(ctx, list.ResourceVersion)
	}()
	return f
}

// close ends the watch and waits for it.
func (f *follower) close() {
	f.stop()
	<-f.done
}

// take returns the observation since the last take; nil: none.
func (f *follower) take() *sighting {
	f.mu.Lock()
	defer f.mu.Unlock()
	latest := f.latest
	f.latest = nil
	return latest
}

func (f *follower) put(s sighting) {
	f.mu.Lock()
	if f.latest != nil && s.revision == "" {
		s.revision = f.latest.revision // an older list must be noticed
	}
	f.latest = &s
	f.mu.Unlock()
	wake(f.news)
}

// reached stores the last resource version of the watch, including bookmarks.
func (f *follower) reached(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mark = version
}

func (f *follower) marked() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mark
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run watches the Membership until the context ends, the Membership is deleted, or the hub refuses the agent.
func (f *follower) run(ctx context.Context, version string) {
	for ctx.Err() == nil {
		if version != "" {
			version = f.watch(ctx, version)
		} else {
			list, err := f.hub.listMembership(ctx)
			s := hubStateOf(list, err, f.member)
			s.revision = revisionOf(list)
			if s.state == lifecycle.HubSeen {
				version = list.ResourceVersion
			}
			if s.state != lifecycle.HubUnreachable && ctx.Err() == nil {
				f.put(s)
			}
			if refused(s.state) {
				return
			}
			if version != "" {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-f.clock.After(f.retry.next()):
		}
	}
}

// watch watches once, and returns the version to continue from, or "" to list again. It returns the version only after
// the regular end of a watch. A list is cheap and always correct: the version may be too old, or from before a
// restore; permissions may be withdrawn; the Membership may be deleted, intentionally or by mistake.
func (f *follower) watch(ctx context.Context, version string) string {
	// A separate context, because stopping a watch does not end a request that waits for its response header.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := f.hub.watchMembership(ctx, version)
	if err != nil {
		return ""
	}
	defer watcher.Stop()
	timer := f.clock.NewTimer(rereadPeriod)
	defer timer.Stop()
	for {
		var event watch.Event
		var open bool
		select {
		case event, open = <-watcher.ResultChan():
			if !open {
				return version
			}
		case <-timer.C():
			if f.rereads.Load() {
				return ""
			}
			timer.Reset(rereadPeriod)
			continue
		}
		m, ok := event.Object.(*v1alpha1.Membership)
		if !ok || event.Type == watch.Error || event.Type == watch.Deleted {
			return ""
		}
		f.retry.reset()
		version = m.ResourceVersion
		f.reached(version)
		if event.Type != watch.Bookmark {
			s := hubStateOf(&v1alpha1.MembershipList{Items: []v1alpha1.Membership{*m}}, nil, f.member)
			s.lagging = true
			f.put(s)
		}
	}
}

// rereadPeriod is the time between two lists of the Membership while the agent waits for the hub to confirm an epoch.
const rereadPeriod = 30 * time.Second

// backoff computes the pause after consecutive failures: one second, doubled each time, at most half a minute, with
// jitter.
type backoff struct {
	random   func() float64
	failures int
}

func (b *backoff) next() time.Duration {
	b.failures++
	return jittered(min(time.Second<<min(b.failures-1, 5), 30*time.Second), b.random)
}

func (b *backoff) reset() { b.failures = 0 }

// jittered returns a random duration between half of d and one and a half of d, so that agents with the same event,
// such as the end of their watches, do not all send requests together.
func jittered(d time.Duration, random func() float64) time.Duration {
	return time.Duration((0.5 + random()) * float64(d))
}
