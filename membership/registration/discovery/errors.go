package discovery

import "errors"

// Errors of [Discover] and [Publish], for errors.Is. Invalid options are a membership.InvalidError. No error quotes a
// token's secret. Only [ErrUnreachable] and [ErrUnknownToken] may be temporary.
var (
	// ErrUnreachable: the server at that address does not respond in time, or responds that it is temporarily unavailable.
	ErrUnreachable = errors.New("the hub cannot be reached")
	// ErrNotAHub: the server at that address does not provide cluster-info.
	ErrNotAHub = errors.New("there is no hub to be discovered")
	// ErrUnknownToken: the hub has not signed with the token. The token was mistyped, has expired, is not for signing, or
	// is so new that the hub has not signed with it yet, which takes a second or two.
	ErrUnknownToken = errors.New("the hub does not know the token")
	// ErrWrongSignature: cluster-info was signed with another token of the same ID. The token was mistyped, or another
	// server impersonates the hub.
	ErrWrongSignature = errors.New("the hub does not prove that it knows the token")
	// ErrNoPins: no hash of a CA is set, and neither is UnsafeSkipCAVerification.
	ErrNoPins = errors.New("no hash of the hub's CA is given")
	// ErrWrongPin: the CA is not pinned. The hash was mistyped, or a server that knows the token impersonates the hub.
	ErrWrongPin = errors.New("the hub's CA is not the one that is pinned")
	// ErrUntrusted: the server has no certificate of the hub's CA for that address, or responded with other content
	// before.
	ErrUntrusted = errors.New("the server at this address is not the hub of cluster-info")
	// ErrPublished: the hub has published other content already.
	ErrPublished = errors.New("other content is published already")
)
