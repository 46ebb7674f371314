// Package heartbeat determines which members of a hub are alive: the agent of a member renews a Lease
// (coordination.k8s.io/v1) with the name "heartbeat" in the member's namespace, and the hub watches all of these
// Leases.
//
//   - [Beater] runs in the agent.
//   - [Watcher] runs in the hub: a Runnable that watches the Leases and reports which members have changed.
//   - [Monitor] evaluates the heartbeats for a Watcher. It is pure, and can be used with another source of heartbeats.
//
// # Cost
//
// In steady state, a member costs one update of its Lease per period, without any read, and the watch event of that
// update. A period is one minute by default, and 1 s to 10 min ([MinPeriod], [MaxPeriod]). The hub needs about 150
// bytes per member besides its name, and caches no Leases. One goroutine and one watch serve 100,000 members; a
// heartbeat takes one or two microseconds and allocates nothing. To measure:
//
//	go test -run '^$' -bench . -short ./membership/heartbeat
//
// # The agent
//
// A Beater has its own goroutine, and should have a separate client, so that no other part of the agent can delay it.
// It sends the first heartbeat immediately, the second at a random time within a period, and the others exactly one
// period apart: 10,000 agents that start together are spread evenly over the period from their second heartbeat on.
// While the hub responds, the time between two heartbeats never exceeds a period.
//
// Each request has a timeout of half a period, at least 1 s and at most 15 s. A failed attempt is retried after up to
// 1 s (an eighth of a period if that is less), then after twice as long each time, up to a period; half of each pause
// is random. Missed heartbeats are not sent later. If another client has changed or deleted the Lease, the Beater
// reads it, or creates it again, within the same attempt. It acquires the Lease of an earlier agent.
//
// # The hub
//
// A heartbeat is a renewTime that differs from the previous one, at the time when the hub observes it, by the hub's
// clock. The agent's clock has no effect ([Health.Skew] is for information), and neither have repeated events. The
// Leases that a Watcher reads when it starts may be old, so it waits for their next change.
//
//   - A member is [Lost] if no heartbeat was observed for its grace period: 3¼ periods, the quarter at least 2 s
//     ([DefaultGrace]). Its health is then Unknown.
//   - After the hub starts, every member has a full grace period, and is [Awaited] until its first heartbeat: keep the
//     recorded health.
//   - A member whose heartbeats arrive again after its first loss is [Healthy] immediately. After losses at most 16
//     grace periods apart it is [Unsteady], with Unknown health, until it has sent heartbeats without a late one for
//     1, 2, 4 and at most 8 grace periods ([DefaultHold]). The number of flaps is lost when the hub restarts.
//   - Outage guard: an outage begins if at least 3 members and 55 % of all are late (by a quarter of a period, at
//     least 2 s) or not ready ([Monitor.Report]), or if all members of a smaller fleet are. It ends if fewer than that
//     number or at most 40 % are. During an outage the states remain, but are [Health.Suspended]: do not taint, do not
//     evict. Therefore a hub with one member never taints it for missing heartbeats; with two or three members it does
//     while at least one is healthy. When the outage ends, each member that is still affected gets a full grace period
//     ([Health.SuspendedUntil]).
//     Members without a heartbeat since the hub started do not show that the hub is healthy, and prevent actions on
//     others like affected ones. Members whose heartbeats stop at the same time are all late before the first is
//     lost, provided that their periods are similar. A loss during an outage is never a flap. An outage has no time
//     limit: if most of a fleet is lost permanently, taints and failover are withheld until these members are
//     untracked, or [Policy.OutageShare] is changed.
//   - The members with joinMode Push ([Monitor.SetPush]) are also evaluated for an outage as a separate group, by the
//     same rules: the hub may lose its network path to all of them while it receives the heartbeats of others.
//     Therefore a hub never taints its only member with joinMode Push for missing heartbeats or readiness.
//   - While the watch is interrupted, the hub observes nothing, and no member is late or lost. That time does not
//     count as missing heartbeats. Members whose period is not longer than that time get a full grace period when the
//     watch is established again.
//
// client-go detects a connection that hangs without an error after 45 s (the HTTP/2 health check). Until then this
// time counts as missing heartbeats. With the default period that has no effect. With a grace period shorter than
// that, a member may be tainted while members with longer periods are not late yet.
//
// # RBAC
//
// The agent needs these permissions, in its namespace only:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     verbs: [create]
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     resourceNames: [heartbeat]
//     verbs: [get, update]
//
// The hub needs these permissions, in all namespaces:
//
//   - apiGroups: [coordination.k8s.io]
//     resources: [leases]
//     resourceNames: [heartbeat]
//     verbs: [list, watch]
package heartbeat
