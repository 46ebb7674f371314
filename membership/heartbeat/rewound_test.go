package heartbeat

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
)

// versioned is a fake hub whose store has a version.
type versioned struct {
	script
	version int
}

func (v *versioned) Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease,
	error) {
	return v.store(v.script.Create(ctx, l, o))
}

func (v *versioned) Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease,
	error) {
	return v.store(v.script.Update(ctx, l, o))
}

func (v *versioned) store(l *coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err == nil {
		v.set(func() {
			v.version += 3
			l.ResourceVersion = strconv.Itoa(v.version)
		})
	}
	return l, err
}

// TestBeater_Rewound checks that a heartbeat shows a restored store, and that an outage or a Lease that was created
// again does not.
func TestBeater_Rewound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &versioned{version: 100}
		beater := NewBeater(hub, BeaterOptions{Period: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- beater.Run(ctx) }()

		<-time.After(10 * time.Second)      // in virtual time
		hub.set(func() { hub.lease = nil }) // Deleted by an administrator.
		<-time.After(10 * time.Second)      // in virtual time
		require.NoError(t, beater.Status().LastError)
		require.False(t, beater.Status().Rewound)

		hub.set(func() { hub.version = 50 })
		<-time.After(2 * time.Second)
		require.True(t, beater.Status().Rewound)
		hub.set(func() { hub.version = 5000 })
		<-time.After(10 * time.Second) // in virtual time
		require.True(t, beater.Status().Rewound, "Rewound stays true until the Beater is replaced")
		cancel()
		require.NoError(t, <-done)
	})
}

// locking is a fake hub with optimistic concurrency for its Lease.
type locking struct {
	mu      sync.Mutex
	version int
	lease   *coordinationv1.Lease
}

func (l *locking) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

func (l *locking) Get(context.Context, string, metav1.GetOptions) (*coordinationv1.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lease.DeepCopy(), nil
}

func (l *locking) Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return nil, apierrors.NewAlreadyExists(leasesResource, membership.LeaseName)
}

func (l *locking) Update(_ context.Context, next *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease,
	error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if next.ResourceVersion != l.lease.ResourceVersion {
		return nil, apierrors.NewConflict(leasesResource, membership.LeaseName, errors.New("changed"))
	}
	l.store(next)
	return next.DeepCopy(), nil
}

func (l *locking) store(next *coordinationv1.Lease) {
	l.version++
	next.ResourceVersion = strconv.Itoa(l.version)
	l.lease = next.DeepCopy()
}

// TestBeater_RewoundBehindLaterWrites checks that a Beater detects a restore by its own Lease, although the store has
// passed its former version by the next heartbeat. A Lease that another client has changed or replaced does not
// indicate a restore.
func TestBeater_RewoundBehindLaterWrites(t *testing.T) {
	for _, test := range []struct {
		reason string
		change func(hub *locking, backup *coordinationv1.Lease)
		want   bool
	}{
		{"the store was restored, and has later writes", func(hub *locking, backup *coordinationv1.Lease) {
			hub.lease, hub.version = backup, 5000
		}, true},
		{"another client has changed the Lease", func(hub *locking, _ *coordinationv1.Lease) {
			hub.store(hub.lease)
		}, false},
		{"another client has replaced the Lease", func(hub *locking, backup *coordinationv1.Lease) {
			hub.lease = backup
			hub.lease.UID = "another"
		}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			hub := &locking{version: 100, lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}
			beater := NewBeater(hub, BeaterOptions{Period: time.Second})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- beater.Run(ctx) }()
			<-time.After(5 * time.Second) // in virtual time
			var backup *coordinationv1.Lease
			hub.set(func() { backup = hub.lease.DeepCopy() })
			<-time.After(5 * time.Second)
			require.False(t, beater.Status().Rewound, test.reason)
			hub.set(func() { test.change(hub, backup) })
			<-time.After(5 * time.Second)
			require.NoError(t, beater.Status().LastError)
			require.Equal(t, test.want, beater.Status().Rewound, test.reason)
			cancel()
			require.NoError(t, <-done)
		})
	}
}
