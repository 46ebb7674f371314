// Package heartbeat tells a hub which of its members are alive: the agent of a member renews a Lease
// (coordination.k8s.io/v1) named "heartbeat" in the member's namespace, and the hub watches all of them.
//
//   - [Beater] is the agent's side.
//   - [Watcher] is the hub's: a Runnable that watches the Leases and says whose verdict has changed.
//   - [Monitor] is what the Watcher judges by: pure, for those who have another source of heartbeats.
//
// # What it costs
//
// In steady state one update of a Lease per member and period, without any read, and the one watch event
// that it causes. A period is a minute unless told otherwise, and may be 1 s to 10 min ([MinPeriod], [MaxPeriod]).
// The hub keeps about 150 bytes a member besides its name, and no Lease. One goroutine and one watch serve
// 100,000 members; a heartbeat takes them one or two microseconds and allocates nothing. To measure:
//
//	go test -run '^$' -bench . -short ./membership/heartbeat
//
// # The agent's side
//
// A Beater has a goroutine, and should have a client, of its own, so that nothing else in the agent can
// delay it. The first heartbeat comes at once. The second comes at a random time within a period, and the
// others follow exactly one period apart: 10,000 agents that start together are spread evenly over the
// period from their second heartbeat on. A period is never exceeded while the hub answers.
//
// Each request has a deadline of half a period, at least 1 s and at most 15 s. A failure is tried again
// after up to 1 s (an eighth of a period if that is less), then after twice as long each time, up to a
// period; half of each pause is random. Missed heartbeats are not made up for. A Lease that was written or deleted by somebody
// else is read, or made anew, within the same attempt; that of an earlier agent is taken over.
//
// # The hub's side
//
// Only what the hub itself observes counts, by its own clock: that a Lease has another renewTime than before. What
// time the agent believes it to be does not matter ([Verdict.Skew] tells, for information), and neither does
// the repetition of what is known already. What a Watcher finds when it starts may be ages old, so it waits
// for the next change.
//
//   - A member is [Lost] when no heartbeat was observed for its grace: 3¼ periods, the quarter at least 2 s
//     ([DefaultGrace]). Its health is Unknown then.
//   - When the hub starts, everybody has a whole grace, and is [Awaited] until heard: keep what was recorded.
//   - One that is heard again is [Healthy] at once the first time. After losses no more than 16 graces
//     apart it is [Unsteady], still Unknown, until it has sent heartbeats without a late one for 1, 2, 4 and at
//     most 8 graces ([DefaultHold]). This is not remembered when the hub restarts.
//   - When at least 3 members and 55 % of all are late (by a quarter of a period, at least 2 s) or not ready
//     ([Monitor.Report]), or all members of a smaller fleet are, the hub suspects itself, until fewer than that
//     number or no more than 40 % are. The verdicts stand, but are [Verdict.HeldBack]: do not taint, do not evict. So
//     a hub with one member never acts on its silence; with two or three members it acts while at least one is well.
//     When the outage ends, each member that is still affected has its whole grace again ([Verdict.HeldUntil]).
//     Members that the hub has not heard since it started are no evidence that it is well, and count like affected
//     ones against acting on others. Members that fall silent at the same time are all late before the first is lost,
//     provided that their periods are alike. An outage never counts as a flap. It has no time limit: a fleet of which
//     most is dead for good stays held back until the dead are untracked, or [Policy.OutageShare] is set otherwise.
//   - While the watch is down the hub can observe nothing, and nobody falls silent. That time is not
//     counted; those whose period is no longer than that have a whole grace from when the watch is back.
//
// A connection that hangs without an error is found out by client-go after 45 s (the HTTP/2 health check),
// and counts as silence until then. With the default period that is no matter. With a grace shorter than
// that, a member may be tainted while members with longer periods are not late yet.
//
// # RBAC
//
// The agent needs, in its namespace and nowhere else:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     verbs: [create]
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     resourceNames: [heartbeat]
//     verbs: [get, update]
//
// The hub needs, in all namespaces:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     resourceNames: [heartbeat]
//     verbs: [list, watch]
package heartbeat
