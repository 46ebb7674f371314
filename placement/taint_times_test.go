package placement

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/muster-sdk/muster/scheduler"
)

func TestTaintTimes(t *testing.T) {
	began := time.Unix(1000, 0)
	own := metav1.NewTime(time.Unix(7, 0))
	taint := func(key, value string) corev1.Taint {
		return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoExecute}
	}
	at := func(t corev1.Taint, minutes int) corev1.Taint {
		t.TimeAdded = new(metav1.NewTime(began.Add(time.Duration(minutes) * time.Minute)))
		return t
	}
	withOwn := taint("hub", "")
	withOwn.TimeAdded = &own
	noSchedule := corev1.Taint{Key: "full", Effect: corev1.TaintEffectNoSchedule}
	for _, tc := range []struct {
		reason       string
		observations [][]corev1.Taint // one per minute; nil: the cluster is removed
		want         []corev1.Taint
	}{
		{"the time is that of the first observation", [][]corev1.Taint{{taint("a", "")}, {taint("a", "")}, {taint("a", "")}},
			[]corev1.Taint{at(taint("a", ""), 0)}},
		{"a later taint has its own time", [][]corev1.Taint{{taint("a", "")},
			{taint("a", ""), taint("b", "")}}, []corev1.Taint{at(taint("a", ""), 0), at(taint("b", ""), 1)}},
		{"a taint with another value has its own time", [][]corev1.Taint{{taint("a", "x")}, {taint("a", "y")}},
			[]corev1.Taint{at(taint("a", "y"), 1)}},
		{"a taint that is removed and added again has a new time", [][]corev1.Taint{{taint("a", "")}, {}, {taint("a", "")}},
			[]corev1.Taint{at(taint("a", ""), 2)}},
		{"a taint of a cluster that was removed has a new time", [][]corev1.Taint{{taint("a", "")}, nil, {taint("a", "")}},
			[]corev1.Taint{at(taint("a", ""), 2)}},
		{"a taint with timeAdded is not changed", [][]corev1.Taint{{withOwn}, {withOwn}}, []corev1.Taint{withOwn}},
		{"a NoSchedule taint needs no time", [][]corev1.Taint{{noSchedule}}, []corev1.Taint{noSchedule}},
		{"the order of taints is kept", [][]corev1.Taint{{noSchedule, taint("a", ""), withOwn}}, []corev1.Taint{noSchedule,
			at(taint("a", ""), 0), withOwn}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(began)
			d := newTaintTimes(clock)
			var got *scheduler.Cluster
			for i, taints := range tc.observations {
				clock.SetTime(began.Add(time.Duration(i) * time.Minute))
				if taints == nil {
					d.remove("x")
					continue
				}
				input := &scheduler.Cluster{Name: "x", Taints: taints}
				before := slices.Clone(taints)
				got = d.withTimes(input)
				require.Equal(t, before, input.Taints, "withTimes must not change its argument")
			}
			require.Equal(t, tc.want, got.Taints)
		})
	}
}

func TestTaintTimes_Removed(t *testing.T) {
	d := newTaintTimes(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)))
	d.withTimes(&scheduler.Cluster{Name: "a", Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}})
	d.withTimes(&scheduler.Cluster{Name: "b", Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}})
	d.withTimes(&scheduler.Cluster{Name: "a"})
	d.remove("b")
	require.Empty(t, d.taken)
}
