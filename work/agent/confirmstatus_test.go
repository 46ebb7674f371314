package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// oneWork is a hub with one Work, which counts its reads.
type oneWork struct {
	client.Client
	work  v1alpha1.Work
	err   error
	reads int
}

func (h *oneWork) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	h.reads++
	h.work.DeepCopyInto(object.(*v1alpha1.Work))
	return h.err
}

// TestConfirmStatus_CacheIsOlderThanTheResult checks that an agent that has started keeps the result of a deleted Job,
// although its cache has an earlier status.
func TestConfirmStatus_CacheIsOlderThanTheResult(t *testing.T) {
	cached := &v1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Name: "migration", UID: "u", ResourceVersion: "7"}}
	live := cached.DeepCopy()
	live.ResourceVersion, live.Status.Ready = "8", "1/1"
	ran := []v1alpha1.AppliedResource{{RanHash: "h"}}
	hub := &oneWork{work: *live}
	a, st := &Agent{hub: hubConnection{Client: hub}}, &state{uid: cached.UID}

	require.NoError(t, a.confirmStatus(t.Context(), cached, st, []v1alpha1.AppliedResource{{}}))
	require.Zero(t, hub.reads, "the agent reads the Work only if a Job has run")
	hub.err = errors.New("unavailable")
	require.ErrorContains(t, a.confirmStatus(t.Context(), cached, st, ran), "the status of Work migration: unav")
	hub.err = nil
	require.NoError(t, a.confirmStatus(t.Context(), cached, st, ran))
	st.observe(cached)
	require.Equal(t, "1/1", st.status(cached).Ready, "the cache is older")
	require.NoError(t, a.confirmStatus(t.Context(), cached, st, ran))
	require.Equal(t, 2, hub.reads, "the agent reads the Work once")
	hub.work.UID = "another"
	require.ErrorIs(t, a.confirmStatus(t.Context(), cached, &state{}, ran), errChangedConcurrently)
}
