// Package registration has what gets a cluster through the one door of a hub: the claim key, the signed
// JoinRequest, and the credential that comes of it.
//
// # From nothing to a credential
//
// An administrator makes a JoinToken. Its Secret holds a [Bootstrap], which the agent takes as is. The
// agent makes a [ClaimKey], which from then on tells it from every other program that might speak for
// the same cluster, puts what it wants into a JoinRequest and calls [Sign]. The hub calls [Verify], which
// trusts nothing but that signature, and [VerifyToken], which proves the JoinToken: an API server does not record who
// created an object of a custom resource, so the request itself has to say.
//
// What the agent asks for is up to a [Method], and what the hub gives to a membership.Issuer. There is a
// pair of them for each type of credential:
//
//   - csr: a client certificate for the claim key, signed by the hub's own control plane.
//   - token: an expiring token of a ServiceAccount, sealed so that only the asking agent can read it.
//   - identity: nothing, for agents that have a credential of their own.
//
// A first credential and its renewal are asked for and opened in the same way; only the object that
// carries them differs (a JoinRequest; afterwards the Membership). Package jointoken keeps JoinTokens.
//
// A renewal is signed by the claim key as well ([SignRenewal], [VerifyRenewal]): a credential that was stolen ends when its
// time is over, or as soon as its member's acceptance is withdrawn, and gets its thief no other.
//
// # What a stolen bootstrap credential is worth
//
// It can create JoinRequests and read one whose name it knows, no more ([BootstrapRole]). Every credential
// in an answer is of use only with a key that never left its agent.
package registration
