// Package identity authenticates members with credentials that they already have: of a cloud's workload identity, an
// OIDC issuer, or another certificate authority. The hub issues no credential. An administrator sets the subject in
// spec.identity of the MemberCluster, because an agent must not choose its own identity.
//
// An agent with a [Source] joins without a JoinToken of an administrator. While the member has not joined, the hub
// maintains a JoinToken for it, and a Role with which only the subject in spec.identity can read its Secret. The API
// server authenticates the subject; a field of a JoinRequest could not, because an object does not show which user
// created it. When the agent has joined, the hub deletes the JoinToken. A change of spec.identity before that replaces
// the JoinToken, because the earlier subject may have read the Secret. While a member with an identity has not joined,
// the hub compares these objects once a minute; a member that has joined causes no requests.
package identity
