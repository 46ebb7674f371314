// Package token lets members authenticate by tokens of a ServiceAccount in their namespace on the hub, which
// every API server can issue.
//
// A token expires, which the API server itself sees to, and all tokens of a member end when its
// ServiceAccount is deleted. Because the answer to a JoinRequest can be read by others who hold the
// same bootstrap credential, the hub's [Issuer] seals each token by HPKE (RFC 9180) to a key that the agent's [Method]
// makes for one request and never reuses.
package token
