package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// A revision may be what has killed a cluster, and a cluster that is dead may leave. So who fails is remembered by
// name, and so is who cannot be reached on its way, which comes to the same in the end.

// maxUnwell is how many clusters are remembered, as the API bounds it.
const maxUnwell = 20

// recall finds those of the remembered clusters that are not at the revision any more. Who is, counts as it is now.
func (r *rollout) recall() {
	if len(r.memory.Unwell) == 0 || r.ended() {
		return
	}
	at := make(map[string]bool, len(r.members))
	for i := range r.members {
		if r.members[i].Revision == r.Revision {
			at[r.members[i].Name] = true
		}
	}
	for _, c := range r.memory.Unwell {
		if !at[c.Name] {
			r.left = append(r.left, c)
		}
	}
}

// unwell is what to remember: first those that have left, since the others are still there to be seen, and then those
// of mandatory groups.
func (r *rollout) unwell() []v1alpha1.UnwellCluster {
	if r.ended() {
		return nil
	}
	var there []v1alpha1.UnwellCluster
	for i := range r.members {
		m := &r.members[i]
		// With nothing to fall back on, a cluster that was lost is no reason to keep the others from having anything.
		lost := m.state == progressing && m.holds && m.Health != Progressing && r.hasStable()
		if m.blame || lost {
			there = append(there, v1alpha1.UnwellCluster{Name: m.Name, Group: m.Group.String()})
		}
	}
	all := slices.Concat(r.left, there)
	all = all[:min(len(all), maxUnwell)]
	slices.SortFunc(all, func(a, b v1alpha1.UnwellCluster) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ended reports whether what fails is of no concern any more: all are where they are to be, or on the way back.
func (r *rollout) ended() bool { return r.over() || r.memory.Rollback != nil }

// isMandatory reports whether a group is, by its text, as the strategy is now.
func (r *rollout) isMandatory(text string) bool {
	group, is := groupOf(text)
	return is && slices.ContainsFunc(r.Strategy.MandatoryGroups, group.named)
}

// lostGroups are mandatory groups that were not done when they lost their last cluster. If a person says stop, they are
// forgotten.
func (r *rollout) lostGroups(there map[Group]int) (lost []Group) {
	if r.Strategy.State == v1alpha1.RolloutStop || r.ended() {
		return nil
	}
	for i := range r.memory.Stages {
		row := &r.memory.Stages[i]
		group, is := groupOf(row.Name)
		if _, has := there[group]; is && !has && row.ReachedAt != nil && row.FinishedAt == nil && r.isMandatory(row.Name) {
			lost = append(lost, group)
		}
	}
	return lost
}

// undeclared says which mandatory group there is not, if there is one.
func (r *rollout) undeclared() string {
	if r.Groups == nil || r.over() {
		return ""
	}
	for i, ref := range r.Strategy.MandatoryGroups {
		if slices.ContainsFunc(r.Groups, func(g Group) bool { return g.named(ref) }) {
			continue
		}
		path := fmt.Sprintf("mandatoryGroups[%d]", i)
		if ref.Index != nil {
			return fmt.Sprintf("%s: there is no decision group %d: the placements have %d, counted from 0", path, *ref.Index,
				len(r.Groups))
		}
		return fmt.Sprintf(
			"%s: no placement has a decision group %s: correct the name, or declare it in spec.decisionGroups of a Placement",
			path, ref.Name)
	}
	return ""
}
