// Package registration contains the registration of a cluster with a hub: the claim key, the signed JoinRequest, and
// the credential that results from it.
//
// # From nothing to a credential
//
// An administrator creates a JoinToken. Its Secret contains a [Bootstrap] for the agent. The agent creates a
// [ClaimKey], which distinguishes it from other agents of the same cluster, fills in a JoinRequest and calls [Sign].
// The hub calls [Verify], which trusts nothing but that signature, and [VerifyToken], which proves the JoinToken: an
// API server does not record the creator of a custom resource, so the request itself must contain the proof.
//
// A [Method] determines what the agent requests, and a membership.Issuer what the hub issues. There is a pair of them
// for each type of credential:
//
//   - csr: a client certificate for a new key, signed by the hub's own control plane.
//   - token: an expiring token of a ServiceAccount, sealed so that only the requesting agent can read it.
//   - identity: nothing, for agents that have a credential of their own.
//
// A first credential and its renewal are requested and opened in the same way; only the object that carries them
// differs (a JoinRequest; afterwards the Membership). Package jointoken manages JoinTokens.
//
// A renewal is signed with the claim key as well ([SignRenewal], [VerifyRenewal]): a stolen credential ends when it
// expires, or when its member's acceptance is withdrawn, and cannot be renewed without the key.
//
// An agent replaces its claim key with later keys. Its requests prove the last ones as well ([ProvenKeys]), and the hub
// requires the newest one that it has seen, see package lifecycle. So a copy of the keys of an agent is refused after
// the agent has replaced them.
//
// # Value of a stolen bootstrap credential
//
// It can create JoinRequests and read one whose name is known, and nothing else ([BootstrapRole]). Every credential in
// an answer is usable only with a key that never left its agent.
package registration
