package lifecycle

import "time"

// AddressObserved is what an agent knows of where its hub is. The agent has written down one address; the source of its bootstrap
// credential, which an administrator can change, may have another.
type AddressObserved struct {
	Now time.Time
	// Silent is since when nothing has answered as a hub does at the address that was written down; zero: the hub answers.
	Silent time.Time
	// Looked is when the source was last looked into; zero: not since the agent was started.
	Looked time.Time
	// Other is true when the source was looked into just now, and has another address.
	Other bool
	// There is what was just seen at that address, by the agent's own credential. HubSeen is the very Membership that the agent is of: one of
	// another UID, member or namespace is HubOther.
	There HubSight
}

// AddressAction is what an agent does about the address of its hub.
type AddressAction string

// The actions about an address.
const (
	// KeepAddress goes on with the address that was written down.
	KeepAddress AddressAction = "KeepAddress"
	// LookForAddress looks into the source of the bootstrap credential.
	LookForAddress AddressAction = "LookForAddress"
	// TryAddress reads the Membership at the other address by the agent's own credential, which is thereby shown to whoever is there.
	TryAddress AddressAction = "TryAddress"
	// TakeAddress writes the other address down, and uses it from now on.
	TakeAddress AddressAction = "TakeAddress"
)

// NextAddress decides what an agent does about the address of its hub, and why it keeps one though there is another. It is asked anew after
// each action but KeepAddress and TakeAddress, with what came of it.
//
// The source is looked into once when the agent starts and, while the hub does not answer, as often as that is looked for. The
// member stays who it is wherever the hub is: the agent goes where it finds the Membership that it is of, and nowhere else.
func NextAddress(o AddressObserved) (AddressAction, string) {
	switch o.There {
	case HubSeen:
		return TakeAddress, ""
	case HubOther, HubReplaced:
		return KeepAddress, "the Membership there is that of another member"
	case HubGone:
		return KeepAddress, "there is no Membership for the agent there"
	case HubRefused:
		return KeepAddress, "the agent's credential is refused there"
	case HubUnreachable:
		return KeepAddress, "it does not answer there either"
	default: // not looked
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
