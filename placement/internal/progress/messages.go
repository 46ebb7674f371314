package progress

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/internal/bounded"
	"github.com/muster-sdk/muster/placement/rollout"
	"github.com/muster-sdk/muster/placement/v1alpha1"
)

const noClusters = "The placements have chosen no clusters."

// message returns the message for users: the problems, then the progress. It contains nothing that changes with time
// alone.
func (s *summary) message() string {
	parts := []string{s.wrong(), s.revisionMessage(), s.waiting(), s.goodbye()}
	if s.Deleting {
		parts = []string{s.wrong(), s.deletion()}
	}
	return bounded.Text(join(parts...), maxMessageLength)
}

// wrong returns a message about a problem that requires an action, and the remedy. Empty: there is none.
func (s *summary) wrong() string {
	switch {
	case len(s.Problems) > 0:
		return s.problem()
	case s.Deleting:
		return ""
	case s.Rollout.Phase == v1alpha1.PhaseFailed:
		return join("The rollout is halted.", limitMessage(s.Rollout.Message), s.example(),
			"The rollout continues when fewer clusters fail, or with another revision.")
	case s.halted():
		return join(limitMessage(s.Rollout.Message), s.example(),
			fmt.Sprintf("Revision %s is not tried again, but another one would be.", s.Revision))
	case s.untold.n > 0:
		return s.groupMessage(s.untold, fmt.Sprintf("%s cannot be told what to have", s.of(s.untold.n)))
	case s.failed.n > 0:
		return s.groupMessage(s.failed, fmt.Sprintf("%s failed", s.of(s.failed.n)))
	}
	return ""
}

// example returns the message of one of the failed clusters.
func (s *summary) example() string {
	if s.failed.n == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s", s.failed.first.Name, limitMessage(s.words(s.failed.first, v1alpha1.ClusterFailed)))
}

// revisionMessage returns a message about the progress of the clusters.
func (s *summary) revisionMessage() string {
	switch total := int(s.counts.Total); {
	case len(s.Problems) > 0 && (total == 0 || s.goal == "") || s.Rollout.Rollback != nil && s.halted():
		return "" // another part of the message contains it
	case total == 0:
		return noClusters
	case s.goal == "":
		return "There is no revision yet."
	case len(s.states[v1alpha1.ClusterAvailable]) < total:
	case total == 1:
		return fmt.Sprintf("1 cluster has revision %s, and all of it is ready.", s.goal)
	default:
		return fmt.Sprintf("All %d clusters have revision %s, and all of it is ready.", total, s.goal)
	}
	var parts []string
	for _, part := range []struct {
		state v1alpha1.ClusterState
		words string
	}{
		{v1alpha1.ClusterAvailable, "ready"},
		{v1alpha1.ClusterProgressing, "on the way"},
		{v1alpha1.ClusterPending, "waiting"},
		{v1alpha1.ClusterFailed, "failed"},
		{v1alpha1.ClusterUnknown, "out of reach"},
	} {
		if n := len(s.states[part.state]); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.words))
		}
	}
	revisionMessage := fmt.Sprintf("Revision %s is on %s: %s.", s.goal, s.of(int(s.at[s.goal])), strings.Join(parts, ", "))
	if late := int(s.Rollout.TimedOut); late > 0 {
		revisionMessage = join(revisionMessage, fmt.Sprintf("Not ready in time: %s.", clusters(late)))
	}
	return revisionMessage
}

// waiting returns what the rollout waits for, if it does not wait for clusters.
func (s *summary) waiting() string {
	switch s.Rollout.Phase {
	case v1alpha1.PhaseWaitingForApproval, v1alpha1.PhaseWaitingForTime, v1alpha1.PhaseSoaking:
		return limitMessage(s.Rollout.Message)
	case v1alpha1.PhasePaused:
		return "The rollout is paused."
	case v1alpha1.PhaseStopped:
		return "The rollout is stopped."
	}
	return ""
}

// goodbye returns a message about clusters whose Works are being removed.
func (s *summary) goodbye() string {
	if s.leaving.n == 0 {
		return ""
	}
	return s.groupMessage(s.leaving, fmt.Sprintf("Objects are still to be taken back from %s", clusters(s.leaving.n)))
}

func (s *summary) deletion() string {
	return join("The WorkSet is being deleted.", s.goodbye())
}

// groupMessage returns a message about a group that names its first cluster.
func (s *summary) groupMessage(g group, what string) string {
	which := g.first.Name
	if g.n > 1 {
		which = "first " + which
	}
	if words := s.words(g.first, g.state); words != "" {
		which += ": " + words
	}
	return limitMessage(what + ", " + which)
}

// words returns the problem of a cluster, or what the cluster waits for. Empty: neither.
func (s *summary) words(c *Cluster, state v1alpha1.ClusterState) string {
	return bounded.Text(s.reason(c, state), maxMessage)
}

func (s *summary) reason(c *Cluster, state v1alpha1.ClusterState) string {
	switch state {
	case v1alpha1.ClusterFailed:
		if c.Problem != "" {
			return c.Problem
		}
		return said(c.worst())
	case v1alpha1.ClusterUnknown:
		return cmp.Or(c.Waits, "The cluster cannot be reached.")
	case v1alpha1.ClusterLeaving:
		return leaving(c)
	case v1alpha1.ClusterPending:
		return blockedMessage(c.Hold)
	case v1alpha1.ClusterAvailable:
		return ""
	}
	switch {
	case c.Revision != s.goal || !c.Current:
		return cmp.Or(c.Waits, "Its Works are being written.")
	case !c.upToDate():
		return "Its agent has not reported on it yet."
	}
	return said(c.worst())
}

func leaving(c *Cluster) string {
	if !c.Reachable {
		return "The cluster cannot be reached."
	}
	for i := range c.Works {
		if w := &c.Works[i]; w.Deleting && w.Observed == w.Generation && w.Message != "" {
			return w.Message
		}
	}
	return "Its Works are being deleted."
}

// said returns the message of a Work. A Work without a message may be reported by an agent of another implementation.
func said(w *Work) string {
	switch {
	case w == nil:
		return ""
	case w.Message != "":
		return w.Message
	case w.Reason != "":
		return w.Reason + "."
	}
	return "Its agent does not say why."
}

func blockedMessage(reason rollout.HoldReason) string {
	switch reason {
	case rollout.HoldConcurrency:
		return "Waits until fewer clusters are on their way."
	case rollout.HoldOrder:
		return "Waits for those before it."
	case rollout.HoldApproval:
		return "Waits for an approval."
	case rollout.HoldTime:
		return "Waits for a time to pass."
	case rollout.HoldPaused:
		return "Waits, for the rollout is paused."
	case rollout.HoldStopped:
		return "Waits, for the rollout is stopped."
	case rollout.HoldFailures:
		return "Waits, for too many clusters have failed."
	}
	return fmt.Sprintf("Waits: %s.", reason)
}

func (s *summary) of(n int) string { return fmt.Sprintf("%d of %s", n, clusters(int(s.counts.Total))) }

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// join joins the sentences that are not empty.
func join(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(one string) bool { return one == "" }), " ")
}

// limitMessage returns a text with a full stop, so that another sentence can follow.
func limitMessage(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}
