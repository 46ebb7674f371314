package lifecycle

import "time"

// AddressObserved is the agent's observation of the address of its hub. The agent has recorded one address. The source
// of its bootstrap credential, which an administrator can change, may contain another.
type AddressObserved struct {
	Now time.Time
	// Silent is the time since which no hub has responded at the recorded address; zero: the hub responds.
	Silent time.Time
	// Looked is the time at which the agent last read the source; zero: not since the agent started.
	Looked time.Time
	// Other is true if the agent read the source in this round, and the source contains another address.
	Other bool
	// There is the result of reading the Membership at the other address with the member's credential in this round.
	// HubSeen is exactly the agent's Membership: a Membership with another UID, member or namespace is HubOther.
	There HubState
}

// AddressAction is an action of an agent for the address of its hub.
type AddressAction string

// The actions for an address.
const (
	// KeepAddress keeps the recorded address.
	KeepAddress AddressAction = "KeepAddress"
	// LookForAddress reads the source of the bootstrap credential.
	LookForAddress AddressAction = "LookForAddress"
	// TryAddress reads the Membership at the other address with the member's credential. The server at that address
	// receives the credential.
	TryAddress AddressAction = "TryAddress"
	// TakeAddress records the other address and uses it from now on.
	TakeAddress AddressAction = "TakeAddress"
)

// NextAddress decides the next action for the address of the hub. If the agent keeps its address although there is
// another one, NextAddress also returns the reason. The agent calls it again after each action except KeepAddress and
// TakeAddress, with the result of the action.
//
// The agent reads the source once when it starts and, while the hub does not respond, whenever it retries the hub. The
// address does not change the identity of the member: the agent uses another address only if it finds its own
// Membership there.
func NextAddress(o AddressObserved) (AddressAction, string) {
	switch o.There {
	case HubSeen:
		return TakeAddress, ""
	case HubOther, HubReplaced:
		return KeepAddress, "the Membership there belongs to another member"
	case HubGone:
		return KeepAddress, "there is no Membership for the agent there"
	case HubRefused:
		return KeepAddress, "the agent's credential is refused there"
	case HubUnreachable:
		return KeepAddress, "the hub does not respond there either"
	default: // not observed
	}
	switch {
	case o.Other:
		return TryAddress, ""
	case o.Looked.IsZero():
		return LookForAddress, ""
	case o.Silent.IsZero() || o.Now.Sub(o.Looked) < growing(RetryPoll, o.Silent, o.Now):
		return KeepAddress, ""
	default:
		return LookForAddress, ""
	}
}
