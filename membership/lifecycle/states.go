package lifecycle

// Record is the state that the agent persists, so that it survives a restart.
type Record struct {
	Claim        bool // it has a claim key, and a request made with it
	Registered   bool // it has a credential and knows its member
	Deregistered bool // the hub has answered that the member is deregistered
	Kept         bool // if deregistered or not registered: it left a MemberCluster that is kept, and may come back to it
	Out          bool // it has left for good, and only its own state remains to be removed
}

// JoinRequestState is the state of the agent's JoinRequest, as the agent observes it.
type JoinRequestState int

// The states of a JoinRequest, as an agent observes them.
const (
	JoinRequestNotAsked JoinRequestState = iota
	JoinRequestNoRequest
	JoinRequestUnreachable
	JoinRequestNotAskable   // the agent cannot make the request for a local reason
	JoinRequestNoCredential // there is no bootstrap credential, or it cannot be parsed
	JoinRequestRefused      // the hub refuses the bootstrap credential
	JoinRequestFull         // the hub's limit of requests is reached
	// the hub cannot accept the request: its format is invalid, or its namespace or resource does not exist
	JoinRequestUnfit
	JoinRequestPending
	JoinRequestHeld
	JoinRequestDifferentHub // the bootstrap credential belongs to a hub of which the agent is not a member
	JoinRequestDenied
	JoinRequestDeregistered     // the MemberCluster does not exist any more
	JoinRequestDeregisteredKept // the MemberCluster is kept
	JoinRequestIssued
)

// HubState is the result of reading the Membership.
type HubState int

// The results of reading the Membership.
const (
	HubNotAsked HubState = iota
	HubUnreachable
	HubRefused  // unauthorized or forbidden: withdrawn, expired or deregistered, which the response does not distinguish
	HubGone     // the read is allowed, and there is no Membership
	HubOther    // the read is allowed, and the Membership is another member's
	HubReplaced // the Membership has the agent's claim and another UID: its MemberCluster was created again
	HubSeen
)

// MemberState is the result of the agent's cleaners.
type MemberState int

// The states of a member during the clean-up.
const (
	MemberNotAsked MemberState = iota
	MemberDirty
	MemberClean
)

// RenewalState is the state of the renewal of a credential.
type RenewalState int

// The states of a renewal.
const (
	RenewalNone RenewalState = iota
	RenewalAsked
	RenewalAnswered
	RenewalRefused
)
