// Package attack tests the possible damage by an attacker with one stolen part: the bootstrap credential of a
// JoinToken, the credential of an agent, the roles of a tenant, or the API server of a member. Each test runs a
// complete hub, with the roles of deploy/hub and the ServiceAccount of the hub, on a control plane. Attacks that a
// single package prevents are tested in that package. The chapter Attacks of docs/security.md lists all of them.
package attack
