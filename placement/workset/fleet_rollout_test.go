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
	for name, work := range f.observed.of(f.Namespace) {
		if work.Annotations[v1alpha1.RevisionAnnotation] != revision {
			names = append(names, name)
		}
	}
	return names
}

func (f *fleetTest) stepFailedRollout() {
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Overrides = nil })
	f.waitAvailable(len(f.names))
	stable := f.get("web").Status.Revision
	some, refusal := f.refused()

	f.begin()
	bounded := f.observed.check(atMostProgressing(f.Namespace, stable, f.slots()))
	f.setColor("red", func(s *v1alpha1.WorkSetSpec) {
		s.Overrides, s.Rollout = refusal, progressive(v1alpha1.FailureHalt)
	})
	f.status("the rollout has failed", func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseFailed && s.Rollout.Progressing == 0
	})
	n := f.quiet()
	failed := f.get("web").Status.Counts.Failed
	updated := f.updated(stable)
	require.GreaterOrEqual(f.T, int(failed), 3)
	require.Less(f.T, int(failed), len(some), "the rollout continues after too many failures")
	require.Less(f.T, len(updated), len(f.names))
	require.Equal(f.T, counts{"PATCH works": len(updated), "POST worksetrevisions": 1}, n)
	require.Empty(f.T, f.writes.twice())
	require.Equal(f.T, counts{"green": len(f.names) - len(updated) + int(failed), "red": len(updated) - int(failed)},
		f.colors(), "a member that rejects the object keeps the former one")

	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout.MaxFailures = new(intstr.FromInt32(5)) })
	f.status("the rollout succeeds with a higher limit of failures", func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseSucceeded && int(s.Counts.Updated) == len(f.names) &&
			int(s.Counts.Failed) == len(some)
	})
	require.Equal(f.T, counts{"PATCH works": len(f.names), "POST worksetrevisions": 1}, f.quiet())
	require.Empty(f.T, f.writes.twice())
	require.NoError(f.T, bounded())

	before := f.observed.of(f.Namespace)
	f.begin()
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Overrides = nil })
	require.Equal(f.T, counts{"PATCH works": len(f.names), "POST worksetrevisions": 1}, f.waitAvailable(len(f.names)))
	require.Len(f.T, f.changed(before), len(some), "only the Works of failed members change")
	require.Equal(f.T, counts{"red": len(f.names)}, f.colors())
}

func (f *fleetTest) stepRollback() {
	stable := f.get("web").Status.Revision
	_, refusal := f.refused()
	bounded := f.observed.check(atMostProgressing(f.Namespace, stable, f.slots()))
	f.setColor("purple", func(s *v1alpha1.WorkSetSpec) {
		s.Overrides, s.Rollout = refusal, progressive(v1alpha1.FailureRollBack)
	})
	f.status("the rollout is rolled back", func(s *v1alpha1.WorkSetStatus) bool {
		return s.Rollout.Phase == v1alpha1.PhaseRolledBack && int(s.Counts.Available) == len(f.names)
	})
	n := f.quiet()
	require.NoError(f.T, bounded())
	require.Equal(f.T, counts{"red": len(f.names)}, f.colors())
	require.Empty(f.T, f.updated(stable))
	twice := f.writes.twice()
	require.NotEmpty(f.T, twice)
	require.Less(f.T, len(twice), len(f.names))
	require.Equal(f.T, counts{"PATCH works": 2 * len(twice), "POST worksetrevisions": 1}, n,
		"two writes for each updated Work, none for the others")

	f.begin()
	f.setColor("red", func(s *v1alpha1.WorkSetSpec) { s.Overrides = nil })
	n = f.waitAvailable(len(f.names))
	require.Zero(f.T, n["PATCH works"]+n["POST works"], "all members have the revision already: %v", n)
	require.Equal(f.T, stable, f.get("web").Status.Revision)
}

func (f *fleetTest) stepPinRevision() {
	newest := f.get("web").Status.Revision
	f.change("web", func(s *v1alpha1.WorkSet) {
		s.Spec.Revision, s.Spec.Rollout = f.first, v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutAll}
	})
	require.Equal(f.T, counts{"PATCH works": len(f.names)}, f.waitAvailable(len(f.names)))
	require.Equal(f.T, counts{"blue": len(f.names)}, f.colors())
	require.Equal(f.T, f.first, f.get("web").Status.Revision)
	f.begin()
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Revision = "" })
	require.Equal(f.T, counts{"PATCH works": len(f.names)}, f.waitAvailable(len(f.names)))
	require.Equal(f.T, counts{"red": len(f.names)}, f.colors())
	require.Equal(f.T, newest, f.get("web").Status.Revision)
}

// stepHubOutage interrupts the API server of the hub during a rollout.
func (f *fleetTest) stepHubOutage() {
	before, stable := f.observed.of(f.Namespace), f.get("web").Status.Revision
	bounded := f.observed.check(atMostProgressing(f.Namespace, stable, f.slots()))
	f.setColor("white", func(s *v1alpha1.WorkSetSpec) { s.Rollout = progressive(v1alpha1.FailureHalt) })
	f.wait("a part of the members is updated", func() bool { return len(f.updated(stable)) > len(f.names)/4 })
	f.outage.begin(f.T)
	// Checked before the restart, because the rollout continues after it.
	require.Less(f.T, len(f.updated(stable)), len(f.names), "the outage began too late")
	f.outage.end(f.T)
	f.waitAvailable(len(f.names))
	require.NoError(f.T, bounded())
	require.Equal(f.T, counts{"white": len(f.names)}, f.colors())
	f.requireChangedOnce(before)
	f.change("web", func(s *v1alpha1.WorkSet) { s.Spec.Rollout = v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutAll} })
	f.waitAvailable(len(f.names))
}

// requireChangedOnce requires that the Works are the same as before, and that each has changed once.
func (f *fleetTest) requireChangedOnce(before map[string]*workv1alpha1.Work) {
	f.T.Helper()
	now := f.observed.of(f.Namespace)
	require.Len(f.T, now, len(before))
	for name, was := range before {
		require.NotNil(f.T, now[name], name)
		require.Equal(f.T, fmt.Sprint(was.UID, was.Generation+1), fmt.Sprint(now[name].UID, now[name].Generation), name)
	}
}
