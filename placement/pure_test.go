package placement

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
)

func choices(clusters ...*scheduler.Cluster) []scheduler.Choice {
	var chosen []scheduler.Choice
	for _, c := range clusters {
		chosen = append(chosen, scheduler.Choice{Cluster: c})
	}
	return chosen
}

func TestSummarize(t *testing.T) {
	healthy, unhealthy := &scheduler.Cluster{Name: "a", Healthy: true}, &scheduler.Cluster{Name: "b"}
	for _, test := range []struct {
		reason string
		result scheduler.Result
		want   summary
	}{
		{
			"all desired clusters are selected", scheduler.Result{Wanted: 2, Chosen: choices(healthy, unhealthy)},
			summary{desired: 2, selected: 2, ready: 1, scheduled: true, reason: v1alpha1.ReasonScheduled},
		},
		{
			"fewer clusters than desired are selected", scheduler.Result{Wanted: 3, Chosen: choices(healthy)},
			summary{desired: 3, selected: 1, ready: 1, reason: v1alpha1.ReasonUnschedulable},
		},
		{
			"PickAll selects all clusters", scheduler.Result{Wanted: -1, Chosen: choices(healthy)},
			summary{desired: 1, selected: 1, ready: 1, scheduled: true, reason: v1alpha1.ReasonScheduled},
		},
		{"PickAll without clusters", scheduler.Result{Wanted: -1}, summary{reason: v1alpha1.ReasonUnschedulable}},
		{"no desired clusters", scheduler.Result{}, summary{scheduled: true, reason: v1alpha1.ReasonScheduled}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			test.want.decided, test.want.message = true, "why"
			if got := summarize(&step{result: test.result, all: asChosen(test.result.Chosen)}, "why"); !reflect.DeepEqual(got,
				test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestSummary_Status(t *testing.T) {
	then, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	condition := func(status metav1.ConditionStatus, reason, message string, generation int64,
		since metav1.Time) []metav1.Condition {
		scheduled := metav1.Condition{
			Type: v1alpha1.ConditionScheduled, Status: status, Reason: reason, Message: message,
			ObservedGeneration: generation, LastTransitionTime: since,
		}
		ready, stalled := scheduled, scheduled
		ready.Type, stalled.Type, stalled.Status = v1alpha1.ConditionReady, v1alpha1.ConditionStalled, metav1.ConditionTrue
		if status == metav1.ConditionTrue {
			ready.Reason, ready.Message = "Ready", ""
			return []metav1.Condition{scheduled, ready}
		}
		return []metav1.Condition{scheduled, ready, stalled}
	}
	old := v1alpha1.PlacementStatus{
		ObservedGeneration: 1, DecidedGeneration: 1, DesiredClusters: 3, SelectedClusters: 3, ReadyClusters: 2,
		Rescheduled: "1",
		Conditions:  condition(metav1.ConditionTrue, v1alpha1.ReasonScheduled, "before", 1, then),
	}
	for _, test := range []struct {
		reason         string
		v              summary
		want           v1alpha1.PlacementStatus
		wantTransition bool
	}{
		{
			"another message is no transition",
			summary{decided: true, desired: 3, selected: 3, ready: 3, scheduled: true, reason: v1alpha1.ReasonScheduled,
				message: "after"},
			v1alpha1.PlacementStatus{
				ObservedGeneration: 2, DecidedGeneration: 2, DesiredClusters: 3, SelectedClusters: 3, ReadyClusters: 3,
				Rescheduled: "2",
				Conditions:  condition(metav1.ConditionTrue, v1alpha1.ReasonScheduled, "after", 2, then),
			}, false,
		},
		{
			"a failed decision keeps the counts and the last rescheduling",
			failed(v1alpha1.ReasonInvalidPolicy, errors.New("no such type")),
			v1alpha1.PlacementStatus{
				ObservedGeneration: 2, DecidedGeneration: 1, DesiredClusters: 3, SelectedClusters: 3, ReadyClusters: 2,
				Rescheduled: "1",
				Conditions:  condition(metav1.ConditionFalse, v1alpha1.ReasonInvalidPolicy, "no such type", 2, now),
			}, true,
		},
		{
			"another number of clusters is a transition",
			summary{decided: true, desired: 2, selected: 2, ready: 2, scheduled: true, reason: v1alpha1.ReasonScheduled,
				message: "after"},
			v1alpha1.PlacementStatus{
				ObservedGeneration: 2, DecidedGeneration: 2, DesiredClusters: 2, SelectedClusters: 2, ReadyClusters: 2,
				Rescheduled: "2",
				Conditions:  condition(metav1.ConditionTrue, v1alpha1.ReasonScheduled, "after", 2, then),
			}, true,
		},
	} {
		t.Run(test.reason, func(t *testing.T) {
			placement := &v1alpha1.Placement{
				ObjectMeta: metav1.ObjectMeta{Generation: 2, Annotations: map[string]string{v1alpha1.RescheduleAnnotation: "2"}},
				Status:     old,
			}
			got := test.v.status(placement, now)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			require.Equal(t, test.wantTransition, transitioned(&old, &got))
			placement.Status = got
			require.Equal(t, got, test.v.status(placement, metav1.NewTime(time.Unix(3000, 0))),
				"an equal summary must not change the status")
		})
	}
	require.LessOrEqual(t,
		len(failed(v1alpha1.ReasonDecideFailed, errors.New(strings.Repeat("é", 5000))).status(&v1alpha1.Placement{},
			metav1.Now()).Conditions[0].Message), 1024, "the message must fit into an Event")
}

func TestIsSignificant(t *testing.T) {
	former := &scheduler.Cluster{Name: "a", Healthy: true, Labels: map[string]string{"a": "b"}}
	for reason, test := range map[string]struct {
		change func(*scheduler.Cluster)
		want   bool
	}{
		"available resources change with each heartbeat": {func(c *scheduler.Cluster) {
			c.Available = corev1.ResourceList{"cpu": resource.MustParse("1")}
		}, false},
		"scores and the number of placements": {func(c *scheduler.Cluster) {
			c.Scores = map[string]float64{"a": 1}
			c.Placements = 2
		}, false},
		"health":                               {func(c *scheduler.Cluster) { c.Healthy = false }, true},
		"a taint":                              {func(c *scheduler.Cluster) { c.Taints = []corev1.Taint{{Key: "a"}} }, true},
		"a label":                              {func(c *scheduler.Cluster) { c.Labels = nil }, true},
		"the number of placements and a leave": {func(c *scheduler.Cluster) { c.Placements, c.Leaving = 7, true }, true},
	} {
		now := *former
		test.change(&now)
		require.Equal(t, test.want, isSignificant(scheduler.Event{Old: former, New: &now}), reason)
	}
	require.True(t, isSignificant(scheduler.Event{New: former}))
	require.True(t, isSignificant(scheduler.Event{Old: former}))
}

func TestClusterOf(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	member := &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{"region": "eu"}},
		Spec: membershipv1alpha1.MemberClusterSpec{Taints: []membershipv1alpha1.Taint{
			{Key: "b", Effect: corev1.TaintEffectNoSchedule}, {Key: "a", Value: "v", Effect: corev1.TaintEffectNoExecute,
				TimeAdded: &at},
		}},
		Status: membershipv1alpha1.MemberClusterStatus{
			Conditions: []metav1.Condition{
				{Type: membershipv1alpha1.ConditionJoined, Status: metav1.ConditionTrue},
				{Type: membershipv1alpha1.ConditionHealthy, Status: metav1.ConditionUnknown},
			},
			Resources:  membershipv1alpha1.ResourceUsage{Available: corev1.ResourceList{"cpu": resource.MustParse("2")}},
			Properties: []membershipv1alpha1.Property{{Name: "nodes", Value: "7"}},
		},
	}
	want := &scheduler.Cluster{
		Name: "east", Labels: map[string]string{"region": "eu"}, Properties: map[string]string{"nodes": "7"}, Joined: true,
		Taints: []corev1.Taint{
			{Key: "a", Value: "v", Effect: corev1.TaintEffectNoExecute, TimeAdded: &at},
			{Key: "b", Effect: corev1.TaintEffectNoSchedule},
		},
		Available: corev1.ResourceList{"cpu": resource.MustParse("2")},
	}
	got := ClusterOf(member)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	member.Labels["region"], member.Spec.Taints[1].TimeAdded.Time = "us", time.Time{}
	if diff := cmp.Diff(map[string]string{"region": "eu"}, got.Labels); diff != "" || got.Taints[0].TimeAdded.IsZero() {
		t.Error("the Cluster shares memory with the MemberCluster")
	}
	for reason, change := range map[string]func(*membershipv1alpha1.MemberCluster){
		"a recorded leave":  func(m *membershipv1alpha1.MemberCluster) { m.Status.Leave = &membershipv1alpha1.LeaveStatus{} },
		"a requested leave": func(m *membershipv1alpha1.MemberCluster) { m.Spec.State = membershipv1alpha1.StateLeave },
		"the phase Leaving": func(m *membershipv1alpha1.MemberCluster) { m.Status.Phase = membershipv1alpha1.PhaseLeaving },
	} {
		m := member.DeepCopy()
		change(m)
		require.True(t, ClusterOf(m).Leaving, reason)
	}
	withDefinition := member.DeepCopy()
	withDefinition.DeletionTimestamp = &at
	require.False(t, ClusterOf(withDefinition).Leaving, "a deletionTimestamp alone is not a request to leave")
}

type failingNotifier struct{ always }

func (failingNotifier) Notify(context.Context, func(types.NamespacedName)) (func(), error) {
	return nil, errors.New("the watch cannot start")
}

// TestNotify checks that the controller does not start if Notify fails, because it would wait forever, and that a
// Readiness without Notify is polled.
func TestNotify(t *testing.T) {
	d := &decisionController{Options: Options{Ready: failingNotifier{}}}
	_, err := d.notify(t.Context())
	require.EqualError(t, err, "watch readiness: the watch cannot start")
	require.False(t, d.running.polls)
	d.Ready = ReadyFunc(func(types.NamespacedName, string) bool { return true })
	stop, err := d.notify(t.Context())
	require.NoError(t, err)
	require.True(t, d.running.polls, "a Readiness without Notify is polled")
	stop()
}

type sourceFunc func(context.Context, Fleet) error

func (f sourceFunc) Run(ctx context.Context, fleet Fleet) error { return f(ctx, fleet) }
func (sourceFunc) CountsPlacements() bool                       { return true }

func TestExplain(t *testing.T) {
	clusters := sourceFunc(func(ctx context.Context, fleet Fleet) error {
		fleet.Set(&scheduler.Cluster{Name: "a", Joined: true, Healthy: true})
		fleet.Set(&scheduler.Cluster{Name: "b", Joined: true})
		fleet.Set(&scheduler.Cluster{Name: "c", Joined: true, Healthy: true})
		fleet.Remove("c")
		fleet.Synced()
		fleet.Synced()
		<-ctx.Done()
		return nil
	})
	placement := &v1alpha1.Placement{Spec: v1alpha1.PlacementSpec{Policy: v1alpha1.PlacementPolicy{Type: v1alpha1.PickN,
		NumberOfClusters: new(int32(2))}}}
	diagnosis, err := Explain(t.Context(), nil, Options{Clusters: clusters}, placement)
	require.NoError(t, err)
	require.Equal(t, "1 of 2 clusters chosen, but 2 are desired; 1 is not known to be healthy", diagnosis.String())

	decider := unexplainedDecider{}
	diagnosis, err = Explain(t.Context(), nil, Options{Clusters: clusters, Decider: decider}, placement)
	require.NoError(t, err)
	require.Equal(t, []scheduler.ClusterDiagnosis{{Name: "a", Outcome: scheduler.Chosen}}, diagnosis.Clusters)

	ends := sourceFunc(func(context.Context, Fleet) error { return errors.New("no clusters today") })
	_, err = Explain(t.Context(), nil, Options{Clusters: ends}, placement)
	require.EqualError(t, err, "no clusters today")
	placement.Spec.Policy.NumberOfClusters = nil
	_, err = Explain(t.Context(), nil, Options{Clusters: clusters}, placement)
	require.ErrorContains(t, err, "numberOfClusters is required")
}

// unexplainedDecider is a Decider whose decisions cannot be explained.
type unexplainedDecider struct{}

func (unexplainedDecider) Schedule(_ context.Context, s *scheduler.Snapshot,
	_ *scheduler.Request) (scheduler.Result, error) {
	slot, _ := s.Slot("a")
	return scheduler.Result{Wanted: 1, Total: s.Len(), Chosen: []scheduler.Choice{{Cluster: s.Cluster(slot)}}}, nil
}

func (unexplainedDecider) MayHelp(*scheduler.Request, []string, scheduler.Event) bool { return true }
