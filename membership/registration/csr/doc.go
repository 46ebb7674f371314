// Package csr lets members authenticate by client certificates, which the hub's own control plane signs.
//
// The certificate is for the agent's claim key, whose private half never leaves the agent, and names one
// user, [User], who is in no group. The hub's [Issuer] files the agent's request as a
// CertificateSigningRequest, approves it, waits for the signer kubernetes.io/kube-apiserver-client, takes
// the certificate and deletes the object. A control plane without that signer (EKS has none) gives
// [ErrNoSigner]; there, use package token.
//
// A certificate cannot be taken back before it expires. What ends a member's access is that its permissions
// are withdrawn; its user name is never given to another agent.
package csr
