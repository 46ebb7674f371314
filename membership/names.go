package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Names of the objects that every member has.
const (
	// MembershipName is the name of the Membership in a member's namespace.
	MembershipName = "self"
	// LeaseName is the name of the Lease that the agent renews in a member's namespace.
	LeaseName = "heartbeat"
	// AgentName is the name of the RoleBinding, and of the ServiceAccount where there is one, in a member's
	// namespace.
	AgentName = "muster-agent"
	// AgentClusterRole is the name of the one ClusterRole that all agents share.
	AgentClusterRole = "muster-agent"
	// BootstrapClusterRole is the name of the ClusterRole of those who may ask to join.
	BootstrapClusterRole = "muster-bootstrap"
	// RegistrationNamespace is the namespace of JoinTokens and JoinRequests unless an option says otherwise.
	RegistrationNamespace = "muster-registration"
	// ConnectionNamespace is the namespace of the Secrets by which the hub reaches members, unless an option says otherwise.
	ConnectionNamespace = "muster-connections"
	// HubConfigMap is the name of the ConfigMap in the registration namespace that has the hub's identity (key "id") and
	// its epoch (key "epoch"). Back it up with the hub: agents recognize their hub by the identity.
	HubConfigMap = "muster-hub"
	// HubIDKey and HubEpochKey are the keys of that ConfigMap.
	HubIDKey    = "id"
	HubEpochKey = "epoch"
	// Finalizer keeps a MemberCluster until its member has left.
	Finalizer = prefix + "leave"

	prefix = "membership.muster.dev/"
)

// Labels, annotations and taints that the hub sets.
const (
	// MemberLabel has the name of the member on every object that the hub makes for one.
	MemberLabel = prefix + "member"
	// JoinTokenLabel has the name of the JoinToken with which a MemberCluster was made.
	JoinTokenLabel = prefix + "join-token"
	// TombstoneLabel has a hash of the cluster ID. It is on each ConfigMap in the registration namespace that records that
	// a member left on request.
	TombstoneLabel = prefix + "left"
	// InstallRequestAnnotation of a MemberCluster has the hub install the agent again when its value, such as the time, is a new one.
	InstallRequestAnnotation = prefix + "install-requested-at"
	// TaintUnreachable is on a member whose heartbeats have stopped.
	TaintUnreachable = prefix + "unreachable"
	// TaintNotReady is on a member whose agent finds its cluster not ready.
	TaintNotReady = prefix + "not-ready"
)

// DefaultNamespacePrefix begins the name of a member's namespace unless an option says otherwise.
const DefaultNamespacePrefix = "member-"

// NamespaceFor returns the name of a member's namespace on the hub: prefix and name, or, where that is
// longer than the 63 characters that a namespace may have, its beginning and a hash of the whole.
func NamespaceFor(prefix, member string) string {
	const limit, hashed = 63, 10
	whole := prefix + member
	if len(whole) <= limit {
		return whole
	}
	sum := sha256.Sum256([]byte(whole))
	return strings.TrimRight(whole[:limit-hashed-1], "-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// ReservedLabel reports whether a label's key belongs to Kubernetes or to muster, so that no agent may ask for it.
func ReservedLabel(key string) bool {
	domain, _, qualified := strings.Cut(key, "/")
	if !qualified {
		return false
	}
	for _, reserved := range []string{"muster.dev", "kubernetes.io", "k8s.io"} {
		if domain == reserved || strings.HasSuffix(domain, "."+reserved) {
			return true
		}
	}
	return false
}
