// Package registration contains the registration of a cluster with a hub: the claim key, the signed JoinRequest, and
// the credential that results from it.
//
// # Registration of a cluster
//
// An administrator creates a JoinToken. Its Secret contains a [Bootstrap] for the agent. The agent creates a
// [ClaimKey], which distinguishes it from other agents of the same cluster, fills in a JoinRequest and calls [Sign].
// The hub calls [Verify], which trusts only that signature, and [VerifyToken], which verifies the JoinToken: an API
// server does not record the creator of a custom resource, so the request itself must contain the proof.
//
// A [Method] determines the request of the agent, and a membership.Issuer the credential that the hub issues. There is
// a pair of them for each type of credential:
// A [Method] determines what the agent requests, and a membership.Issuer what the hub issues. There is a pair of them
// for each type of credential:
//
//   - csr: a client certificate for a new key, signed by the hub's own control plane.
//   - token: an expiring token of a ServiceAccount, sealed so that only the requesting agent can read it.
//   - identity: no credential, for agents that already have one.
//
// A first credential and its renewal are requested and opened in the same way. Only the object that contains them
// differs: the JoinRequest for the first credential, and the Membership for a renewal. Package jointoken manages
// JoinTokens.
//
// A renewal is signed with the claim key as well ([SignRenewal], [VerifyRenewal]): a stolen credential is valid until
// it expires, or until its member's acceptance is withdrawn, and cannot be renewed without the key.
//
// An agent replaces its claim key with later keys. Its requests prove the last ones as well ([ProvenKeys]), and the
// hub requires the newest one that it has observed; see package lifecycle. Therefore a copy of the keys of an agent is
// refused after the agent has replaced them.
//
// # Value of a stolen bootstrap credential
//
// It permits creating JoinRequests and reading one whose name is known, and nothing else ([BootstrapRole]). A
// credential in an answer can be used only with a key that its agent never sends.
package registration
