package workset_test

import (
	"fmt"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// slots returns how many members may be updated at the same time.
func (f *fleetTest) slots() int { return len(f.names) / 10 }

// progressive returns a rollout with limited concurrency, in which two clusters may fail.
func progressive(onFailure v1alpha1.FailureAction) v1alpha1.RolloutStrategy {
	return v1alpha1.RolloutStrategy{
		Type: v1alpha1.RolloutProgressive, MaxConcurrency: new(intstr.FromString("10%")),
		MaxFailures: new(intstr.FromInt32(2)), OnFailure: onFailure,
	}
}

// refused returns five members, distributed over the fleet, and overrides with an object that their API servers reject.
func (f *fleetTest) refused() ([]string, *v1alpha1.Overrides) {
	var some []string
	for i := range 5 {
		some = append(some, f.names[len(f.names)*i/5+len(f.names)/40])
	}
	return some, override(some, `{"data":{"not a key":"x"}}`)
}

// updated returns the Works that have another revision than the given one.
func (f *fleetTest) updated(revision string) (names []string) {
	for name, work := range f.seen.of(f.namespace) {
		if work.Annotations[v1alpha1.RevisionAnnotation] != revision {
			names = append(names, name)
		}
	}
	return names
}

func (f *fleetTest) rollsOut() {
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Overrides = nil })
	f.settles(len(f.names))
	stable := f.get("web").Status.Revision
	some, refusal := f.refused()

	f.begin()
	bounded := f.seen.whether(onTheWay(f.namespace, stable, f.slots()))
	f.paint("red", func(s *v1alpha1.WorkSetSpec) { s.Overrides, s.Rollout = refusal, progressive(v1alpha1.FailureHalt) })
	f.status("it is to stop", func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseFailed && s.Rollout.Progressing == 0
	})
	n := f.quiet()
	failed := f.get("web").Status.Counts.Failed
	updated := f.updated(stable)
	require.GreaterOrEqual(f.t, int(failed), 3)
	require.Less(f.t, int(failed), len(some), "it goes on after too many have failed")
	require.Less(f.t, len(updated), len(f.names))
	require.Equal(f.t, counts{"PATCH works": len(updated), "POST worksetrevisions": 1}, n)
	require.Empty(f.t, f.writes.twice())
	require.Equal(f.t, counts{"green": len(f.names) - len(updated) + int(failed), "red": len(updated) - int(failed)},
		f.colors(),
		"who cannot have it keeps what it has")

	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.MaxFailures = new(intstr.FromInt32(5)) })
	f.status("it is to go on", func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseSucceeded && int(s.Counts.Updated) == len(f.names) &&
			int(s.Counts.Failed) == len(some)
	})
	require.Equal(f.t, counts{"PATCH works": len(f.names), "POST worksetrevisions": 1}, f.quiet())
	require.Empty(f.t, f.writes.twice())
	require.NoError(f.t, bounded())

	before := f.seen.all()
	f.begin()
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Overrides = nil })
	require.Equal(f.t, counts{"PATCH works": len(f.names), "POST worksetrevisions": 1}, f.settles(len(f.names)))
	require.Len(f.t, f.changed(before), len(some), "nothing is changed where nothing was wrong")
	require.Equal(f.t, counts{"red": len(f.names)}, f.colors())
}

func (f *fleetTest) rollsBack() {
	stable := f.get("web").Status.Revision
	_, refusal := f.refused()
	bounded := f.seen.whether(onTheWay(f.namespace, stable, f.slots()))
	f.paint("purple", func(s *v1alpha1.WorkSetSpec) {
		s.Overrides, s.Rollout = refusal, progressive(v1alpha1.FailureRollBack)
	})
	f.status("it is to be taken back", func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseRolledBack && int(s.Counts.Available) == len(f.names)
	})
	n := f.quiet()
	require.NoError(f.t, bounded())
	require.Equal(f.t, counts{"red": len(f.names)}, f.colors())
	require.Empty(f.t, f.updated(stable))
	twice := f.writes.twice()
	require.NotEmpty(f.t, twice)
	require.Less(f.t, len(twice), len(f.names))
	require.Equal(f.t, counts{"PATCH works": 2 * len(twice), "POST worksetrevisions": 1}, n,
		"there and back again, and the others are left alone")

	f.begin()
	f.paint("red", func(s *v1alpha1.WorkSetSpec) { s.Overrides = nil })
	n = f.settles(len(f.names))
	require.Zero(f.t, n["PATCH works"]+n["POST works"], "all have it already: %v", n)
	require.Equal(f.t, stable, f.get("web").Status.Revision)
}

func (f *fleetTest) goesBack() {
	newest := f.get("web").Status.Revision
	f.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Revision, s.Spec.Rollout = f.first, v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutAll}
	})
	require.Equal(f.t, counts{"PATCH works": len(f.names)}, f.settles(len(f.names)))
	require.Equal(f.t, counts{"blue": len(f.names)}, f.colors())
	require.Equal(f.t, f.first, f.get("web").Status.Revision)
	f.begin()
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Revision = "" })
	require.Equal(f.t, counts{"PATCH works": len(f.names)}, f.settles(len(f.names)))
	require.Equal(f.t, counts{"red": len(f.names)}, f.colors())
	require.Equal(f.t, newest, f.get("web").Status.Revision)
}

// losesHub stops the API server of the hub during a rollout, and starts it again.
func (f *fleetTest) losesHub() {
	before, stable := f.seen.all(), f.get("web").Status.Revision
	bounded := f.seen.whether(onTheWay(f.namespace, stable, f.slots()))
	f.paint("white", func(s *v1alpha1.WorkSetSpec) { s.Rollout = progressive(v1alpha1.FailureHalt) })
	f.wait("some are told", func() bool { return len(f.updated(stable)) > len(f.names)/4 })
	require.NoError(f.t, f.plane.KillAPIServer())
	// once it is back, who knows how far it is
	require.Less(f.t, len(f.updated(stable)), len(f.names), "it was killed too late")
	require.NoError(f.t, f.plane.StartAPIServer(f.t.Context()))
	f.settles(len(f.names))
	require.NoError(f.t, bounded())
	require.Equal(f.t, counts{"white": len(f.names)}, f.colors())
	f.onceMore(before)
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutAll} })
	f.settles(len(f.names))
}

// onceMore requires that the Works are the same as before, and that each has changed once.
func (f *fleetTest) onceMore(before map[string]*workv1alpha1.Work) {
	f.t.Helper()
	now := f.seen.all()
	require.Len(f.t, now, len(before))
	for name, was := range before {
		require.NotNil(f.t, now[name], name)
		require.Equal(f.t, fmt.Sprint(was.UID, was.Generation+1), fmt.Sprint(now[name].UID, now[name].Generation), name)
	}
}
