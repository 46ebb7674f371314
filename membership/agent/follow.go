package agent

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	latest *sighting
	news   chan struct{} // has room for one
}

// follow starts a follower after the list was read.
func follow(ctx context.Context, hub *hubAPI, member registered, clock clock.Clock, list *v1alpha1.MembershipList) *follower {
	f := &follower{hub: hub, member: member, clock: clock, done: make(chan struct{}), news: make(chan struct{}, 1)}
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
	f.latest = &s
	f.mu.Unlock()
	wake(f.news)
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run ends with the context, or when the follower has seen that the Membership is gone or out of its reach.
func (f *follower) run(ctx context.Context, version string) {
	var retry backoff
	for ctx.Err() == nil {
		next, over := f.watch(ctx, version, &retry)
		if over {
			return
		}
		if next == "" { // the version is too old: begin anew
			list, err := f.hub.listMembership(ctx)
			s := sightOf(list, err, f.member)
			if s.sight == lifecycle.HubGone || s.sight == lifecycle.HubRefused {
				f.put(s)
				return
			}
			if s.sight == lifecycle.HubSeen {
				f.put(s)
				next = list.ResourceVersion
			}
		}
		version = next
		select {
		case <-ctx.Done():
		case <-f.clock.After(retry.next()):
		}
	}
}

// watch watches once. It returns the version to go on from, empty if there is none, and whether all is over.
func (f *follower) watch(ctx context.Context, version string, retry *backoff) (next string, over bool) {
	if version == "" {
		return "", false
	}
	// With its own context, because stopping a watch does not end a request whose header is still to come.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watcher, err := f.hub.watchMembership(ctx, version)
	switch {
	case refusal(err):
		f.put(sighting{sight: lifecycle.HubRefused})
		return "", true
	case expired(err):
		return "", false
	case err != nil:
		return version, false
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		switch m, _ := event.Object.(*v1alpha1.Membership); {
		case event.Type == watch.Error:
			if expired(apierrors.FromObject(event.Object)) {
				return "", false
			}
			return version, false
		case m == nil:
		case event.Type == watch.Deleted:
			f.put(sighting{sight: lifecycle.HubGone})
			return "", true
		default:
			retry.reset()
			version = m.ResourceVersion
			if event.Type != watch.Bookmark {
				f.put(sightOf(&v1alpha1.MembershipList{Items: []v1alpha1.Membership{*m}}, nil, f.member))
			}
		}
	}
	return version, false
}

// backoff is the time to wait after failures in a row: a second, doubled each time, at most half a minute.
type backoff struct{ failures int }

func (b *backoff) next() time.Duration {
	b.failures++
	return min(time.Second<<min(b.failures-1, 5), 30*time.Second)
}

func (b *backoff) reset() { b.failures = 0 }
