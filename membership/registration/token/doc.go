// Package token authenticates members with tokens of a ServiceAccount in their namespace on the hub, which every API
// server can issue.
//
// A token expires, which the API server enforces, and all tokens of a member become invalid when its ServiceAccount is
// deleted. Other clients with the same bootstrap credential can read the answer to a JoinRequest. Therefore the hub's
// [Issuer] seals each token with HPKE (RFC 9180) for a key that the agent's [Method] creates for one request and never
// reuses.
package token
