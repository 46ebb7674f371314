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
	parts := []string{s.failureMessage(), s.revisionMessage(), s.waitingMessage(), s.leavingMessage()}
	if s.Deleting {
		parts = []string{s.failureMessage(), s.deletionMessage()}
	}
	return bounded.Text(join(parts...), maxMessageLength)
}

// failureMessage returns a message about a problem that requires an action, and the remedy. Empty: there is none.
func (s *summary) failureMessage() string {
	switch {
	case len(s.Problems) > 0:
		return s.problemMessage()
	case s.Deleting:
		return ""
	case s.Rollout.Phase == v1alpha1.PhaseFailed:
		return join("The rollout is halted.", limitMessage(s.Rollout.Message), s.example(),
			"The rollout continues when fewer clusters fail, or with another revision.")
	case s.halted():
		return join(limitMessage(s.Rollout.Message), s.example(),
			fmt.Sprintf("Revision %s is not retried. Change the WorkSet to roll out another revision.", s.Revision))
	case s.unassigned.n > 0:
		return s.groupMessage(s.unassigned, fmt.Sprintf("No revision can be assigned to %s", s.of(s.unassigned.n)))
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
	message := s.clusterMessage(s.failed.first, v1alpha1.ClusterFailed)
	return fmt.Sprintf("%s: %s", s.failed.first.Name, limitMessage(message))
}

// revisionMessage returns a message about the progress of the clusters.
func (s *summary) revisionMessage() string {
	switch total := int(s.counts.Total); {
	case len(s.Problems) > 0 && (total == 0 || s.goal == "") || s.Rollout.Rollback != nil && s.halted():
		return "" // another part of the message contains it
	case total == 0:
		return noClusters
	case s.goal == "":
		return "The WorkSet has no revision yet."
	case len(s.states[v1alpha1.ClusterAvailable]) < total:
	case total == 1:
		return fmt.Sprintf("Revision %s is available on 1 cluster.", s.goal)
	default:
		return fmt.Sprintf("Revision %s is available on all %d clusters.", s.goal, total)
	}
	var parts []string
	for _, part := range []struct {
		state v1alpha1.ClusterState
		label string
	}{
		{v1alpha1.ClusterAvailable, "available"},
		{v1alpha1.ClusterProgressing, "progressing"},
		{v1alpha1.ClusterPending, "pending"},
		{v1alpha1.ClusterFailed, "failed"},
		{v1alpha1.ClusterUnknown, "unreachable"},
	} {
		if n := len(s.states[part.state]); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, part.label))
		}
	}
	message := fmt.Sprintf("Revision %s is assigned to %s: %s.", s.goal, s.of(int(s.at[s.goal])),
		strings.Join(parts, ", "))
	if late := int(s.Rollout.TimedOut); late > 0 {
		message = join(message, fmt.Sprintf("Progress deadline exceeded on %s.", clusters(late)))
	}
	return message
}

// waitingMessage returns what the rollout waits for, if it does not wait for clusters.
func (s *summary) waitingMessage() string {
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

// leavingMessage returns a message about clusters whose Works are being removed.
func (s *summary) leavingMessage() string {
	if s.leaving.n == 0 {
		return ""
	}
	return s.groupMessage(s.leaving, fmt.Sprintf("Objects are being removed from %s", clusters(s.leaving.n)))
}

func (s *summary) deletionMessage() string {
	return join("The WorkSet is being deleted.", s.leavingMessage())
}

// groupMessage returns a message about a group that names its first cluster.
func (s *summary) groupMessage(g group, what string) string {
	which := g.first.Name
	if g.n > 1 {
		which = "first " + which
	}
	if message := s.clusterMessage(g.first, g.state); message != "" {
		which += ": " + message
	}
	return limitMessage(what + ", " + which)
}

// clusterMessage returns the problem of a cluster, or what the cluster waits for. Empty: neither.
func (s *summary) clusterMessage(c *Cluster, state v1alpha1.ClusterState) string {
	return bounded.Text(s.reason(c, state), maxMessage)
}

func (s *summary) reason(c *Cluster, state v1alpha1.ClusterState) string {
	switch state {
	case v1alpha1.ClusterFailed:
		if c.Problem != "" {
			return c.Problem
		}
		return workMessage(c.worst())
	case v1alpha1.ClusterUnknown:
		return cmp.Or(c.Waits, "The cluster is unreachable.")
	case v1alpha1.ClusterLeaving:
		return leavingReason(c)
	case v1alpha1.ClusterPending:
		return blockedMessage(c.Hold)
	case v1alpha1.ClusterAvailable:
		return ""
	}
	switch {
	case c.Revision != s.goal || !c.Current:
		return cmp.Or(c.Waits, "The Works are being written.")
	case !c.upToDate():
		return "The agent has not reported on the Works yet."
	}
	return workMessage(c.worst())
}

func leavingReason(c *Cluster) string {
	if !c.Reachable {
		return "The cluster is unreachable."
	}
	for i := range c.Works {
		if w := &c.Works[i]; w.Deleting && w.Observed == w.Generation && w.Message != "" {
			return w.Message
		}
	}
	return "The Works are being deleted."
}

// workMessage returns the message of a Work. A Work without a message may be reported by an agent of another
// implementation.
func workMessage(w *Work) string {
	switch {
	case w == nil:
		return ""
	case w.Message != "":
		return w.Message
	case w.Reason != "":
		return w.Reason + "."
	}
	return "The agent reported no message."
}

func blockedMessage(reason rollout.HoldReason) string {
	switch reason {
	case rollout.HoldConcurrency:
		return "Waiting until fewer clusters are being updated."
	case rollout.HoldOrder:
		return "Waiting for clusters that are earlier in the order of the rollout."
	case rollout.HoldApproval:
		return "Waiting for an approval of the stage."
	case rollout.HoldTime:
		return "Waiting until the waitSeconds of the stage have passed."
	case rollout.HoldPaused:
		return "Waiting: the rollout is paused."
	case rollout.HoldStopped:
		return "Waiting: the rollout is stopped."
	case rollout.HoldFailures:
		return "Waiting: too many clusters have failed."
	}
	return fmt.Sprintf("Waiting: %s.", reason)
}

func (s *summary) of(n int) string { return fmt.Sprintf("%d of %s", n, clusters(int(s.counts.Total))) }

func clusters(n int) string {
	if n == 1 {
		return "1 cluster"
	}
	return fmt.Sprintf("%d clusters", n)
}

// join joins the parts that are not empty.
func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(one string) bool { return one == "" }), " ")
}

// limitMessage returns a text with a full stop, so that another sentence can follow.
func limitMessage(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}
