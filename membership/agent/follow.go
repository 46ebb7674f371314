package agent

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/clock"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// follower watches the Membership for as long as the hub lets it, and keeps the latest that it saw. A watch that
// is dropped is opened again from where it was, which says nothing about the member: whether the hub is
// there is for the heartbeat to tell.
type follower struct {
	hub    *hubAPI
	member registered
	clock  clock.Clock
	retry  backoff

	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	latest *sighting
	mark   string        // the resource version that the watch has come to
	news   chan struct{} // has room for one
}

// follow starts a follower of the agent's Membership after the list was read.
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

// take returns what was seen since the last take, or nil.
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
		s.revision = f.latest.revision // it must not be missed that a list was older
	}
	f.latest = &s
	f.mu.Unlock()
	wake(f.news)
}

// reached takes down how far the watch has come, which bookmarks show as well.
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

// run ends with the context, or when the follower has seen that the Membership is gone or out of its reach.
func (f *follower) run(ctx context.Context, version string) {
	for ctx.Err() == nil {
		if version != "" {
			version = f.watch(ctx, version)
		} else {
			list, err := f.hub.listMembership(ctx)
			s := sightOf(list, err, f.member)
			s.revision = revisionOf(list)
			if s.sight == lifecycle.HubSeen {
				version = list.ResourceVersion
			}
			if s.sight != lifecycle.HubUnreachable && ctx.Err() == nil {
				f.put(s)
			}
			if shutOut(s.sight) {
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

// watch watches once, and returns the version to go on from. Empty: look anew. That is the answer to everything but
// the regular end of a watch, since it is cheap and right whatever has happened: a version that is too old, or of an
// etcd that was restored since; permissions taken away; or a Membership deleted, for which there are good reasons
// and bad ones.
func (f *follower) watch(ctx context.Context, version string) string {
	// With its own context, because stopping a watch does not end a request whose header is still to come.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := f.hub.watchMembership(ctx, version)
	if err != nil {
		return ""
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		m, ok := event.Object.(*v1alpha1.Membership)
		if !ok || event.Type == watch.Error || event.Type == watch.Deleted {
			return ""
		}
		f.retry.reset()
		version = m.ResourceVersion
		f.reached(version)
		if event.Type != watch.Bookmark {
			s := sightOf(&v1alpha1.MembershipList{Items: []v1alpha1.Membership{*m}}, nil, f.member)
			s.lagging = true
			f.put(s)
		}
	}
	return version
}

// backoff is the time to wait after failures in a row: a second, doubled each time, at most half a minute; each jittered.
type backoff struct {
	random   func() float64
	failures int
}

func (b *backoff) next() time.Duration {
	b.failures++
	return jittered(min(time.Second<<min(b.failures-1, 5), 30*time.Second), b.random)
}

func (b *backoff) reset() { b.failures = 0 }

// jittered is half of d to one and a half, so that agents to which the same thing happens at the same time, such as the
// end of their watches, do not all come back at the same time.
func jittered(d time.Duration, random func() float64) time.Duration {
	return time.Duration((0.5 + random()) * float64(d))
}
