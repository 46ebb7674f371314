package install

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// stuck is a hub that accepts requests and never responds.
type stuck struct{ client.Client }

func (stuck) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func (stuck) Delete(ctx context.Context, _ client.Object, _ ...client.DeleteOption) error {
	<-ctx.Done()
	return ctx.Err()
}

func (stuck) Status() client.SubResourceWriter { return stuckStatus{} }

type stuckStatus struct{ client.SubResourceWriter }

func (stuckStatus) Patch(ctx context.Context, _ client.Object, _ client.Patch,
	_ ...client.SubResourcePatchOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestRunner_HubDoesNotRespond checks that a hub that does not respond causes an error after a timeout, which is
// retried and reported.
func TestRunner_HubDoesNotRespond(t *testing.T) {
	cluster := func(mode v1alpha1.JoinMode) *v1alpha1.MemberCluster {
		c := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "uid"}}
		c.Spec.JoinMode, c.Status.Install = mode, &v1alpha1.InstallStatus{}
		return c
	}
	for _, tc := range []struct {
		reason string
		do     func(ctx context.Context, r *Runner) error
	}{
		{"a reconcile times out", func(ctx context.Context, r *Runner) error {
			return r.Run(ctx, fleet.Connected{Cluster: cluster(v1alpha1.JoinInstall)})
		}},
		{"a reconcile after a change of the join mode times out", func(ctx context.Context, r *Runner) error {
			return r.Run(ctx, fleet.Connected{Cluster: cluster(v1alpha1.JoinPull)})
		}},
		{"a write of the status times out", func(ctx context.Context, r *Runner) error {
			return r.report(ctx, cluster(v1alpha1.JoinInstall), condition(v1alpha1.ReasonInstalled, "x"), nil)
		}},
		{"the deletion of a JoinToken times out", func(ctx context.Context, r *Runner) error {
			return r.discard(ctx, &member{}, cluster(v1alpha1.JoinInstall))
		}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &Runner{Options: Options{Clock: clock.RealClock{}}, cached: stuck{}, live: stuck{}, client: stuck{},
					members: map[types.UID]*member{}}
				start := time.Now()
				require.ErrorIs(t, tc.do(t.Context(), r), context.DeadlineExceeded)
				require.Equal(t, requestTimeout, time.Since(start))
			})
		})
	}
}
