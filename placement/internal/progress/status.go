package progress

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Observed is the input of [Status].
type Observed struct {
	// Generation is the generation of the WorkSet that the other fields are about.
	Generation int64
	// Revision is the revision that all clusters must have in the end. Empty: there is none yet.
	Revision string
	// Revisions are the existing revisions, in any order. Status sets their Clusters.
	Revisions []v1alpha1.RevisionSummary
	// Objects is the number of objects of the revision.
	Objects int
	// Rollout is the status of the last plan. It is copied unchanged, and reported in messages if it is about the
	// revision.
	Rollout v1alpha1.RolloutStatus
	// Clusters are the clusters in any order, each once.
	Clusters []Cluster
	// Problems are the problems of the WorkSet as a whole, in any order.
	Problems []Problem
	// Deleting is true if the deletion of the WorkSet has begun: all clusters must be left.
	Deleting bool
	// Before is the current status. A condition whose status does not change keeps its time.
	Before v1alpha1.WorkSetStatus
	// Now is the time of changed conditions. It must not be zero.
	Now time.Time
}

// Problem is a problem of the WorkSet as a whole. The Reason is one of those of the conditions, such as
// [v1alpha1.ReasonInvalid]; the Message is a sentence that states the remedy.
type Problem struct{ Reason, Message string }

// Status returns the status of a WorkSet. It does not change its argument, and the result may share memory with it.
//
// If only Now and Before change, and Before is the last result, Status returns an equal status. So
// equality.Semantic.DeepEqual reports whether the status must be written.
func Status(o Observed) v1alpha1.WorkSetStatus {
	s := &summary{Observed: o, goal: o.Revision}
	switch {
	case o.Rollout.Revision != o.Revision:
		s.Rollout = v1alpha1.RolloutStatus{} // the rollout of another revision is not relevant
	case o.Rollout.Rollback != nil:
		s.goal = o.Rollout.StableRevision
	}
	s.Problems = slices.SortedFunc(slices.Values(o.Problems), compareProblems)
	s.count()
	status := v1alpha1.WorkSetStatus{
		ObservedGeneration: o.Generation,
		Message:            s.message(),
		Revision:           o.Revision,
		Revisions:          s.revisions(),
		Objects:            int32(o.Objects),
		Counts:             s.counts,
		Rollout:            o.Rollout,
		Feedback:           sumUp(s.reporting()),
		Conditions:         s.conditions(),
	}
	status.Clusters, status.OmittedClusters = s.clusters()
	return trim(status)
}

// order is the order of the states of clusters, by urgency.
var order = [...]v1alpha1.ClusterState{
	v1alpha1.ClusterFailed, v1alpha1.ClusterUnknown, v1alpha1.ClusterLeaving,
	v1alpha1.ClusterProgressing, v1alpha1.ClusterPending, v1alpha1.ClusterAvailable,
}

// summary sums up the clusters of a WorkSet.
type summary struct {
	Observed
	goal string // the revision that clusters must have: Revision, or the one to which they are rolled back

	counts     v1alpha1.ClusterCounts
	at         map[string]int32 // the number of clusters by revision
	states     map[v1alpha1.ClusterState][]*Cluster
	lacking    group // clusters that lack content that they must have now
	unready    group // clusters that are not available
	unassigned group // clusters to which no revision can be assigned
	failed     group
	leaving    group
}

// group counts clusters, and contains the one that messages name.
type group struct {
	n     int
	first *Cluster
	state v1alpha1.ClusterState
}

func (g *group) add(c *Cluster, state v1alpha1.ClusterState) {
	g.n++
	if g.first == nil || cmp.Or(cmp.Compare(slices.Index(order[:], state), slices.Index(order[:], g.state)),
		strings.Compare(c.Name, g.first.Name)) < 0 {
		g.first, g.state = c, state
	}
}

func (s *summary) count() {
	s.at, s.states = map[string]int32{}, map[v1alpha1.ClusterState][]*Cluster{}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		if s.Deleting || !c.Chosen {
			if len(c.Works) > 0 {
				s.counts.Leaving++
				s.states[v1alpha1.ClusterLeaving] = append(s.states[v1alpha1.ClusterLeaving], c)
				s.leaving.add(c, v1alpha1.ClusterLeaving)
			}
			continue
		}
		health := c.Health()
		state := c.state(s.goal, health)
		s.states[state] = append(s.states[state], c)
		s.at[c.Revision]++
		s.counts.Total++
		if c.applied() {
			s.counts.Applied++
		}
		if health == rollout.Succeeded {
			s.counts.Available++
		} else {
			s.unready.add(c, state)
		}
		if c.lacks(s.goal) {
			s.lacking.add(c, state)
		}
		switch state {
		case v1alpha1.ClusterFailed:
			s.counts.Failed++
			s.failed.add(c, state)
		case v1alpha1.ClusterUnknown:
			s.counts.Unknown++
		}
		if c.Problem != "" {
			s.unassigned.add(c, state)
		}
	}
	if s.Revision != "" {
		s.counts.Updated = s.at[s.Revision]
	}
}

// clusters returns the listed clusters, and the number of the others.
func (s *summary) clusters() (listed []v1alpha1.ClusterSummary, omitted int32) {
	all := s.counts.Total + s.counts.Leaving
	for _, state := range order {
		room := v1alpha1.MaxClusterSummaries - len(listed)
		some := s.states[state]
		if room == 0 || len(some) == 0 {
			continue
		}
		slices.SortFunc(some, func(a, b *Cluster) int { return strings.Compare(a.Name, b.Name) })
		for _, c := range some[:min(room, len(some))] {
			listed = append(listed, v1alpha1.ClusterSummary{
				Name: c.Name, State: state, Revision: bounded.Text(c.Revision, maxRevision), Replicas: c.Replicas,
				Message: s.clusterMessage(c, state),
			})
		}
	}
	return listed, all - int32(len(listed))
}

// maxRevisions is the maximum length of the history, as in the API.
const maxRevisions = 64

func (s *summary) revisions() []v1alpha1.RevisionSummary {
	history := slices.Clone(s.Revisions)
	slices.SortStableFunc(history, func(a, b v1alpha1.RevisionSummary) int {
		return cmp.Or(cmp.Compare(b.Number, a.Number), strings.Compare(a.Name, b.Name))
	})
	history = history[:min(len(history), maxRevisions)]
	for i := range history {
		history[i].Clusters = s.at[history[i].Name]
	}
	if len(history) == 0 {
		return nil // as the API returns it
	}
	return history
}

// reporting returns the clusters whose members report: those that are chosen and can be reached.
func (s *summary) reporting() []*Cluster {
	clusters := make([]*Cluster, 0, len(s.Clusters))
	for i := range s.Clusters {
		if c := &s.Clusters[i]; c.Chosen && c.Reachable && !s.Deleting {
			clusters = append(clusters, c)
		}
	}
	return clusters
}

// compareProblems sorts problems by severity: a problem that prevents others from being relevant is first.
func compareProblems(a, b Problem) int {
	return cmp.Or(cmp.Compare(severity(a), severity(b)), strings.Compare(a.Reason, b.Reason),
		strings.Compare(a.Message, b.Message))
}

func severity(p Problem) int {
	reasons := []string{
		v1alpha1.ReasonInvalid, v1alpha1.ReasonSelectionFailed, v1alpha1.ReasonSelectionEmpty,
		v1alpha1.ReasonRevisionNotFound, v1alpha1.ReasonPlacementNotFound,
		v1alpha1.ReasonNotAllowed, v1alpha1.ReasonOverrideFailed,
	}
	if i := slices.Index(reasons, p.Reason); i >= 0 {
		return i
	}
	return len(reasons)
}
