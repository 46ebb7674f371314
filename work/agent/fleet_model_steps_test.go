package agent

import "fmt"

// perCluster returns a step for each cluster.
func perCluster(name string, do func(m *fleetModel, f *fleet, i int) bool) (steps []fleetStep) {
	for i := range clusterCount {
		step := func(m *fleetModel, f *fleet) bool { return do(m, f, i) }
		steps = append(steps, fleetStep{fmt.Sprintf(name, clusterName(i)), step})
	}
	return steps
}

func joined(all ...[]fleetStep) (steps []fleetStep) {
	for _, some := range all {
		steps = append(steps, some...)
	}
	return steps
}

// controllerSteps can happen at any time.
var controllerSteps = joined(
	[]fleetStep{
		{"the Placement is decided", (*fleetModel).place},
		{"the status of the Placement is written", (*fleetModel).report},
		{"the garbage collector deletes the PlacementDecision", (*fleetModel).collect},
		{"the WorkSet ends", (*fleetModel).end},
	},
	perCluster("the Work of cluster %s is brought up to date", (*fleetModel).distribute),
	perCluster("cluster %s leaves", (*fleetModel).leave),
	perCluster("the agent of cluster %s reconciles", (*fleetModel).reconcile),
	perCluster("the agent of cluster %s asks another hub", (*fleetModel).askOtherHub),
)

// recoverySteps end faults.
var recoverySteps = joined(
	[]fleetStep{
		{"the paused leader of Placements writes", (*fleetModel).resumePlacer},
		{"the paused leader of WorkSets writes", (*fleetModel).resumeWorkSets},
		{"the watches of WorkSets catch up", func(_ *fleetModel, f *fleet) bool {
			return when(f.cache.lags, func() { f.cache = fleetCache{} })
		}},
		{"the PlacementDecision is created again from the backup", func(_ *fleetModel, f *fleet) bool {
			return f.again(reapplyDecision, func() {
				if d := f.backup.decision; d.exists && !f.hub.decision.exists {
					f.hub.decision = decisionRecord{exists: true, clusters: d.clusters}
					f.changedDecision()
				}
			})
		}},
		{"users create the Placement again", func(_ *fleetModel, f *fleet) bool {
			return when(f.wantsPlacement && !f.hub.placement.exists, func() {
				f.hub.placement = placementRecord{exists: true, uid: f.freshPlacement(), policy: f.policy, behind: true}
			})
		}},
		{"users create the WorkSet again", func(_ *fleetModel, f *fleet) bool {
			return when(f.wantsSet && !f.hub.set.exists, func() {
				f.hub.set = setRecord{exists: true, uid: f.freshSet()}
			})
		}},
	},
	perCluster("the Work of cluster %s is created again from the backup", func(_ *fleetModel, f *fleet, i int) bool {
		return f.again(reapplyWorks<<i, func() {
			if w := f.backup.works[i]; w.exists && !f.hub.works[i].exists {
				f.hub.works[i] = workRecord{exists: true, uid: f.freshWork(i), by: w.by, requested: w.requested}
				f.changedWork(i)
			}
		})
	}),
	perCluster("the MemberCluster of cluster %s is created again", func(_ *fleetModel, f *fleet, i int) bool {
		return when(f.in.has(i) && !f.hub.members[i].exists, func() { f.join(i) })
	}),
	perCluster("the agent of cluster %s joins again", func(_ *fleetModel, f *fleet, i int) bool {
		m := &f.hub.members[i]
		return when(m.exists && !m.leaving && !m.joined, func() { m.joined = true })
	}),
	perCluster("the hub accepts the agent of cluster %s again", func(_ *fleetModel, f *fleet, i int) bool {
		return when(f.foreign.has(i), func() { f.foreign &^= bit(i) })
	}),
	perCluster("the hub receives heartbeats of cluster %s again", func(_ *fleetModel, f *fleet, i int) bool {
		return when(f.late.has(i), func() { f.late &^= bit(i) })
	}),
	perCluster("cluster %s is healthy again", func(_ *fleetModel, f *fleet, i int) bool {
		m := &f.hub.members[i]
		return when(m.exists && m.unhealthy, func() { m.unhealthy = false })
	}),
)

// The objects of a backup that are not created again yet.
const (
	reapplyDecision uint8 = 1 << iota
	reapplyWorks          // and the next bit for the second cluster
)

func (f *fleet) again(part uint8, do func()) bool {
	return when(f.reapply&part != 0, func() { f.reapply &^= part; do() })
}

// join creates the MemberCluster of a cluster.
func (f *fleet) join(i int) {
	f.hub.members[i] = memberRecord{exists: true}
	f.placer.removed &^= bit(i)
	f.left &^= bit(i)
}

// byUser consumes a step of users.
func byUser(do func(f *fleet) bool) func(*fleetModel, *fleet) bool {
	return func(_ *fleetModel, f *fleet) bool {
		return f.users > 0 && do(f) && when(true, func() { f.users-- })
	}
}

func byFault(do func(m *fleetModel, f *fleet) bool) func(*fleetModel, *fleet) bool {
	return func(m *fleetModel, f *fleet) bool {
		return f.faults > 0 && do(m, f) && when(true, func() { f.faults--; f.damaged = true })
	}
}

// setPolicy is a change of the Placement's policy.
func (f *fleet) setPolicy(to policyKind) bool {
	p := &f.hub.placement
	return when(p.exists && p.policy != to, func() {
		p.policy, p.behind, p.failed, f.policy, f.placer.fresh = to, true, false, to, false
		if f.wantsSet { // a cluster that the Placement has left already is kept when the Placement selects it again
			f.keep(to.names() & f.hub.decision.clusters)
		}
		if to == pickOne {
			f.ask(allClusters)
		} else {
			f.ask(allClusters &^ to.names())
		}
	})
}

var userSteps = joined(
	[]fleetStep{
		{"a user deletes the WorkSet", byUser(func(f *fleet) bool {
			set := &f.hub.set
			return when(set.exists && !set.deleting, func() {
				f.ask(allClusters)
				set.deleting, f.wantsSet = true, false
			})
		})},
		{"a user creates the WorkSet", byUser(func(f *fleet) bool {
			return when(!f.wantsSet && !f.hub.set.exists, func() {
				f.wantsSet, f.hub.set = true, setRecord{exists: true, uid: f.freshSet()}
				f.keep(f.wanted())
			})
		})},
		{"a user deletes the Placement", byUser(func(f *fleet) bool {
			return when(f.hub.placement.exists, func() {
				f.hub.placement, f.wantsPlacement = placementRecord{}, false
			})
		})},
		{"a user creates the Placement", byUser(func(f *fleet) bool {
			return when(!f.wantsPlacement && !f.hub.placement.exists, func() {
				f.wantsPlacement = true
				f.hub.placement = placementRecord{exists: true, uid: f.freshPlacement(), policy: f.policy, behind: true}
			})
		})},
		{"a user places on all clusters", byUser(func(f *fleet) bool { return f.setPolicy(pickAll) })},
		{"a user places on one cluster", byUser(func(f *fleet) bool { return f.setPolicy(pickOne) })},
		{"a user places on cluster a", byUser(func(f *fleet) bool { return f.setPolicy(pickA) })},
		{"a user places on cluster b", byUser(func(f *fleet) bool { return f.setPolicy(pickB) })},
	},
	perCluster("a user has cluster %s leave", func(_ *fleetModel, f *fleet, i int) bool {
		return byUser(func(f *fleet) bool {
			m := &f.hub.members[i]
			return when(m.exists && !m.leaving, func() {
				m.leaving, f.in = true, f.in&^bit(i)
				f.asked |= bit(i)
			})
		})(nil, f)
	}),
	perCluster("a user has cluster %s join", func(_ *fleetModel, f *fleet, i int) bool {
		return byUser(func(f *fleet) bool {
			return when(!f.in.has(i) && !f.hub.members[i].exists, func() {
				f.in |= bit(i)
				f.join(i)
				// The Placement left it on request. The request ends when the Placement selects it again.
				f.keep(f.wanted() & f.hub.decision.clusters & bit(i))
			})
		})(nil, f)
	}),
	perCluster("a user releases the orphaned object on cluster %s", func(_ *fleetModel, f *fleet, i int) bool {
		return byUser(func(f *fleet) bool {
			inventory := &f.inventory[i]
			return when(inventory.exists && inventory.orphaned && !inventory.released, func() {
				inventory.released = true
				f.asked |= bit(i)
			})
		})(nil, f)
	}),
)

var faultSteps = joined(
	[]fleetStep{
		{"the hub is backed up", func(_ *fleetModel, f *fleet) bool {
			return when(f.faults > 0 && !f.backedUp && f.reapply == 0, func() { f.backup, f.backedUp = f.hub, true })
		}},
		{"etcd is restored", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.backedUp, func() {
				f.hub = f.backup
				f.restart()
				f.restored(f.backup)
			})
		})},
		{"the hub is lost", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.backedUp, func() {
				f.hub = fleetHub{}
				f.restart()
				f.restored(f.backup)
				f.reapply = reapplyDecision | reapplyWorks | reapplyWorks<<1
			})
		})},
		{"the decision fails, and the status reports the failure", func(_ *fleetModel, f *fleet) bool {
			p := &f.hub.placement
			return when(f.faults > 0 && p.exists && p.behind && !p.failed, func() { p.failed = true })
		}},
		{"the controller of Placements restarts", func(_ *fleetModel, f *fleet) bool {
			return when(f.placer != placerMemory{}, func() { f.placer = placerMemory{} })
		}},
		{"the leader of Placements is paused before it writes", byFault(func(m *fleetModel, f *fleet) bool {
			return when(f.hub.placement.exists && !f.paused.exists, func() {
				f.paused = pausedPlacer{exists: true, uid: f.hub.placement.uid, clusters: m.decide(f)}
				f.placer = placerMemory{}
			})
		})},
		{"the leader of WorkSets is paused before it deletes", byFault(func(m *fleetModel, f *fleet) bool {
			f.deletes, f.conflicts = 0, 0
			for i := range clusterCount {
				clusters, certain := m.selection(f.hub.placement, f.hub.decision)
				w := f.hub.works[i]
				unselected := w.exists && !w.deleted && !clusters.has(i)
				if f.hub.set.exists && !f.hub.set.deleting && unselected && m.mayWithdraw(f, i, certain) {
					f.deletes |= bit(i)
				}
			}
			return f.deletes != 0
		})},
		{"the watches of WorkSets lag", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(!f.cache.lags, func() { f.cache = fleetCache{true, f.hub.placement, f.hub.decision} })
		})},
		{"the Placement vanishes", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.placement.exists, func() { f.hub.placement = placementRecord{} })
		})},
		{"the PlacementDecision vanishes", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.decision.exists, func() { f.hub.decision = decisionRecord{}; f.changedDecision() })
		})},
		{"the WorkSet loses its finalizer and vanishes", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.set.exists, func() { f.hub.set = setRecord{} })
		})},
		{"the definition of WorkSets is removed", byFault(func(_ *fleetModel, f *fleet) bool {
			set := &f.hub.set
			return when(set.exists && !set.deleting, func() { set.deleting, set.withDefinition = true, true })
		})},
		{"the definition of Works is removed", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.worksOn() != 0, func() {
				for i := range clusterCount {
					f.deleteByHand(i)
				}
			})
		})},
		{"the network of the hub fails", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.late != allClusters, func() { f.late = allClusters })
		})},
		{"the records of members that left are lost", byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.removals != 0, func() { f.hub.removals, f.hub.later = 0, 0 })
		})},
	},
	perCluster("the Work of cluster %s loses its finalizer and vanishes", func(m *fleetModel, f *fleet, i int) bool {
		return byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.works[i].exists, func() { f.hub.works[i] = workRecord{}; f.changedWork(i) })
		})(m, f)
	}),
	perCluster("the namespace of cluster %s is deleted", func(m *fleetModel, f *fleet, i int) bool {
		return byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.works[i].exists && !f.hub.works[i].deleted, func() { f.deleteByHand(i) })
		})(m, f)
	}),
	perCluster("the MemberCluster of cluster %s vanishes", func(m *fleetModel, f *fleet, i int) bool {
		return byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.hub.members[i].exists, func() {
				if f.hub.members[i].leaving { // as the controller of Placements observes it
					f.placer.removed |= bit(i)
				}
				f.hub.members[i] = memberRecord{}
			})
		})(m, f)
	}),
	perCluster("the hub rejects cluster %s, which gets the credential of another hub",
		func(m *fleetModel, f *fleet, i int) bool {
			return byFault(func(_ *fleetModel, f *fleet) bool {
				return when(f.hub.members[i].exists && !f.foreign.has(i), func() { f.foreign |= bit(i) })
			})(m, f)
		}),
	perCluster("cluster %s is not healthy", func(m *fleetModel, f *fleet, i int) bool {
		return byFault(func(_ *fleetModel, f *fleet) bool {
			r := &f.hub.members[i]
			return when(r.exists && !r.unhealthy, func() { r.unhealthy = true })
		})(m, f)
	}),
	perCluster("the AppliedWork of cluster %s vanishes", func(m *fleetModel, f *fleet, i int) bool {
		return byFault(func(_ *fleetModel, f *fleet) bool {
			return when(f.inventory[i].exists, func() {
				f.inventory[i] = inventoryRecord{}
				f.unknown |= f.live & bit(i)
			})
		})(m, f)
	}),
)

var fleetSteps = joined(controllerSteps, recoverySteps, userSteps, faultSteps)

// fairSteps are the steps that happen eventually.
var fairSteps = joined(recoverySteps, controllerSteps)

// deleteByHand deletes a generated Work without a request.
func (f *fleet) deleteByHand(i int) {
	if w := &f.hub.works[i]; w.exists && !w.deleted {
		w.deleted = true
		f.changedWork(i)
	}
}

// restart restarts all controllers.
func (f *fleet) restart() {
	f.placer, f.paused, f.deletes, f.conflicts, f.cache = placerMemory{}, pausedPlacer{}, 0, 0, fleetCache{}
}

// restored sets the users' intent to the contents of a backup. A request in the backup counts as a request.
func (f *fleet) restored(b fleetHub) {
	f.backup, f.backedUp, f.reapply = b, true, 0
	ends := b.set.exists && b.set.deleting && !b.set.withDefinition
	f.wantsPlacement, f.wantsSet, f.policy = b.placement.exists, b.set.exists && !ends, b.placement.policy
	f.in = 0
	for i := range clusterCount {
		if b.members[i].exists && !b.members[i].leaving {
			f.in |= bit(i)
		}
	}
	f.left &^= f.in
	selected := b.decision.clusters
	if b.placement.exists && b.placement.policy != pickOne {
		selected = b.placement.policy.names()
	}
	if f.wantsSet && f.wantsPlacement {
		f.keep(selected & f.in)
	}
	for i := range clusterCount {
		w := b.works[i]
		unselected := b.placement.exists && !selected.has(i) &&
			(b.placement.policy != pickOne || w.exists && w.by == b.set.uid)
		several := b.placement.exists && b.placement.policy == pickOne && b.decision.clusters.count() > 1
		if unselected || several || ends || b.members[i].leaving || w.deleted && w.requested {
			f.asked |= bit(i)
		}
	}
}

// resumePlacer lets the paused leader of Placements write its decision.
func (m *fleetModel) resumePlacer(f *fleet) bool {
	p := f.paused
	if !p.exists {
		return false
	}
	f.paused = pausedPlacer{}
	expired := f.hub.decision.exists && m.mutant != placerNotFenced // the confirmation is too old by then
	if p.conflict || !f.hub.placement.exists || f.hub.placement.uid != p.uid || expired {
		return true
	}
	f.write(p.clusters)
	return true
}

// resumeWorkSets lets the paused leader of WorkSets execute its deletions.
func (m *fleetModel) resumeWorkSets(f *fleet) bool {
	if f.deletes == 0 {
		return false
	}
	doomed := f.deletes &^ f.conflicts
	f.deletes, f.conflicts = 0, 0
	if m.mutant == workSetsNotFenced { // otherwise its confirmation is too old by then
		for i := range clusterCount {
			if w := f.hub.works[i]; doomed.has(i) && w.exists && !w.deleted {
				m.withdraw(f, i, 0)
			}
		}
	}
	return true
}
