package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Names of the objects of every member.
const (
	// MembershipName is the name of the Membership in a member's namespace.
	MembershipName = "self"
	// LeaseName is the name of the Lease that the agent renews in a member's namespace.
	LeaseName = "heartbeat"
	// AgentName is the name of the RoleBinding, and of the ServiceAccount if there is one, in a member's namespace.
	AgentName = "muster-agent"
	// AgentClusterRole is the name of the ClusterRole that all agents share.
	AgentClusterRole = "muster-agent"
	// BootstrapClusterRole is the name of the ClusterRole of bootstrap credentials.
	BootstrapClusterRole = "muster-bootstrap"
	// RegistrationNamespace is the default namespace of JoinTokens and JoinRequests.
	RegistrationNamespace = "muster-registration"
	// ConnectionNamespace is the default namespace of the Secrets by which the hub reaches members.
	ConnectionNamespace = "muster-connections"
	// HubConfigMap is the name of the ConfigMap in the registration namespace that contains the identity of the hub (key
	// "id") and its epoch (key "epoch"). Back it up with the hub: agents recognize their hub by the identity.
	HubConfigMap = "muster-hub"
	// HubIDKey and HubEpochKey are the keys of HubConfigMap.
	HubIDKey    = "id"
	HubEpochKey = "epoch"
	// Finalizer keeps a MemberCluster until its member has left.
	Finalizer = prefix + "leave"

	prefix = "membership.muster.dev/"
)

// Labels, annotations and taints that the hub sets.
const (
	// MemberLabel is the name of the member, on every object that the hub creates for it.
	MemberLabel = prefix + "member"
	// JoinTokenLabel is the name of the JoinToken with which a MemberCluster was created.
	JoinTokenLabel = prefix + "join-token"
	// TombstoneLabel is a hash of the cluster ID, on each ConfigMap in the registration namespace that records that a
	// member left on request.
	TombstoneLabel = prefix + "left"
	// InstallRequestAnnotation of a MemberCluster requests another installation of the agent when its value, for example a
	// time, changes.
	InstallRequestAnnotation = prefix + "install-requested-at"
	// TaintUnreachable is the taint of a member whose heartbeats have stopped.
	TaintUnreachable = prefix + "unreachable"
	// TaintNotReady is the taint of a member whose agent reports that the cluster is not ready.
	TaintNotReady = prefix + "not-ready"
)

// DefaultNamespacePrefix is the default prefix of the names of member namespaces.
const DefaultNamespacePrefix = "member-"

// NamespaceFor returns the name of a member's namespace on the hub: prefix and name or, if this is longer than the
// maximum of 63 characters, its beginning and a hash of both.
func NamespaceFor(prefix, member string) string {
	const limit, hashed = 63, 10
	whole := prefix + member
	if len(whole) <= limit {
		return whole
	}
	sum := sha256.Sum256([]byte(whole))
	return strings.TrimRight(whole[:limit-hashed-1], "-") + "-" + hex.EncodeToString(sum[:])[:hashed]
}

// ReservedLabel reports whether a label key belongs to Kubernetes or muster, so that agents must not request it.
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
