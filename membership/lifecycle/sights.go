package lifecycle

// Record is what the agent has written down, so that it survives a restart.
type Record struct {
	Claim        bool // it has a claim key, and a request made with it
	Registered   bool // it has a credential, and knows its member
	Deregistered bool // the hub has said that it does not know the member
	Kept         bool // if deregistered, or not registered: it left a MemberCluster that is kept, and may come back to it
	Out          bool // it has left for good, and only its own traces remain
}

// DoorSight is what an agent sees at the door.
type DoorSight int

// What can be seen at the door.
const (
	DoorNotAsked DoorSight = iota
	DoorNoRequest
	DoorUnreachable
	DoorNotAskable   // what it takes to ask is not to be had on the agent's own side
	DoorNoCredential // there is no bootstrap credential, or nothing that could be one
	DoorRefused      // the bootstrap credential does not work
	DoorFull         // the hub has as many requests as it takes
	DoorUnfit        // the hub cannot take the request: it is not of its form, or there is no place for it
	DoorPending
	DoorHeld
	DoorDifferentHub // the bootstrap credential is that of a hub which the agent is not a member of
	DoorDenied
	DoorDeregistered     // and the MemberCluster is gone
	DoorDeregisteredKept // and the MemberCluster is kept
	DoorIssued
)

// HubSight is what an agent sees when it reads its Membership.
type HubSight int

// What can be seen of the hub.
const (
	HubNotAsked HubSight = iota
	HubUnreachable
	HubRefused  // unauthorized or forbidden: withdrawn, expired or deregistered, and no telling which
	HubGone     // allowed to look, and there is no Membership
	HubOther    // allowed to look, and the Membership is that of another member
	HubReplaced // the Membership has the agent's claim and another UID: its MemberCluster was created again
	HubSeen
)

// MemberState is what the agent's cleaners say of the member.
type MemberState int

// The states of a member that is being cleaned.
const (
	MemberNotAsked MemberState = iota
	MemberDirty
	MemberClean
)

// RenewalState is where the renewal of a credential stands.
type RenewalState int

// The states of a renewal.
const (
	RenewalNone RenewalState = iota
	RenewalAsked
	RenewalAnswered
	RenewalRefused
)
