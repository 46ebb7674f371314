// Package registration gives agents of add-ons access to the hub, and takes it back.
//
// A [Registrar] is asked for what an agent is to have, and says how far that is: [Registrar.Ensure] as long as the add-on is to be there,
// [Registrar.Revoke] when it goes. In between, [Registrar.Renew] keeps up what there is where nobody knows what there is to be. The controller of
// MemberAddons is who asks.
//
// # What there is
//
// For the add-on x of a member whose namespace is member-a:
//
//	object           where and name                         what for
//	Role             member-a/addon-x                       the rules that it wants, and to get, update and patch its Lease
//	RoleBinding      member-a/addon-x                       gives them to one subject
//	Lease            member-a/x                             if its health is told by one; it is made for the agent, which cannot create any
//	ServiceAccount   member-a/addon-x                       with credential Token: whose tokens they are
//	Secret           muster-registration/member-a.x         the credential as long as it lives
//
// All have the label addon.muster.dev/addon, and those in the member's namespace are owned by the MemberAddon. What has one of the names
// and not the label is not taken over: it is a problem, and told of. There is nothing cluster-wide, but a CertificateSigningRequest for
// the seconds that it takes.
//
// The credential is in a Secret of the hub, beside the copy in the Work that carries it, since it has to survive a hub that is restarted, and the key of
// a certificate has to be there before the certificate is. It is not in the member's namespace, so that no agent's rules are about it, and the
// hub needs no permission on Secrets elsewhere.
//
// # Who an agent is
//
//   - By a token: the ServiceAccount addon-x in the member's namespace.
//   - By a certificate: the user muster:addon:member-a:x:, followed by the fingerprint of its key. It is in no group.
//
// No part of a name can have the separator in it, and RBAC compares names whole: no name is the beginning of another's. The subject is in
// [Result].Status; what the agent is to have elsewhere an administrator gives to it.
//
// # Its permissions
//
// They are in the namespace of the member, and come from the Role. [ValidateRules] refuses what would let an agent out of its
// confinement, whoever wrote the rules, also where a "*" covers it:
//
//   - of works of work.muster.dev: everything. Works hold the credentials of other add-ons, and run on the member what is written there.
//   - of all other groups of muster: all but get, list and watch; a WorkSet, for one, reaches other members.
//   - of roles, rolebindings, serviceaccounts and their tokens, and the namespace itself: all but get, list and watch.
//   - of secrets: all but get, list and watch with resourceNames. Who may create one can have Kubernetes put the token of any ServiceAccount there.
//   - of pods and what makes pods (apps, batch, replicationcontrollers): all but get, list and watch, and whatever gets into a pod. A pod can run as any ServiceAccount.
//   - of leases: all but get, list and watch, except with resourceNames that are the add-on's: its name, and all that begin with it and a dot.
//
// All else is as who wrote the rules wishes: this package does not know what other kinds lead to. A hub that runs operators in the
// namespaces of members, whose objects make pods or read Secrets, has to see to that itself.
//
// Rules that are refused are a [Result].Problem that names the field, and so are those that the hub does not have: by the rules of RBAC nobody can
// grant what he may not do himself. Either leaves an agent that has access with the rules that it had, and its credential is renewed.
//
// # Its credential
//
// On the member there is a Secret with a kubeconfig whose namespace is that of the member on the hub. It refers to the token, or the
// certificate and its key, as files beside it: mount the Secret as a folder, and client-go reads them again when they have been renewed, without a
// restart.
//
// It is renewed when 60 to 75 % of its life are over, as those of members are; where in between depends on member and add-on, so
// that those that were issued together are not renewed together. So a hub or a member may be away for a quarter of a lifetime. Lifetimes are 7 days for
// a token and 30 for a certificate unless something else is asked for; the hub may grant less. It is issued anew before that when the
// lifetime that is asked for changes, when the ServiceAccount of the token is gone, and when the holder changes: another cluster has taken over the
// member, or the MemberAddon was made anew. Then what the former holder had ends first.
//
// What there was, for Renew, the Role and the record of the credential say: its rules, whether there is a Lease, the kind and the lifetime that was asked for.
//
// A change from one kind to the other takes the old one away when the new one is there, on the hub. On the member it is there when the Work has been applied;
// in between, usually some seconds, the agent has none.
//
// A certificate is issued as those of members are; see package membership/registration/csr. Where nobody signs, that is a Problem after a minute that says what to do,
// and is tried again.
//
// # Revocation
//
// The RoleBinding goes first: what the agent may in the member's namespace ends at once. Its tokens end with the ServiceAccount, for which API servers take
// up to ten seconds. A certificate cannot be taken back before it expires; it is a name that nobody gets again, so what an administrator
// has given to that name elsewhere is to be taken back by him.
//
// # Requests
//
// With a cache ([NewCache]) a registration that is as it is to be costs no request. Where there is something to do, it is looked at past the
// cache, five requests, before it is decided. The first time takes six writes with a token, one of which is not stored, and eight with a certificate; a renewal takes two or four.
// The hub may be interrupted between any two: it finds what it left, and makes nothing twice but a token that was never written down,
// which nobody can read.
//
// # Permissions of the hub
//
// The folder rbac has them; the package's tests run as a user who has these and nothing else. Besides,
//
//   - give the hub's user what agents are to have (the rules of AddonTemplates and of Go agents), or the API server does not let it give them that. It has no escalate and no bind.
//   - serviceaccounts/token is for all ServiceAccounts of the hub, which RBAC cannot narrow by a part of a name. Where the add-ons
//     are known, add resourceNames: addon-x, addon-y.
//   - without certificates, take out what is of certificates.k8s.io.
//   - the Role is for the namespace muster-registration, which the hub of membership makes. Where [Options].Namespace is another, make it, and change the Role.
package registration
