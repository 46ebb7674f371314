// Package identity authenticates members with credentials that they already have: of a cloud's workload identity, an
// OIDC issuer, or another certificate authority. Nothing is issued. An administrator sets the subject in spec.identity
// of the MemberCluster, because an agent must not choose its own identity.
package identity
