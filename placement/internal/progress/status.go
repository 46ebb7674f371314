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

// Observed is what is known of a WorkSet.
type Observed struct {
	// Generation of the WorkSet that all this is about.
	Generation int64
	// Revision that all clusters are to have in the end. Empty: there is none yet.
	Revision string
	// Revisions that there are, in any order. Their Clusters are counted here.
	Revisions []v1alpha1.RevisionSummary
	// Objects is how many the revision has.
	Objects int
	// Rollout is the status of the last plan. It is passed on as it is, and told of if it is about the revision.
	Rollout v1alpha1.RolloutStatus
	// Clusters in any order, each once.
	Clusters []Cluster
	// Problems of the WorkSet as a whole, in any order.
	Problems []Problem
	// Deleting says that the deletion of the WorkSet has begun: all clusters are to be left.
	Deleting bool
	// Before is the status as it is: a condition that stays as it is keeps its time.
	Before v1alpha1.WorkSetStatus
	// Now is the time of what changes. It must not be zero.
	Now time.Time
}

// Problem is one of the WorkSet as a whole. The Reason is one of those of the conditions, such as
// [v1alpha1.ReasonInvalid]; the Message is a sentence that says what to do.
type Problem struct{ Reason, Message string }

// Status is what is to be said of a WorkSet. It changes nothing of what it is given, and may share it.
//
// As long as nothing but Now and Before changes, and Before is what was said last, it says the same again, so that
// equality.Semantic.DeepEqual tells whether it is to be written.
func Status(o Observed) v1alpha1.WorkSetStatus {
	s := &summary{Observed: o, goal: o.Revision}
	switch {
	case o.Rollout.Revision != o.Revision:
		s.Rollout = v1alpha1.RolloutStatus{} // what has become of another one says nothing about this
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
		Feedback:           sumUp(s.heard()),
		Conditions:         s.conditions(),
	}
	status.Clusters, status.OmittedClusters = s.clusters()
	return trim(status)
}

// order of the states of clusters: who most wants to be looked at comes first.
var order = [...]v1alpha1.ClusterState{
	v1alpha1.ClusterFailed, v1alpha1.ClusterUnknown, v1alpha1.ClusterLeaving,
	v1alpha1.ClusterProgressing, v1alpha1.ClusterPending, v1alpha1.ClusterAvailable,
}

// summary sums up the clusters of a WorkSet.
type summary struct {
	Observed
	goal string // the revision that clusters are to have: Revision, or the one that they are taken back to

	counts  v1alpha1.ClusterCounts
	at      map[string]int32 // how many clusters are at a revision
	states  map[v1alpha1.ClusterState][]*Cluster
	lacking group // those that have not all that they are to have by now
	unready group // those that are not available
	untold  group // those that cannot be told
	failed  group
	leaving group
}

// group counts clusters, and has the one to tell of.
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
			s.untold.add(c, state)
		}
	}
	if s.Revision != "" {
		s.counts.Updated = s.at[s.Revision]
	}
}

// clusters tells of some, and how many more there are.
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
				Message: s.words(c, state),
			})
		}
	}
	return listed, all - int32(len(listed))
}

// maxRevisions bounds the history as the API does.
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
		return nil // as it comes back from the API
	}
	return history
}

// heard is the clusters whose members report: those that are chosen and can be reached.
func (s *summary) heard() []*Cluster {
	heard := make([]*Cluster, 0, len(s.Clusters))
	for i := range s.Clusters {
		if c := &s.Clusters[i]; c.Chosen && c.Reachable && !s.Deleting {
			heard = append(heard, c)
		}
	}
	return heard
}

// compareProblems puts first what keeps others from mattering.
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
