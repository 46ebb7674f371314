package heartbeat

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// versioned is a hub whose store has a version.
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

// TestBeater_Rewound checks that a heartbeat shows a restored store, and that an outage or a Lease that was made anew
// is none.
func TestBeater_Rewound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub := &versioned{version: 100}
		beater := NewBeater(hub, BeaterOptions{Period: time.Second})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- beater.Run(ctx) }()

		<-time.After(10 * time.Second)      // in virtual time
		hub.set(func() { hub.lease = nil }) // Deleted by hand.
		<-time.After(10 * time.Second)      // in virtual time
		require.NoError(t, beater.Status().LastError)
		require.False(t, beater.Status().Rewound)

		hub.set(func() { hub.version = 50 })
		<-time.After(2 * time.Second)
		require.True(t, beater.Status().Rewound)
		hub.set(func() { hub.version = 5000 })
		<-time.After(10 * time.Second) // in virtual time
		require.True(t, beater.Status().Rewound, "it stays reported until the Beater is replaced")
		cancel()
		require.NoError(t, <-done)
	})
}
