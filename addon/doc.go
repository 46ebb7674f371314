// Package addon installs add-ons on member clusters, configures them, rolls out what is new, watches them, and takes them back. An
// add-on is what runs there beside the agent, with its configuration and, if it wants to, its own access to the hub.
//
// What it consists of an [Agent] in Go says, or an AddonTemplate. [SetupWithManager] adds the controllers to the manager of a hub:
//
//	addon.SetupWithManager(mgr, addon.Options{Agents: []addon.Agent{collector{}}})
//
// The Example is an add-on as a whole, and the program in examples/addon a fuller one.
//
// # What there is
//
//	kind            where                who writes it
//	Addon           the hub              people: who gets the add-on, by which configurations and in which order. The controllers write its status
//	MemberAddon     a member's           the controllers, for the members of the Addon's Placements; or people, for any member. What a member is to
//	                namespace            have of its own people write into its spec; its status says how the add-on is doing there
//	AddonConfig     any namespace        people: what many add-ons understand, such as variables, registries, resources, proxy
//	AddonTemplate   the hub              people: an add-on without code
//	any other kind  where it is          people: configurations that the add-on itself understands, such as ConfigMaps
//	Work            a member's           the controllers: addon-<name>-<number>, and addon-<name>-hooks while it is removed. The member's
//	                namespace            agent (package work/agent) applies them and says how they are
//
// A MemberAddon has the name of its Addon. One that a person has made is not taken away from him, unless the Addon is deleted:
//
//	kubectl get addons
//	NAME        INSTALL      MEMBERS   UPDATED   AVAILABLE   DEGRADED   MESSAGE                                                 AGE
//	collector   Placements   3         3         3           False      Add-on is up to date and available on all 3 members.   3s
//
//	kubectl get memberaddons -A
//	NAMESPACE      NAME        AVAILABLE   DEGRADED   PROGRESSING   MESSAGE                                                                               AGE
//	member-east    collector   False       True       False         It runs, and sends nothing.                                                           6s
//	member-north   collector   True        False      True          It sends 1200 lines a minute. The update waits until fewer members are being updated.   6s
//
// # Who has it, and by which configuration
//
// Package install decides which members have the add-on. A Placement that is missing or not decided removes it from
// no member. If several Placements have chosen a cluster, the first one applies. Members that join later get the
// add-on as well.
//
// Package config decides which configurations count: of each kind those of the member, or else those of its
// Placement, or else the defaults of the Addon. A kind that the Addon does not name is refused. The MemberAddon's
// status.configs lists the configurations that apply, each with its desired hash and the hash that the member has. A
// configuration that is missing or not valid reaches no member: what the one before installed stays as it is, and the
// MemberAddon is degraded and says why.
//
// # Rollouts, and members that wait
//
// Configurations, install namespace and version ([Versioned]) make a revision, which is named for its content. A new
// one reaches the members of a Placement by the rollout that the Addon gives it (package placement/rollout), and so
// does the first one. A member without a Placement does not wait for others. Package turn decides whether a member
// may be told.
//
// A member whose turn has not come is held, and says so: its condition Progressing has the reason WaitingForTurn, and
// its message tells what is waited for. It keeps what it was told before, and the health of that is told as ever.
// What that was is not kept on the hub: configurations change where they are. So a Work of a waiting member that a
// user deletes on the hub is not restored before the turn of the member; objects on the member are, by its agent.
//
// For the same reason a new member whose turn has not come has nothing: there is no earlier version that it could get meanwhile, as clusters
// get one of a WorkSet. While a rollout is paused or halted, the add-on comes to no other member.
//
// The access of an add-on's agent to the hub ([Options].Registration) is maintained for every member that was updated
// before, whether the member waits or has a problem: with the rules that it was given, its credential is renewed in
// time, and put into the Work that brought the one before. Another holder of the member ends the former one's access
// in the same way. What keeps it from that is told of in the condition RegistrationReady.
//
// What an [Agent] makes of a member that has changed, as of its version, properties or annotations, reaches it at once: [Input].Member says what counts. Heartbeats
// cost nothing.
//
// Members that are degraded count as failed; more of them than may be halt the rollout. It goes on when they are mended, by a new revision, too.
// Those that failed, or could not be reached on their way, and are not chosen any more still count, until there is a new revision or the state of
// the rollout is Stop.
//
// # How it is doing
//
// Package health has the conditions of both kinds, Configured, RegistrationReady, ManifestsApplied, Available, Progressing and Degraded, with a table of
// their reasons, and the health that rollouts go by: as all that was applied is ready, a Lease on the hub, or a function of the add-on
// ([HealthChecker]) says. Available is Unknown where the member cannot be reached, and the message has its last word.
//
// # How it goes
//
// A MemberAddon goes when its member is not chosen any more, the Addon or itself is deleted, or the member leaves
// (package addon/leave). Package removal has the order, which any crash leaves as it is: hooks, then Works, then the
// access to the hub, then the MemberAddon. Hooks are Jobs and Pods with the annotation addon.muster.dev/pre-delete:
// "true", and [PreDeleter]. At the deadline, spec.removal.deadlineSeconds of the Addon, it is forced, and recorded in
// status.forcedRemovals. What the API server refuses is tried again, and the message says why. An access that cannot
// be revoked is never given up: past the deadline the MemberAddon is degraded, with the reason RevokeFailed, and
// stays until it is. So it does, and says so, if another finalizer keeps it, which blocks nothing else. An Addon goes
// when it is gone from all members.
//
// # Hosted mode
//
// The agent for a member can run on another one, the hosting member. What has the annotation addon.muster.dev/location: Hosting goes there, into a namespace
// that no other member's agent has, and all else to the member. Its health goes by both, and who cannot be reached is named.
//
//   - A hosting member that is none of the Addon's hostingMembers, is no member or leaves: the condition Configured says so and what to do, and nothing is
//     written or removed until a user names another one. A hosting member that leaves deletes the agents with all its Works;
//     it does not wait for them to move, and they do not run until they are elsewhere. So name another one first, and have it leave then.
//   - The credential of its agent for the hub goes where the agent is, into that namespace.
//   - Another hostingMember is told by the rollout as a new configuration is. What is at the old place stays until the new one has applied all,
//     and so does what the agent has on the member.
//   - Removal: hooks run where they belong, then the member's own Works go, and those on the hosting member last, as the agent may be needed until then.
//     Neither waits for the dead longer than the deadline.
//
// # When something fails
//
// An add-on that fails never holds up another one, nor does a member. What an Agent panics with is an error, and so is that one of its functions takes longer
// than [Options].CallTimeout: the conditions say which. A write that fails is tried again, with pauses
// that grow to 30 seconds. All that the controllers know is in what is stored: a restart writes nothing where nothing has changed.
//
// # Permissions
//
// The folder rbac has the ClusterRole muster-addon. To it belong get, list and watch on each kind of configuration that Addons name and that is not of
// muster, and what package addon/registration needs where [Options].Registration is set. The agents of members need no more than for other Works. Who may write Addons or
// AddonTemplates can have anything run on the members; who may write a MemberAddon can choose among configurations for one member, as far as
// [Options].Allow lets him.
package addon
