// Package identity lets members authenticate by credentials that they have already: of a cloud's workload
// identity, an OIDC issuer, a certificate authority of one's own. Nothing is issued. An administrator names the
// subject in spec.identity of the MemberCluster, because it is not for the agent to say who it is.
package identity
