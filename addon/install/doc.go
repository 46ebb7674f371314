// Package install decides which members are to have an add-on, by which Placement, and what is to become of the MemberAddons that there
// are. It is pure: no client, no clock. All of it may be called concurrently.
//
// [Decide] looks at the install strategy, at what is known of its Placements, at the members and at the MemberAddons, and answers with one
// [Decision] for each member that has the add-on or is chosen to, and with the clusters that each Placement rolls out to. It is
// level-triggered: correct from any observation, however often it is asked, and in whatever order things come.
//
// # Which Placement a cluster goes by
//
// It goes by the first Placement of the strategy that is known to have chosen it. There is one exception: if the Placement that it went by
// stands before that one, and is missing or not decided, nobody knows whether it still has it, and the cluster stays with it. So a
// Placement that is gone for a moment does not hand its clusters, with another configuration, to the next one and back.
//
// # What becomes of a MemberAddon
//
// The first row counts that is true:
//
//	the MemberAddon                                     becomes                   reason
//	is being deleted already                            kept                      Removing: if it is still chosen, it is made anew
//	is there while the Addon is being deleted           deleted, in turn          AddonDeleted, WaitsForTurn
//	is on a member that leaves                          kept                      Leaving: the leave takes it back
//	was made by a person, so has no installed-by        kept                      ByHand
//	goes by the Placement that it is installed by       kept                      Chosen; annotated if it is of an earlier Addon
//	goes by another Placement                           annotated with that one   ChosenByAnother
//	goes by none, and a Placement of the strategy       kept                      Uncertain
//	is missing or not decided
//	goes by none, and was created for an earlier Addon  kept                      EarlierAddon: a restored Placement may not have
//	with this name                                                                chosen the member yet
//	goes by none                                        deleted, in turn          NotChosen, WaitsForTurn
//
// And a member that is chosen and has none:
//
//	leaves                                              is skipped                Leaving
//	has not joined                                      is skipped                NotJoined
//	all else                                            gets one                  Chosen
//
// What a person has made is never deleted nor taken over, unless the Addon itself is deleted. It takes part in the rollout of the Placement
// that it goes by all the same, and has its configuration. To make a MemberAddon one's own, take the annotation off; to
// give it back, delete it.
//
// With type Manual there is no Placement to go by, so what was installed by one goes. Two things speak for that, and against keeping it: it is
// what happens to a Placement that is taken out of the list while others stay, so that the spec alone says who has the add-on, and
// not how it came to be; and it is how to give an add-on to nobody without deleting it. Who wants to go on by hand takes the annotations off first.
//
// # In turn
//
// No more than MaxRemoving MemberAddons are on their way out at a time. Those of members that cannot be reached do not count and do not wait:
// there is nothing to do for them until their deadline, which begins with their deletion, and they must hold up nobody else.
//
// # What controllers owe
//
//   - Clusters and State of a Placement belong together: Decided is for one whose decisions are all known, are of its present spec, and
//     which is not being deleted.
//   - Delete and annotate with the resourceVersion that was looked at, so that nothing happens to what a person has made theirs since.
//   - Remember for a MemberAddon that a person has made which Placement it went by, where a restart does not lose it, and give it back as
//     GoesBy. Without that, its configuration changes when that Placement is missing.
//   - Hold the rollout of a [Share] that is not Decided: some of its clusters are in no group that is known.
//   - An Addon that is being deleted is let go when the API server, not a cache, shows no MemberAddon of it.
package install
