// Package install decides which members must have an add-on, which Placement applies to each, and what happens to
// existing MemberAddons. The package is pure: it uses no client and no clock. All functions are safe for concurrent
// use.
//
// [Decide] takes the install strategy, its Placements, the members and the MemberAddons. It returns one [Decision] for
// each member that has the add-on or is selected, and the clusters to which each Placement rolls out. The decision is
// level-triggered: it depends only on the observation, not on the order of events.
//
// # The Placement of a cluster
//
// The first Placement of the strategy that is known to select a cluster applies, with one exception. If the cluster
// previously belonged to an earlier Placement of the list, and that Placement is missing or undecided, the cluster
// stays with it. A Placement that is missing for a moment therefore does not hand its clusters, with another
// configuration, to the next one and back.
//
// A selection with a Refusal applies only to a member whose MemberAddon the Placement has installed: it stays until the
// Placement leaves the cluster. Otherwise the next Placement applies.
//
// # Existing MemberAddons
//
// The first matching row applies:
//
//	the MemberAddon                                     action                    reason
//	is being deleted                                    keep                      Removing: created again if still selected
//	exists while the Addon is being deleted             delete, with a limit      AddonDeleted, WaitsForTurn
//	is on a leaving member                              keep                      Leaving: the leave removes it
//	was created by a user (no installed-by)             keep                      ByHand
//	belongs to the Placement that installed it          keep                      Chosen; annotated if it is of an earlier Addon
//	belongs to another Placement                        annotate                  ChosenByAnother
//	belongs to none, and a Placement of the strategy    keep                      Uncertain
//	is missing or undecided
//	belongs to none, and a Placement selects the        keep                      NotAllowed
//	member without permission
//	belongs to none, and is of an earlier Addon with    keep                      EarlierAddon: a restored Placement may not have
//	this name                                                                     selected the member yet
//	belongs to none                                     delete, with a limit      NotChosen, WaitsForTurn
//
// A selected member without a MemberAddon:
//
//	is leaving                                          skip                      Leaving
//	has not joined                                      skip                      NotJoined
//	is selected without permission only                 skip                      NotAllowed
//	otherwise                                           create                    Chosen
//
// A MemberAddon that a user created is never deleted or taken over, unless the Addon is deleted. It takes part in the
// rollout of the Placement that selects its cluster and has the configuration of that Placement. To take over a
// MemberAddon as a user, remove the annotation. To return it, delete the MemberAddon.
//
// With type Manual there is no Placement, so MemberAddons that a Placement installed are deleted. This is consistent
// with the removal of a single Placement from the list: the spec alone determines which members have the add-on. It is
// also the way to remove an add-on from all members without deleting it. To continue manually, remove the annotations
// first.
//
// # Limit for removals
//
// At most MaxRemoving MemberAddons are being removed at a time. MemberAddons of unreachable members do not count and
// are not delayed: until their deadline, which starts with their deletion, nothing can be done for them.
//
// # Requirements for controllers
//
//   - Clusters and State of a Placement must be consistent: Decided requires that all decisions are known and belong to
//     the current spec, and that the Placement is not being deleted.
//   - Delete and annotate with the observed resourceVersion, so that a MemberAddon that a user has since taken over is
//     not changed.
//   - Store the Placement of a MemberAddon that a user created, persistently, and pass it as GoesBy. Otherwise its
//     configuration changes when that Placement is missing.
//   - Pause the rollout of a [Share] that is not Decided: the groups of some of its clusters are unknown.
//   - Remove the finalizer of a deleted Addon only when the API server, not a cache, returns no MemberAddon of it.
package install
