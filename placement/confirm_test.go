package placement

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// oneReader is a reader that returns one Placement for each Get. Nil: the Placement does not exist.
type oneReader struct {
	client.Reader
	placement *v1alpha1.Placement
}

func (r oneReader) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if r.placement == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "placements"}, key.Name)
	}
	r.placement.DeepCopyInto(o.(*v1alpha1.Placement))
	return nil
}

// TestConfirm_OldDecisionLeavesNoCluster repeats a case that TestModelOfFleet found: a user names cluster b instead of
// a, and reverts the change. A leader that was paused after it had decided for b wrote this decision, although another
// leader had decided for a. The status of the other leader made the decision look complete, so the objects on cluster a
// were deleted.
func TestConfirm_OldDecisionLeavesNoCluster(t *testing.T) {
	t.Parallel()
	decided := &v1alpha1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop", UID: "one", Generation: 2},
	}
	for _, test := range []struct {
		reason  string
		current func(*v1alpha1.Placement)
		missing bool
		stale   bool
	}{
		{"the Placement has not changed", func(*v1alpha1.Placement) {}, false, false},
		{"the policy has changed since", func(p *v1alpha1.Placement) { p.Generation = 3 }, false, true},
		{"the Placement was created again", func(p *v1alpha1.Placement) { p.UID = "two" }, false, true},
		{"the Placement is being deleted", func(p *v1alpha1.Placement) { p.DeletionTimestamp = &metav1.Time{} }, false, true},
		{"the Placement does not exist", func(*v1alpha1.Placement) {}, true, true},
	} {
		current := decided.DeepCopy()
		if test.current(current); test.missing {
			current = nil
		}
		err := (&decisionController{api: api{live: oneReader{placement: current}}}).confirm(t.Context(), decided)
		require.Equal(t, test.stale, err != nil, test.reason)
	}
}

// TestConfirm_Expires checks that a changed decision is not written long after it was confirmed: the leader may have
// been paused.
func TestConfirm_Expires(t *testing.T) {
	t.Parallel()
	placement := &v1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop", UID: "one"}}
	before := &v1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop-decision-0"}}
	shape(before, placement, decision.Slice{Decisions: []v1alpha1.ClusterDecision{{ClusterName: "a"}}})
	laid := []decision.Slice{{Decisions: []v1alpha1.ClusterDecision{{ClusterName: "b"}}}}
	d := &decisionController{Options: Options{Clock: clock.RealClock{}}}
	err := d.write(t.Context(), placement, []*v1alpha1.PlacementDecision{before}, laid, time.Now().Add(-time.Minute))
	require.ErrorIs(t, err, errStale)
}
