package rollout

import (
	"fmt"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// A revision can make a cluster fail, and a failed cluster can leave. So the names of failed clusters are stored in the
// status, and also those of clusters that cannot be reached during their update, which are likely to have failed.

// maxUnwell is the maximum number of stored clusters, as in the API.
const maxUnwell = 20

// findDeparted finds the stored clusters that are no longer at the revision. For a cluster at the revision, its current
// health counts.
func (r *rollout) findDeparted() {
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

// unwell returns the clusters to store: first those that have left, because the others can still be observed, then
// those of mandatory groups.
func (r *rollout) unwell() []v1alpha1.UnwellCluster {
	if r.ended() {
		return nil
	}
	var there []v1alpha1.UnwellCluster
	for i := range r.members {
		m := &r.members[i]
		// Without a stable revision, a lost cluster must not prevent the others from getting any revision.
		lost := m.state == progressing && m.hasSlot && m.Health != Progressing && r.hasStable()
		if m.countsAsFailure || lost {
			there = append(there, v1alpha1.UnwellCluster{Name: m.Name, Group: m.Group.String()})
		}
	}
	all := slices.Concat(r.left, there)
	all = all[:min(len(all), maxUnwell)]
	slices.SortFunc(all, func(a, b v1alpha1.UnwellCluster) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// ended reports whether failures no longer affect the rollout: it is over, or is being rolled back.
func (r *rollout) ended() bool { return r.isComplete() || r.memory.Rollback != nil }

// isMandatory reports whether the strategy now lists a group, given by its text, as mandatory.
func (r *rollout) isMandatory(text string) bool {
	group, is := groupOf(text)
	return is && slices.ContainsFunc(r.Strategy.MandatoryGroups, group.named)
}

// lostGroups returns the mandatory groups that lost their last cluster before they were done. With the state Stop, it
// returns none.
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

// undeclared returns a message about a mandatory group that is not declared. Empty: all are declared.
func (r *rollout) undeclared() string {
	if r.Groups == nil || r.isComplete() {
		return ""
	}
	for i, ref := range r.Strategy.MandatoryGroups {
		if slices.ContainsFunc(r.Groups, func(g Group) bool { return g.named(ref) }) {
			continue
		}
		path := fmt.Sprintf("mandatoryGroups[%d]", i)
		if ref.Index != nil {
			return fmt.Sprintf("%s: no decision group has the index %d: the Placements have %d groups, counted from 0",
				path, *ref.Index, len(r.Groups))
		}
		return fmt.Sprintf(
			"%s: no Placement has a decision group %s: correct the name, or declare it in spec.decisionGroups of a Placement",
			path, ref.Name)
	}
	return ""
}
