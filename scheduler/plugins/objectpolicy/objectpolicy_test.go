package objectpolicy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/objectpolicy"
)

type plugin interface {
	scheduler.BatchFilterPlugin
	scheduler.HintPlugin
}

func newPlugin(t *testing.T) plugin {
	t.Helper()
	p, err := objectpolicy.New(nil, scheduler.Handle{})
	require.NoError(t, err)
	return p.(plugin)
}

// requires returns a request for kinds of the group apps.
func requires(t *testing.T, kinds ...string) *scheduler.Request {
	t.Helper()
	spec := &v1alpha1.PlacementPolicy{}
	for _, kind := range kinds {
		spec.RequiredAPIs = append(spec.RequiredAPIs, metav1.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind})
	}
	policy, err := scheduler.NewPolicy(spec)
	require.NoError(t, err)
	return &scheduler.Request{Policy: policy}
}

func accepting(kinds ...schema.GroupKind) *scheduler.Cluster {
	return &scheduler.Cluster{Name: "a", Policy: &scheduler.ObjectPolicy{Kinds: kinds}}
}

var (
	deployment = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	ofApps     = schema.GroupKind{Group: "apps", Kind: "*"}
	everything = schema.GroupKind{Group: "*", Kind: "*"}
	configMap  = schema.GroupKind{Kind: "ConfigMap"}
)

func TestFilter(t *testing.T) {
	truncated := accepting(configMap)
	truncated.Policy.Truncated = true
	for _, test := range []struct {
		reason  string
		cluster *scheduler.Cluster
		kinds   []string
		want    string
	}{
		{"a member without MemberPolicies accepts everything", &scheduler.Cluster{Name: "a"}, []string{"Deployment"}, ""},
		{"no rule is for this hub", accepting(), nil, "accepts no objects: its MemberPolicies have no rule for this hub"},
		{"something is accepted, and no kind is required", accepting(configMap), nil, ""},
		{"the kind is accepted", accepting(configMap, deployment), []string{"Deployment"}, ""},
		{"the group is accepted", accepting(ofApps), []string{"Deployment", "DaemonSet"}, ""},
		{"everything is accepted", accepting(everything), []string{"Deployment"}, ""},
		{"one of two kinds is not accepted", accepting(deployment), []string{"Deployment", "DaemonSet"},
			"does not accept DaemonSet.apps: none of its MemberPolicies has a rule for it"},
		{"a kind of another group has the name", accepting(schema.GroupKind{Group: "other", Kind: "Deployment"}),
			[]string{"Deployment"}, "does not accept Deployment.apps: none of its MemberPolicies has a rule for it"},
		{"the summary is incomplete", truncated, []string{"Deployment"}, ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			cache := &scheduler.Cache{}
			cache.Update(test.cluster)
			snapshot, request := cache.Snapshot(), requires(t, test.kinds...)
			state := scheduler.NewCycleState(snapshot, request)
			status := newPlugin(t).Filter(context.Background(), state, request, test.cluster)
			require.Equal(t, test.want, status.Reason())
			left := snapshot.All().Clone()
			require.Nil(t, newPlugin(t).FilterAll(context.Background(), state, request, left))
			require.Equal(t, test.want == "", left.Len() == 1, "FilterAll")

			request.Bound = []string{"a"}
			state, left = scheduler.NewCycleState(snapshot, request), snapshot.All().Clone()
			require.Nil(t, newPlugin(t).Filter(context.Background(), state, request, test.cluster),
				"a cluster that was chosen before stays")
			require.Nil(t, newPlugin(t).FilterAll(context.Background(), state, request, left))
			require.Equal(t, 1, left.Len())
		})
	}
}

func TestHint(t *testing.T) {
	request := requires(t, "Deployment")
	for _, test := range []struct {
		old, new *scheduler.Cluster
		want     bool
	}{
		{accepting(configMap), accepting(deployment), true},
		{accepting(), &scheduler.Cluster{Name: "a"}, true},
		{accepting(deployment), accepting(everything), false},
		{accepting(deployment), accepting(configMap), false},
	} {
		require.Equal(t, test.want, newPlugin(t).Hint(request, scheduler.Event{Old: test.old, New: test.new}),
			fmt.Sprint(test.old.Policy, test.new.Policy))
	}
}
