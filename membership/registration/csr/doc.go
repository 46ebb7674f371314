// Package csr authenticates members with client certificates that the hub's own control plane signs.
//
// The certificate is for a key whose private half never leaves the agent, and for one user, [User], without groups.
// Each certificate has a new key, which is not the claim key. The hub's [Issuer] creates a CertificateSigningRequest
// for the agent's request, approves it, waits for the signer kubernetes.io/kube-apiserver-client, reads the
// certificate and deletes the object. On a control plane without that signer, such as EKS, the error is [ErrNoSigner];
// use package token there.
//
// A certificate cannot be revoked before it expires. A member's access ends when its permissions are revoked. Its user
// name is never assigned to another agent.
package csr
