package clusterapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// cluster is the observed state of a Cluster.
type cluster struct {
	namespace, name string
	uid             types.UID
	deleting        bool // its deletion was requested
}

// source returns the value of ClusterAnnotation.
func (c cluster) source() string { return c.namespace + "/" + c.name + "/" + string(c.uid) }

// member is the observed state of a MemberCluster.
type member struct {
	source   string // ClusterAnnotation
	deleting bool
}

type step string

const (
	nothing step = "nothing"
	create  step = "create"
	leave   step = "leave"
	// report creates an Event of the Cluster.
	report step = "report"
)

// action is an action of the importer for a Cluster.
type action struct {
	step    step
	reason  string // of the Event
	message string
}

// reasonNameTaken is the reason of the Event about a MemberCluster that the importer does not change.
const reasonNameTaken = "NameTaken"

// decide decides on one Cluster. A nil pointer is an object that does not exist. A missing Cluster changes nothing.
func decide(c *cluster, m *member, leaveDeleted bool) action {
	switch {
	case c == nil:
		return action{step: nothing}
	case m == nil && c.deleting:
		return action{step: nothing}
	case m == nil:
		return action{step: create}
	case m.source == c.source():
		if c.deleting && leaveDeleted && !m.deleting {
			return action{step: leave}
		}
		return action{step: nothing}
	case c.deleting:
		return action{step: nothing}
	default:
		return action{step: report, reason: reasonNameTaken, message: fmt.Sprintf("MemberCluster %s was not created for "+
			"this Cluster, so it stays as it is and the Cluster is not imported. If the MemberCluster is of another cluster, "+
			"rename the Cluster. If it is not used any more, delete the MemberCluster.",
			memberName(c.namespace, c.name))}
	}
}

// maxName is the maximum length of a name that is also the value of a label.
const maxName = 63

// memberName returns the name of the MemberCluster of a Cluster. It is "<namespace>-<name>" or, if that is not a DNS
// label, a part of it and a hash.
func memberName(namespace, name string) string {
	joined := namespace + "-" + name
	if len(joined) <= maxName && !strings.Contains(joined, ".") {
		return joined
	}
	sum := sha256.Sum256([]byte(namespace + "/" + name))
	joined = strings.ReplaceAll(joined[:min(len(joined), maxName-9)], ".", "-")
	return joined + "-" + hex.EncodeToString(sum[:4])
}
