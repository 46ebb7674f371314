package placement

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/internal/decision"
	"github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins/clusteraffinity"
	"github.com/muster-sdk/muster/scheduler/plugins/propertyaffinity"
)

// maxParts bounds the number of parts of all groups of a Placement, because the status of a rollout has an entry for
// each.
const maxParts = 100

// groups assigns clusters to decision groups.
type groups struct {
	named    []group
	partSize *intstr.IntOrString // nil: groups are not divided
}

type group struct {
	name       string
	selector   labels.Selector
	properties []clusteraffinity.Requirement
}

// newGroups returns the decision groups of a Placement. An error names the field.
func newGroups(spec *v1alpha1.PlacementSpec) (groups, error) {
	made := groups{partSize: spec.ClustersPerDecisionGroup}
	for i := range spec.DecisionGroups {
		path := field.NewPath("spec", "decisionGroups").Index(i)
		selector, err := metav1.LabelSelectorAsSelector(&spec.DecisionGroups[i].Selector)
		if err != nil {
			return groups{}, fmt.Errorf("%s: %w", path.Child("selector"), err)
		}
		term := &v1alpha1.ClusterSelectorTerm{Properties: spec.DecisionGroups[i].Properties}
		properties, err := propertyaffinity.Matcher().Compile(term, path)
		if err != nil {
			return groups{}, err
		}
		made.named = append(made.named, group{spec.DecisionGroups[i].Name, selector, properties})
	}
	if made.partSize != nil {
		size, err := intstr.GetScaledValueFromIntOrPercent(made.partSize, 100, true)
		if err != nil || size < 1 {
			return groups{}, fmt.Errorf("spec.clustersPerDecisionGroup must be a number from 1, or a percentage from 1%% to "+
				"100%%, got %s",
				made.partSize)
		}
	}
	return made, nil
}

func (g *group) selects(cluster *scheduler.Cluster) bool {
	if !g.selector.Matches(labels.Set(cluster.Labels)) {
		return false
	}
	return !slices.ContainsFunc(g.properties, func(r clusteraffinity.Requirement) bool {
		return r.Mismatch(cluster) != ""
	})
}

// of returns the name of the group of a cluster.
func (g groups) of(cluster *scheduler.Cluster) string {
	for i := range g.named {
		if g.named[i].selects(cluster) {
			return g.named[i].name
		}
	}
	return ""
}

// decisions returns the entries of the PlacementDecisions, sorted by group, and within a group with the best cluster
// first. Absent clusters, whose labels are unknown, keep their former group.
func (g groups) decisions(before []decision.Slice, all []published) []v1alpha1.ClusterDecision {
	missing := setOf(observedOf(all).absent)
	var former map[string]*v1alpha1.ClusterDecision
	if len(missing) > 0 || g.partSize != nil {
		former = byName(before)
	}
	rank := map[string]int{"": len(g.named)}
	for i := range g.named {
		rank[g.named[i].name] = i
	}
	decisions := make([]v1alpha1.ClusterDecision, 0, len(all))
	for _, p := range all {
		d := v1alpha1.ClusterDecision{ClusterName: p.cluster.Name, Reason: p.reason, Replaces: p.replaces}
		if missing[d.ClusterName] {
			if known := former[d.ClusterName]; known != nil {
				d.Group = known.Group
			}
		} else {
			d.Group = g.of(p.cluster)
		}
		decisions = append(decisions, d)
	}
	slices.SortStableFunc(decisions, func(a, b v1alpha1.ClusterDecision) int { return rank[a.Group] - rank[b.Group] })
	g.divide(former, decisions)
	return decisions
}

// byName returns the entries of PlacementDecisions by the name of the cluster.
func byName(laid []decision.Slice) map[string]*v1alpha1.ClusterDecision {
	entries := map[string]*v1alpha1.ClusterDecision{}
	for i := range laid {
		for j := range laid[i].Decisions {
			entries[laid[i].Decisions[j].ClusterName] = &laid[i].Decisions[j]
		}
	}
	return entries
}

// divide sets the parts of groups. A cluster that stays in its group keeps its former part while the part is not too
// large. The others fill the first parts in their order, so that the best clusters are updated first.
func (g groups) divide(former map[string]*v1alpha1.ClusterDecision, decisions []v1alpha1.ClusterDecision) {
	if g.partSize == nil {
		return
	}
	size := g.sizeFor(len(decisions))
	type part struct {
		group string
		index int32
	}
	members := map[part]int{}
	placed := make([]bool, len(decisions))
	for i := range decisions {
		d := &decisions[i]
		known := former[d.ClusterName]
		if known == nil || known.Group != d.Group {
			continue
		}
		if at := (part{d.Group, known.GroupPart}); members[at] < size {
			members[at]++
			d.GroupPart, placed[i] = at.index, true
		}
	}
	open := map[string]int32{} // the first part of each group that may not be full
	for i := range decisions {
		if placed[i] {
			continue
		}
		d := &decisions[i]
		for members[part{d.Group, open[d.Group]}] >= size {
			open[d.Group]++
		}
		d.GroupPart = open[d.Group]
		members[part{d.Group, d.GroupPart}]++
	}
}

// sizeFor returns the maximum number of clusters in a part, for a number of selected clusters.
func (g groups) sizeFor(clusters int) int {
	size, err := intstr.GetScaledValueFromIntOrPercent(g.partSize, clusters, true)
	if err != nil { // newGroups has checked it
		size = clusters
	}
	return max(size, (clusters+maxParts-1)/maxParts, 1)
}
