// Package registration grants and revokes the access of add-on agents to the hub.
//
// A [Registrar] reconciles the access of one agent and returns its state: [Registrar.Ensure] while the add-on is
// desired, and [Registrar.Revoke] when it is removed. [Registrar.Renew] maintains the existing access while the desired
// access is unknown. The controller of MemberAddons calls these methods.
//
// # Objects
//
// For the add-on x of a member whose namespace is member-a:
//
//	object           namespace/name                         purpose
//	Role             member-a/addon-x                       the requested rules, and get, update and patch of its Lease
//	RoleBinding      member-a/addon-x                       binds the Role to one subject
//	Lease            member-a/x                             for health type Lease; created for the agent, which cannot create Leases
//	ServiceAccount   member-a/addon-x                       for credential Token
//	Secret           muster-registration/member-a.x         the credential
//
// All objects have the label addon.muster.dev/addon. The MemberAddon owns those in the member's namespace. An existing
// object without the label is not adopted, and is reported as a problem. The only cluster-scoped object is a
// CertificateSigningRequest, for some seconds.
//
// The credential is stored in a Secret on the hub in addition to the Work that delivers it, because it must survive a
// restart of the hub, and the key of a certificate must exist before the certificate. The Secret is not in the member's
// namespace, so that no rules of an agent apply to it and the hub needs no permissions for Secrets of other namespaces.
//
// # Identity
//
//   - With a token: the ServiceAccount addon-x in the member's namespace.
//   - With a certificate: the user muster:addon:member-a:x:, followed by the fingerprint of its key. The user is in no
//     group.
//
// No part of a name can contain the separator, and RBAC compares complete names, so names are unique. The subject is in
// [Result].Status. An administrator can bind further roles to it.
//
// # Permissions of the agent
//
// The Role grants permissions in the member's namespace only. [ValidateRules] rejects rules that let an agent leave its
// confinement, also if a "*" covers them:
//
//   - works of work.muster.dev: all verbs. Works contain the credentials of other add-ons, and their contents run on
//     the member.
//   - all other groups of muster: all verbs except get, list and watch; a WorkSet, for example, reaches other members.
//   - roles, rolebindings, serviceaccounts and their tokens, and the namespace itself: all verbs except get, list and
//     watch.
//   - secrets: all verbs except get, list and watch with resourceNames. A user who can create a Secret can obtain the
//     token of any ServiceAccount.
//   - pods and kinds that create pods (apps, batch, replicationcontrollers): all verbs except get, list and watch, and
//     all subresources that give access to a pod. A pod can use any ServiceAccount.
//   - leases: all verbs except get, list and watch, unless resourceNames contains only the name of the add-on and names
//     that begin with it and a dot.
//
// All other rules are granted: this package does not know what other kinds permit. If operators on the hub create pods
// or read Secrets for objects in the namespaces of members, the administrator must restrict them.
//
// A rejected rule is a [Result].Problem that names the field. The same applies to a rule that exceeds the permissions
// of the hub, since RBAC prevents escalation. In both cases an agent that already has access keeps its previous rules,
// and its credential is renewed.
//
// # Credential
//
// The member gets a Secret with a kubeconfig whose namespace is that of the member on the hub. The kubeconfig refers to
// the token, or to the certificate and its key, as files in the same directory: mount the Secret as a directory, and
// client-go reloads renewed files without a restart.
//
// A credential is renewed after 60 to 75 % of its lifetime, as for members. The exact time depends on the member and
// the add-on, so that renewals are spread. A hub or a member may therefore be unavailable for a quarter of a lifetime.
// The default lifetime is 7 days for a token and 30 days for a certificate. The hub may grant less. A credential is
// issued earlier if the requested lifetime changes, if the ServiceAccount of a token is deleted, or if the holder
// changes: another cluster has taken over the member, or the MemberAddon was created again. The access of the previous
// holder ends first.
//
// Renew uses the Role and the record of the credential: the rules, whether there is a Lease, the type and the requested
// lifetime.
//
// When the type of the credential changes, the old one is removed from the hub when the new one exists. The member gets
// the new one with its Work. Between these steps, usually for some seconds, the agent has no access.
//
// Certificates are issued as those of members; see package membership/registration/csr. If no signer signs a request,
// the result contains a Problem after one minute, and the request is retried.
//
// # Revocation
//
// The RoleBinding is deleted first: the permissions in the member's namespace end at once. Tokens become invalid with
// the ServiceAccount, which takes API servers up to ten seconds. A certificate cannot be revoked before it expires. Its
// user name is never used again; an administrator must remove other bindings to that name.
//
// # Requests
//
// With a cache ([NewCache]) an up-to-date registration needs no requests. If a change is required, five live reads
// precede the decision. The first registration takes six writes with a token, one of which is not stored, and eight
// with a certificate; a renewal takes two or four. The hub can be interrupted between any two requests: it continues
// with the existing objects, and duplicates nothing except a token that was never stored and that no client can read.
//
// # Permissions of the hub
//
// The folder rbac contains them. The tests of the package run with exactly these permissions. In addition:
//
//   - Grant the hub's user all permissions that agents request (the rules of AddonTemplates and of Go agents). The API
//     server otherwise rejects the Role, since the hub has neither escalate nor bind.
//   - serviceaccounts/token applies to all ServiceAccounts of the hub, because RBAC cannot match a part of a name. If
//     the add-ons are known, add resourceNames: addon-x, addon-y.
//   - If certificates are not used, remove the rules of certificates.k8s.io.
//   - The Role is in the namespace muster-registration, which the membership hub creates. If [Options].Namespace is
//     different, create that namespace and change the Role.
package registration
