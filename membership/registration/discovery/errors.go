package discovery

import "errors"

// What can be wrong with a hub, to be told by errors.Is. Options that cannot be are a membership.InvalidError. No error
// quotes a token's secret. Only [ErrUnreachable] and [ErrUnknownToken] may pass by themselves.
var (
	// ErrUnreachable: nobody answers in time at that address, or answers that it cannot now.
	ErrUnreachable = errors.New("the hub cannot be reached")
	// ErrNotAHub: whoever answers shows no cluster-info.
	ErrNotAHub = errors.New("there is no hub to be discovered")
	// ErrUnknownToken: the hub has not signed with the token. It was mistyped, has ended, is not for signing, or is so new that the
	// hub is about to: that takes a second or two.
	ErrUnknownToken = errors.New("the hub does not know the token")
	// ErrWrongSignature: it was signed with another token of the same ID. It was mistyped, or somebody pretends to be the hub.
	ErrWrongSignature = errors.New("the hub does not prove that it knows the token")
	// ErrNoPins: no hash of a CA was given, and that was not declared to be safe enough.
	ErrNoPins = errors.New("no hash of the hub's CA is given")
	// ErrWrongPin: the CA is none of those that are pinned. It was mistyped, or somebody who knows the token pretends to be the hub.
	ErrWrongPin = errors.New("the hub's CA is not the one that is pinned")
	// ErrUntrusted: who answers cannot show a certificate of the hub's CA for that address, or said something else before.
	ErrUntrusted = errors.New("who answers is not the hub that cluster-info is of")
	// ErrPublished: the hub has published something else than it is to publish now.
	ErrPublished = errors.New("something else is published already")
)
