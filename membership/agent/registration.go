package agent

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/membership/registration"
)

// Registration describes the member and the hub in the agent's record. It contains no secret.
type Registration struct {
	// Name of the MemberCluster, and UID of the last one that the agent registered.
	Name string
	UID  types.UID
	// ClusterID of the cluster.
	ClusterID string
	// Claim is the fingerprint of the agent's key, as in spec.claim of the MemberCluster.
	Claim string
	// HubID is the identity of the hub. Empty: the hub has not reported one yet.
	HubID string
	// HubEpoch is the highest epoch of the hub that the agent has observed.
	HubEpoch int64
	// Server is the URL of the hub.
	Server string
}

// ErrNotRegistered is the error of [ParseRegistration] for an agent that is not registered.
var ErrNotRegistered = errors.New("the agent is not registered with a hub")

// ParseRegistration reads the registration from the Secret in which an agent keeps its record; see [SecretStore]. The
// error wraps [ErrNotRegistered] if the agent is not registered, or its member has left or was deregistered. The error
// never quotes the Secret.
func ParseRegistration(secret *corev1.Secret) (*Registration, error) {
	r, err := parseRecord(secret.Data[recordKey])
	if err != nil {
		return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	if r.Member == nil || r.removalBegun() {
		return nil, fmt.Errorf("read Secret %s/%s: %w", secret.Namespace, secret.Name, ErrNotRegistered)
	}
	claim, err := registration.ParseClaimKey(r.ClaimKey)
	if err != nil {
		return nil, fmt.Errorf("read the claim key in Secret %s/%s: %w", secret.Namespace, secret.Name, err)
	}
	is := &Registration{
		Name: r.Member.Name, UID: r.Member.UID, ClusterID: r.ClusterID, Claim: claim.Fingerprint(), HubID: r.Member.HubID,
		Server: r.Member.Server,
	}
	if r.Hub != nil {
		is.HubEpoch = r.Hub.Epoch
	}
	return is, nil
}
