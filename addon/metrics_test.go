package addon

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/muster-sdk/muster/addon/internal/calls"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// TestMetrics_Members counts each MemberAddon in one state, and shows an Addon without members.
func TestMetrics_Members(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	on := func(member, addon string, conditions ...string) *v1alpha1.MemberAddon {
		m := &v1alpha1.MemberAddon{ObjectMeta: metav1.ObjectMeta{Namespace: member, Name: addon}}
		for _, condition := range conditions {
			m.Status.Conditions = append(m.Status.Conditions,
				metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
		}
		return m
	}
	leaving := on("a", "proxy", v1alpha1.ConditionDegraded)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{v1alpha1.MemberAddonFinalizer}
	objects := []client.Object{
		&v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "logs"}},
		&v1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "unused"}},
		on("a", "logs", v1alpha1.ConditionAvailable), on("b", "logs", v1alpha1.ConditionAvailable),
		on("c", "logs", v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing),
		on("d", "logs", v1alpha1.ConditionAvailable, v1alpha1.ConditionProgressing, v1alpha1.ConditionDegraded),
		on("e", "logs"), leaving,
	}
	m := newMetrics(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build())
	var want strings.Builder
	want.WriteString("# HELP muster_addon_members Number of members with an add-on, by state: removing, degraded, " +
		"updating, available or unavailable.\n# TYPE muster_addon_members gauge\n")
	for _, row := range []struct {
		addon, state string
		count        int
	}{
		{"logs", "available", 2}, {"logs", "degraded", 1}, {"logs", "removing", 0}, {"logs", "unavailable", 1},
		{"logs", "updating", 1},
		{"proxy", "available", 0}, {"proxy", "degraded", 0}, {"proxy", "removing", 1}, {"proxy", "unavailable", 0},
		{"proxy", "updating", 0},
		{"unused", "available", 0}, {"unused", "degraded", 0}, {"unused", "removing", 0}, {"unused", "unavailable", 0},
		{"unused", "updating", 0},
	} {
		fmt.Fprintf(&want, "muster_addon_members{addon=%q,state=%q} %d\n", row.addon, row.state, row.count)
	}
	require.NoError(t, testutil.CollectAndCompare(m, strings.NewReader(want.String()), "muster_addon_members"))
}

// TestMetrics_Calls records each call under the add-on, the function and the result.
func TestMetrics_Calls(t *testing.T) {
	m := newMetrics(nil)
	k := callOf(types.NamespacedName{Namespace: "member-a", Name: "logs"}, "logs", "Manifests")
	m.observeCall(k, time.Second, nil)
	m.observeCall(k, 2*time.Second, nil)
	m.observeCall(k, time.Second, errors.New("the database is locked"))
	m.observeCall(k, time.Second, fmt.Errorf("%s %w 30s", k.Function, calls.ErrOverdue))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m.calls))
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	counts := map[string]uint64{}
	for _, series := range families[0].GetMetric() {
		var labels []string
		for _, label := range series.GetLabel() {
			labels = append(labels, label.GetValue())
		}
		counts[strings.Join(labels, " ")] = series.GetHistogram().GetSampleCount()
	}
	require.Equal(t, map[string]uint64{
		"logs Manifests success": 2, "logs Manifests error": 1, "logs Manifests timeout": 1,
	}, counts)
}

// TestMetrics_ForcedRemovals counts a forced removal once, when its status is written.
func TestMetrics_ForcedRemovals(t *testing.T) {
	m := newMetrics(nil)
	of := func(reason string) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionDegraded, Status: metav1.ConditionTrue, Reason: reason}}
	}
	m.observeConditions("logs", nil, of(v1alpha1.ReasonHookFailed))
	require.Zero(t, testutil.CollectAndCount(m.forced))
	m.observeConditions("logs", of(v1alpha1.ReasonHookFailed), of(v1alpha1.ReasonDeadlineExceeded))
	m.observeConditions("logs", of(v1alpha1.ReasonDeadlineExceeded), of(v1alpha1.ReasonDeadlineExceeded))
	require.InDelta(t, 1, testutil.ToFloat64(m.forced.WithLabelValues("logs")), 0)
}
