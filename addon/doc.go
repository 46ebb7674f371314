// Package addon installs add-ons on member clusters, configures and updates them, reports their health, and removes
// them. An add-on is a program that runs on a member beside the agent. It has a configuration and, optionally, its own
// access to the hub.
//
// An [Agent] in Go or an AddonTemplate defines the objects of an add-on. [SetupWithManager] adds the controllers to the
// manager of a hub:
//
//	addon.SetupWithManager(mgr, addon.Options{Agents: []addon.Agent{collector{}}})
//
// The package example is a complete add-on. The program in examples/addon shows more options.
//
// # Kinds
//
//	kind            where                written by
//	Addon           the hub              users: which members get the add-on, with which configurations and in which order.
//	                                     The controllers write its status
//	MemberAddon     a member's           the controllers, for the members of the Addon's Placements; or users, for any
//	                namespace            member. Users write settings of one member into its spec. Its status is the
//	                                     health of the add-on there
//	AddonConfig     any namespace        users: settings that many add-ons support, such as variables, registries,
//	                                     resources and proxy
//	AddonTemplate   the hub              users: an add-on without code
//	any other kind  any namespace        users: configurations that the add-on itself reads, such as ConfigMaps
//	Work            a member's           the controllers: addon-<name>-<number>, and addon-<name>-hooks during removal. The
//	                namespace            agent of the member (package work/agent) applies them and reports their status
//
// A MemberAddon has the name of its Addon. The controllers do not delete a MemberAddon that a user created, unless the
// Addon is deleted:
//
//	kubectl get addons
//	NAME        INSTALL      MEMBERS   UPDATED   AVAILABLE   DEGRADED   MESSAGE
//	collector   Placements   3         3         3           False      Add-on is up to date and available on all 3 members.
//
//	kubectl get memberaddons -A
//	NAMESPACE      NAME        AVAILABLE   DEGRADED   PROGRESSING   MESSAGE
//	member-east    collector   False       True       False         It runs, and sends nothing.
//	member-north   collector   True        False      True          It sends 1200 lines a minute. The update waits until ...
//
// The column AGE is omitted here.
//
// # Members and configurations
//
// Package internal/install selects the members. A Placement that does not exist or has no decision removes the add-on
// from no member. If several Placements choose a cluster, the first one applies. Members that join later get the add-on
// as well.
//
// Package config selects the configurations. For each kind, the configurations of the member apply, or else those of
// its Placement, or else the defaults of the Addon. A kind that the Addon does not name is rejected. status.configs of
// the MemberAddon lists the configurations that apply, each with its desired hash and the hash that the member has. A
// configuration that does not exist or is invalid reaches no member: the objects of the previous one stay, and the
// MemberAddon is degraded with the cause in its message.
//
// # Rollouts
//
// The configurations, the install namespace and the version ([Versioned]) form a revision, whose name is a hash of its
// content. Every revision, also the first one, reaches the members of a Placement by the rollout that the Addon sets
// for it (package placement/rollout). A member without a Placement is updated immediately. Package internal/permit
// decides whether a member may be updated now.
//
// While a member waits, its condition Progressing has the reason WaitingForTurn, and the message says what the member
// waits for. The member keeps its revision, and the controllers continue to report its health. The hub does not store
// earlier revisions, because configurations change in place:
//
//   - If a user deletes a Work of a waiting member, the controllers restore it when the member is updated. The agent
//     still restores the objects on the member.
//   - A new member that waits has no earlier revision to get meanwhile, unlike a cluster of a WorkSet. While a rollout
//     is paused or halted, the add-on is installed on no other member.
//
// The controllers maintain the access of the add-on's agent to the hub ([Options].Registration) for every member that
// has a revision, also while the member waits or is degraded. They renew its credential with the permissions that it
// has, in the Work that delivered the previous credential. If another hosting member runs the agent now, the access of
// the former one ends in the same way. Errors are in the condition RegistrationReady.
//
// A change of the member's version, properties or annotations renders the objects again immediately; [Input].Member
// lists the fields that do so. Heartbeats do not.
//
// Degraded members count as failed. The rollout halts if more members fail than it allows, and continues when they
// recover or a new revision exists. Members that failed, or became unreachable during the update, and are not chosen
// any more count until a new revision exists or the state of the rollout is Stop.
//
// # Health
//
// Package health computes the conditions of both kinds: Configured, RegistrationReady, ManifestsApplied, Available,
// Progressing and Degraded. Its documentation has a table of their reasons. The health of an add-on is the readiness of
// its applied objects, a Lease on the hub, or the result of a function of the add-on ([HealthChecker]). Available is
// Unknown while the member is unreachable; its message is the last one that the member reported.
//
// # Removal
//
// The controllers remove a MemberAddon when its member is not chosen any more, when the Addon or the MemberAddon is
// deleted, or when the member leaves (package addon/leave). Package removal defines the order, which survives a crash
// at any step: hooks, Works, the access to the hub, the MemberAddon. Hooks are Jobs and Pods with the annotation
// addon.muster.dev/pre-delete: "true", and [PreDeleter]. After spec.removal.deadlineSeconds of the Addon, the removal
// is forced and recorded in status.forcedRemovals.
//
// The controllers repeat requests that the API server rejects, and the message contains the error. An access that
// cannot be revoked is never abandoned: after the deadline the MemberAddon is degraded with the reason RevokeFailed,
// and stays until the access is revoked. A finalizer of another controller also keeps the MemberAddon; the message
// names it, and nothing else waits for it. An Addon is deleted when no member has it any more.
//
// # Hosted mode
//
// The agent of a member can run on another member, the hosting member. Objects with the annotation
// addon.muster.dev/location: Hosting are applied there, in a namespace that no other member's agent uses. All other
// objects are applied on the member. The health includes both, and messages name the cluster that is unreachable.
//
//   - If the hosting member is not in hostingMembers of the Addon, is not a member, or leaves, the condition Configured
//     contains the cause and the remedy. Nothing is written or removed until a user names another one. A hosting member
//     that leaves deletes all its Works, with the agents in them, and does not wait until they are moved. To keep the
//     agents running, name another hosting member before the first one leaves.
//   - The agent's credential for the hub is in the namespace of the agent, on the hosting member.
//   - A change of hostingMember is rolled out like a new configuration. The objects on the former hosting member, and
//     those of the agent on the member, stay until the new one has applied all objects.
//   - Removal runs hooks on their own cluster, then deletes the Works of the member, then those of the hosting member,
//     whose agent may be needed until then. It waits for an unreachable cluster no longer than the deadline.
//
// # Errors
//
// An add-on that fails does not delay another one, and a member that fails does not delay other members. A panic of an
// Agent, and a function that takes longer than [Options].CallTimeout, are errors that the conditions name. Failed
// writes are repeated after pauses that grow to 30 seconds. The controllers keep no state outside of the API: a restart
// writes nothing if nothing has changed.
//
// # Permissions
//
// The folder rbac contains the ClusterRole muster-addon. In addition, the controllers require get, list and watch on
// each configuration kind that Addons name and that is not of muster, and the permissions in the folder
// internal/registration/rbac if [Options].Registration is set. The agents of members require no permissions besides
// those for other Works.
//
// A user who can write Addons or AddonTemplates can run anything on the members. A user who can write a MemberAddon can
// choose among configurations for one member, within the limits of [Options].Allow.
package addon
