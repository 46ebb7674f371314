package agent

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/internal/withdrawal"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/placement"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The model of the fleet has a Placement, a WorkSet with one object, two clusters, the controllers of both kinds and
// the agents. All orders of steps of users, faults and controllers are walked. The decisions are those of the code:
// package scheduler, heartbeat.Monitor, lifecycle.{NextJoinRequest,NextAgent,Taints}, placement.ClusterOf,
// withdrawal.{Undocumented,RemovedAfter,Complete,Unselected},
// deletion.{OfGenerator,OfWork}, and adopt, orphan, due and rebuilt of this package.
//
// It checks that no object is deleted on a member unless a user requested the deletion and has not withdrawn the
// request; and that from every state, without further steps of users and faults, each request is carried out. After a
// fault, which may have destroyed a request, an object can be kept instead, if it is reported.

const clusterCount = 2

// clusterSet is a set of clusters, a bit for each.
type clusterSet uint8

const allClusters clusterSet = 1<<clusterCount - 1

func bit(i int) clusterSet { return 1 << i }

func (s clusterSet) has(i int) bool { return s&bit(i) != 0 }

func (s clusterSet) count() (n int) {
	for i := range clusterCount {
		if s.has(i) {
			n++
		}
	}
	return n
}

func clusterName(i int) string { return string(rune('a' + i)) }

// A policyKind is a placement policy.
type policyKind uint8

const (
	pickAll policyKind = iota
	pickOne
	pickA
	pickB
	policyKinds
)

// names returns the clusters that a policy names; all: it names none.
func (p policyKind) names() clusterSet {
	switch p {
	case pickA:
		return 1
	case pickB:
		return 2
	default:
		return allClusters
	}
}

type (
	memberRecord struct {
		exists, leaving, joined, unhealthy bool
	}
	placementRecord struct {
		exists   bool
		uid      uint8
		policy   policyKind
		behind   bool // the status is about an earlier generation
		failed   bool // or about a decision of this one that failed
		decided  bool // status.decidedGeneration is set
		selected uint8
	}
	decisionRecord struct {
		exists   bool
		owner    uint8 // the UID of the Placement; 0: none
		clusters clusterSet
	}
	setRecord struct {
		exists, deleting, withDefinition bool
		uid                              uint8
	}
	workRecord struct {
		exists, deleted, requested bool
		uid, by                    uint8 // by is the UID of the WorkSet
	}
)

// fleetHub is what the hub stores.
type fleetHub struct {
	members   [clusterCount]memberRecord
	placement placementRecord
	decision  decisionRecord
	set       setRecord
	works     [clusterCount]workRecord
	removals  clusterSet // clusters whose leave is on record
	later     clusterSet // of those, whose record is later than the PlacementDecision
}

// placerMemory is what the controller of Placements has in memory.
type placerMemory struct {
	decided  bool
	fresh    bool // the Placement has not changed since
	uid      uint8
	clusters clusterSet
	removed  clusterSet // clusters whose removal on request it observed
}

// pausedPlacer is a leader that has decided, and is paused before it writes.
type pausedPlacer struct {
	exists   bool
	uid      uint8 // of the Placement
	clusters clusterSet
	conflict bool // the PlacementDecision has changed since
}

// fleetCache is the state that the controller of WorkSets observes while its watches lag.
type fleetCache struct {
	lags      bool
	placement placementRecord
	decision  decisionRecord
}

// inventoryRecord is an AppliedWork with one object.
type inventoryRecord struct {
	exists, orphaned, released, request bool
	uid                                 uint8 // of the Work
}

// fleet is a state of the model.
type fleet struct {
	hub       fleetHub
	backup    fleetHub
	backedUp  bool
	reapply   uint8 // the objects of the backup that are not created again yet, after the hub was lost
	placer    placerMemory
	paused    pausedPlacer
	deletes   clusterSet // a paused leader of WorkSets is about to delete the Works of these clusters
	conflicts clusterSet // those of them that have changed since
	cache     fleetCache
	inventory [clusterCount]inventoryRecord

	live    clusterSet // the object exists on the member
	foreign clusterSet // the hub rejects the agent, and the agent has the credential of another hub
	late    clusterSet // the hub has received no heartbeat of the cluster since an outage of its network
	left    clusterSet // the agent has left, and does nothing until the cluster joins
	unknown clusterSet // the AppliedWork was lost: the agent finds the object when there is a Work

	// What users want. The oracle uses nothing else.
	wantsPlacement, wantsSet bool
	policy                   policyKind
	in                       clusterSet
	asked                    clusterSet // a user requested the deletion of the object, and has not withdrawn the request
	damaged                  bool       // there was a fault, which may have destroyed a request

	failover      bool  // the Placement leaves clusters that have a taint
	users, faults uint8 // how many more steps of these there are
}

func startOfFleet(policy policyKind, users, faults uint8) fleet {
	f := fleet{users: users, faults: faults, in: allClusters, wantsPlacement: true, wantsSet: true, policy: policy}
	f.asked = allClusters &^ policy.names()
	for i := range clusterCount {
		f.hub.members[i] = memberRecord{exists: true, joined: true}
	}
	f.hub.placement = placementRecord{exists: true, uid: 1, behind: true, policy: policy}
	f.hub.set = setRecord{exists: true, uid: 1}
	return f
}

// freshUID returns the lowest UID that is not used.
func freshUID(used ...uint8) uint8 {
	for uid := uint8(1); ; uid++ {
		if !slices.Contains(used, uid) {
			return uid
		}
	}
}

func (f *fleet) freshPlacement() uint8 {
	return freshUID(f.hub.placement.uid, f.hub.decision.owner, f.placer.uid, f.backup.placement.uid,
		f.backup.decision.owner, f.cache.placement.uid, f.cache.decision.owner, f.paused.uid)
}

func (f *fleet) freshSet() uint8 {
	used := []uint8{f.hub.set.uid, f.backup.set.uid}
	for i := range clusterCount {
		used = append(used, f.hub.works[i].by, f.backup.works[i].by)
	}
	return freshUID(used...)
}

func (f *fleet) freshWork(i int) uint8 {
	return freshUID(f.hub.works[i].uid, f.backup.works[i].uid, f.inventory[i].uid)
}

// fleetModel has the rules, one of which a mutant disables.
type fleetModel struct {
	mutant    fleetMutant
	scheduler *scheduler.Scheduler
	policies  [policyKinds]*scheduler.Policy
	chosen    map[choiceKey]clusterSet
	agents    map[agentKey]agentResult
	violation string
}

func newFleetModel(t testing.TB, mutant fleetMutant) *fleetModel {
	decider, err := scheduler.New(scheduler.Options{
		Registry: plugins.Registry(), Profiles: []scheduler.Profile{plugins.DefaultProfile()},
	})
	require.NoError(t, err)
	m := &fleetModel{
		mutant: mutant, scheduler: decider, chosen: map[choiceKey]clusterSet{}, agents: map[agentKey]agentResult{},
	}
	for kind, spec := range []placementv1alpha1.PlacementPolicy{
		{Type: placementv1alpha1.PickAll},
		{Type: placementv1alpha1.PickN, NumberOfClusters: new(int32(1))},
		{Type: placementv1alpha1.PickFixed, ClusterNames: []string{"a"}},
		{Type: placementv1alpha1.PickFixed, ClusterNames: []string{"b"}},
	} {
		m.policies[kind], err = scheduler.NewPolicy(&spec)
		require.NoError(t, err)
	}
	return m
}

// remove deletes objects from members.
func (m *fleetModel) remove(f *fleet, clusters clusterSet, reason string) {
	clusters &= f.live
	if bad := clusters &^ f.asked; bad != 0 && m.violation == "" {
		m.violation = fmt.Sprintf("the objects on clusters %02b were deleted without a request: %s", bad, reason)
	}
	f.live &^= clusters
}

// ask records a request of a user to delete the object on clusters.
func (f *fleet) ask(clusters clusterSet) { f.asked |= clusters }

// keep withdraws requests, except for those that are being executed.
func (f *fleet) keep(clusters clusterSet) {
	clusters &= f.in
	for i := range clusterCount {
		w, inventory := f.hub.works[i], f.inventory[i]
		begun := w.exists && w.deleted && w.requested || inventory.request || inventory.released
		if clusters.has(i) && !begun {
			f.asked &^= bit(i)
		}
	}
}

func (f *fleet) worksOn() (on clusterSet) {
	for i := range clusterCount {
		if f.hub.works[i].exists {
			on |= bit(i)
		}
	}
	return on
}

// wanted returns the clusters on which users want the object.
func (f *fleet) wanted() clusterSet {
	switch {
	case !f.wantsSet || !f.wantsPlacement:
		return 0
	case f.policy == pickOne:
		p, chosen := f.hub.placement, f.hub.decision.clusters
		if !p.exists || p.behind || chosen.count() > 1 { // it is not chosen yet
			return 0
		}
		return f.in & chosen
	default:
		return f.in & f.policy.names()
	}
}

// changedDecision notifies paused leaders and records that the PlacementDecision was written.
func (f *fleet) changedDecision() { f.paused.conflict, f.hub.later = f.paused.exists, 0 }

func (f *fleet) changedWork(i int) { f.conflicts |= bit(i) & f.deletes }

// choiceKey is the input of a decision.
type choiceKey struct {
	policy   policyKind
	members  [clusterCount]memberRecord
	removed  clusterSet
	on       clusterSet
	late     clusterSet
	failover bool
}

// taints returns the taints of the clusters after an outage of the hub's network that has ended for all clusters
// except the late ones.
func (m *fleetModel) taints(late clusterSet) (taints [clusterCount][]membershipv1alpha1.Taint) {
	monitor, now := heartbeat.NewMonitor(heartbeat.Policy{}), time.Unix(0, 0)
	pass := func(d time.Duration, silent clusterSet) {
		for range d / time.Second {
			now = now.Add(time.Second)
			for i := range clusterCount {
				if !silent.has(i) && now.Unix()%60 == int64(i) {
					monitor.Observe(clusterName(i), now, now)
				}
			}
			monitor.Expire(now)
		}
	}
	for i := range clusterCount {
		monitor.Track(clusterName(i), time.Minute, now)
	}
	pass(5*time.Minute, 0)
	if late != 0 {
		pass(10*time.Minute, allClusters)
	}
	pass(2*time.Minute, late) // the others come back
	for i := range clusterCount {
		observed, _ := monitor.Health(clusterName(i))
		healthy := metav1.Condition{Status: metav1.ConditionTrue}
		if observed.State.Unknown() {
			healthy.Status, healthy.Reason = metav1.ConditionUnknown, membershipv1alpha1.ReasonHeartbeatLost
		}
		taints[i], _ = lifecycle.Taints(lifecycle.TaintsObserved{
			Now: now, In: true, Healthy: healthy, Suspended: observed.Suspended && m.mutant != outageTaints,
		})
	}
	return taints
}

// choose returns the decision of the scheduler.
func (m *fleetModel) choose(k choiceKey) clusterSet {
	if known, ok := m.chosen[k]; ok {
		return known
	}
	cache, taints := &scheduler.Cache{}, m.taints(k.late)
	var names []string
	for i, record := range k.members {
		switch on := k.on.has(i); {
		case record.exists:
			member := &membershipv1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(i)}}
			for condition, is := range map[string]bool{
				membershipv1alpha1.ConditionJoined:  record.joined,
				membershipv1alpha1.ConditionHealthy: record.joined && !record.unhealthy && !k.late.has(i),
			} {
				c := metav1.Condition{Type: condition, Status: metav1.ConditionFalse}
				if is {
					c.Status = metav1.ConditionTrue
				}
				member.Status.Conditions = append(member.Status.Conditions, c)
			}
			if record.joined {
				member.Status.Properties = []membershipv1alpha1.Property{{Name: "id", Value: "x"}}
			}
			if record.leaving {
				member.Spec.State = membershipv1alpha1.StateLeave
			}
			member.Spec.Taints = taints[i]
			cluster := placement.ClusterOf(member)
			if m.mutant == unhealthyLeft && record.unhealthy {
				cluster.Leaving = true
			}
			cache.Update(cluster)
		case on && !k.removed.has(i):
			if m.mutant != absentLeft {
				cache.Update(&scheduler.Cluster{Name: clusterName(i), Absent: true, Unreported: true})
			}
		}
		if k.on.has(i) && !k.removed.has(i) {
			names = append(names, clusterName(i))
		}
	}
	result, err := m.scheduler.Schedule(context.Background(), cache.Snapshot(), &scheduler.Request{
		Name: "apps/shop", Policy: m.policies[k.policy], Bound: names, Placed: names, Failover: k.failover,
		Now: time.Unix(1000, 0),
	})
	if err != nil {
		panic(err)
	}
	var chosen clusterSet
	for _, choice := range result.Chosen {
		chosen |= bit(int(choice.Cluster.Name[0] - 'a'))
	}
	m.chosen[k] = chosen
	return chosen
}

// object returns a Placement with the recorded status.
func (r placementRecord) object() *placementv1alpha1.Placement {
	p := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	p.Status.SelectedClusters = int32(r.selected)
	if p.Status.ObservedGeneration = 2; r.behind && !r.failed {
		p.Status.ObservedGeneration = 1
	}
	if p.Status.DecidedGeneration = 2; r.behind {
		p.Status.DecidedGeneration = 1
	}
	if !r.decided {
		p.Status.DecidedGeneration = 0
	}
	return p
}

// owned returns the clusters of the PlacementDecision of the Placement. A PlacementDecision without an owner is
// adopted.
func (f *fleet) owned() (clusters clusterSet, exists bool) {
	d := f.hub.decision
	if !d.exists || d.owner != f.hub.placement.uid && d.owner != 0 {
		return 0, false
	}
	return d.clusters, true
}

// decide returns a decision of the controller of Placements, before it is written.
func (m *fleetModel) decide(f *fleet) clusterSet {
	if f.placer.uid != f.hub.placement.uid {
		f.placer.decided, f.placer.fresh, f.placer.clusters, f.placer.uid = false, false, 0, f.hub.placement.uid
	}
	on := f.placer.clusters
	if !f.placer.decided {
		clusters, exists := f.owned()
		decisions := 0
		if exists {
			on, decisions = clusters, 1
		}
		refers := f.hub.set.exists && !f.hub.set.deleting && m.mutant != decidedAnew
		if refers && withdrawal.Undocumented(&f.hub.placement.object().Status, decisions) {
			for i := range clusterCount {
				if w := f.hub.works[i]; w.exists && !w.deleted {
					on |= bit(i)
				}
			}
		}
	}
	removed := f.placer.removed
	for i := range clusterCount {
		unexplained := on.has(i) && !f.hub.members[i].exists && !removed.has(i)
		if unexplained && f.hub.removals.has(i) && f.removedAfter(i, m.mutant) {
			removed |= bit(i)
		}
	}
	return m.choose(choiceKey{f.hub.placement.policy, f.hub.members, removed, on &^ removed, f.late, f.failover})
}

// removedAfter reports whether the record of a leave is later than the PlacementDecision.
func (f *fleet) removedAfter(i int, mutant fleetMutant) bool {
	if mutant == oldRemovalCounts {
		return true
	}
	if _, exists := f.owned(); !exists {
		return false
	}
	written := metav1.Unix(100, 0)
	decision := &placementv1alpha1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "100", ManagedFields: []metav1.ManagedFieldsEntry{{Time: &written}},
	}}
	if f.hub.later.has(i) {
		return withdrawal.RemovedAfter(time.Unix(200, 0), "200", decision)
	}
	return withdrawal.RemovedAfter(time.Unix(50, 0), "50", decision)
}

// write writes a decision.
func (f *fleet) write(clusters clusterSet) {
	want := decisionRecord{exists: clusters != 0, owner: f.hub.placement.uid, clusters: clusters}
	if !want.exists {
		want = decisionRecord{}
	}
	if f.hub.decision != want {
		f.hub.decision = want
		f.changedDecision()
	}
}

// place is a reconcile of the Placement. The status is written by another step.
func (m *fleetModel) place(f *fleet) bool {
	if !f.hub.placement.exists {
		f.placer = placerMemory{removed: f.placer.removed}
		return true
	}
	clusters := m.decide(f)
	f.placer.decided, f.placer.fresh, f.placer.clusters = true, true, clusters
	f.write(clusters)
	// The choice among several clusters is the user's request. It is final when the other clusters have no object: a
	// Placement that is created again before that may choose another one of those that have the object.
	if f.wantsSet && (f.hub.placement.policy != pickOne || (f.live|f.worksOn())&^clusters == 0) {
		f.keep(clusters & f.in)
	}
	return true
}

// report writes the status of the Placement.
func (m *fleetModel) report(f *fleet) bool {
	p := &f.hub.placement
	if !p.exists || !f.placer.fresh || f.placer.uid != p.uid {
		return false
	}
	if clusters, _ := f.owned(); clusters != f.placer.clusters {
		return false // it is written first
	}
	now := *p
	now.behind, now.failed, now.decided, now.selected = false, false, true, uint8(f.placer.clusters.count())
	if now == *p {
		return false
	}
	*p = now
	return true
}

// selection returns the clusters that the WorkSet observes as selected by its Placement.
func (m *fleetModel) selection(p placementRecord, d decisionRecord) (clusters clusterSet, certain bool) {
	if !p.exists {
		return 0, m.mutant == missingPlacementEmpty
	}
	if d.exists && d.owner == p.uid {
		clusters = d.clusters
	}
	object := p.object()
	if m.mutant == failedIsDecided {
		object.Status.DecidedGeneration = object.Generation
	}
	return clusters, withdrawal.Complete(object, clusters.count()) || m.mutant == undecidedIsEmpty
}

// distribute is a reconcile of the WorkSet, for one cluster.
func (m *fleetModel) distribute(f *fleet, i int) bool {
	set, w := &f.hub.set, &f.hub.works[i]
	if !set.exists {
		if m.mutant == unclaimedWorksDeleted && w.exists && !w.deleted {
			m.withdraw(f, i, set.uid)
			return true
		}
		return false
	}
	if set.deleting {
		return false
	}
	observed := f.cache
	if !observed.lags {
		observed.placement, observed.decision = f.hub.placement, f.hub.decision
	}
	selected, certain := m.selection(observed.placement, observed.decision)
	record := f.hub.members[i]
	writable := record.exists && !record.leaving
	switch {
	case selected.has(i):
		switch {
		case !writable || w.exists && w.deleted:
			return false
		case !w.exists:
			*w = workRecord{exists: true, uid: f.freshWork(i), by: set.uid}
		case w.by != set.uid:
			w.by, w.requested = set.uid, false
		default:
			return false
		}
		f.changedWork(i)
		return true
	case !w.exists || w.deleted:
		return false
	}
	return m.mayWithdraw(f, i, certain) && m.withdraw(f, i, set.uid)
}

// mayWithdraw reports whether the Work of a cluster that is not selected is deleted.
func (m *fleetModel) mayWithdraw(f *fleet, i int, certain bool) bool {
	set, w, record := &f.hub.set, &f.hub.works[i], f.hub.members[i]
	live, alive := m.selection(f.hub.placement, f.hub.decision)
	u := withdrawal.Unselected{
		Certain: certain, InFleet: record.exists && !record.leaving, Claimed: w.by == set.uid,
		Confirmed: alive && !live.has(i) && !set.deleting,
	}
	switch m.mutant {
	case earlierWorksDeleted:
		u.Claimed = true
	case cachedWithdrawal:
		u.Confirmed = true
	}
	return u.Withdraws()
}

func (m *fleetModel) withdraw(f *fleet, i int, by uint8) bool {
	w := &f.hub.works[i]
	w.deleted, w.requested = true, true
	f.changedWork(i)
	return true
}

// end is a reconcile of a WorkSet that is being deleted.
func (m *fleetModel) end(f *fleet) bool {
	set := &f.hub.set
	if !set.exists || !set.deleting {
		return false
	}
	state := definition.Served
	if set.withDefinition && m.mutant != definitionIsRequest {
		state = definition.Terminating
	}
	if deletion.OfGenerator(true, time.Unix(1, 0), state) {
		for i := range clusterCount {
			if w := &f.hub.works[i]; w.exists && (!w.deleted || !w.requested) {
				m.withdraw(f, i, set.uid)
			}
		}
	}
	*set = setRecord{}
	return true
}

// leave executes a step of the leave of a member.
func (m *fleetModel) leave(f *fleet, i int) bool {
	record, w := &f.hub.members[i], &f.hub.works[i]
	switch {
	case !record.exists || !record.leaving:
		return false
	case w.exists && (!w.deleted || !w.requested):
		return m.withdraw(f, i, 0)
	case w.exists, f.foreign.has(i), f.late.has(i): // the hub waits for the agent
		return false
	}
	m.remove(f, bit(i), "the member left") // orphaned objects are deleted as well
	f.inventory[i], f.unknown = inventoryRecord{}, f.unknown&^bit(i)
	*record = memberRecord{}
	f.left |= bit(i)
	f.hub.removals |= bit(i)
	f.hub.later |= bit(i)
	f.placer.removed |= bit(i)
	return true
}

// askOtherHub lets an agent that its hub rejects try another hub, which knows a former member with the same claim
// that has left.
func (m *fleetModel) askOtherHub(f *fleet, i int) bool {
	if !f.foreign.has(i) || f.left.has(i) {
		return false
	}
	const uid = "member"
	request := lifecycle.JoinRequestObserved{
		CreatedAt: time.Unix(10, 0), ClusterID: "id", Name: clusterName(i), HubID: "other",
		Agent: lifecycle.RequesterSeen{Claim: "claim", MemberUID: uid, HubID: "hub"}, Tombstones: []lifecycle.Tombstone{{
			MemberUID: uid, ClusterID: "id", Claim: "claim", Decided: true, Time: time.Unix(5, 0),
		}},
	}
	if m.mutant == otherHubEnds {
		request.Agent.HubID = ""
	}
	observed := lifecycle.AgentObserved{Now: time.Unix(20, 0), Hub: lifecycle.HubRefused,
		Record: lifecycle.Record{Claim: true, Registered: true}, JoinRequest: lifecycle.JoinRequestHeld}
	switch answer := lifecycle.NextJoinRequest(request); {
	case answer.Reason == membershipv1alpha1.ReasonDifferentHub:
		observed.JoinRequest = lifecycle.JoinRequestDifferentHub
	case answer.Answer == membershipv1alpha1.AnswerDeregistered:
		observed.JoinRequest = lifecycle.JoinRequestDeregistered
	}
	if !slices.Contains(lifecycle.NextAgent(observed).Actions, lifecycle.RecordDeregistered) {
		return false
	}
	m.remove(f, bit(i), "another hub deregistered the member")
	f.inventory[i], f.unknown, f.left = inventoryRecord{}, f.unknown&^bit(i), f.left|bit(i)
	return true
}

// collect runs the garbage collector.
func (m *fleetModel) collect(f *fleet) bool {
	if d := f.hub.decision; !d.exists || d.owner == 0 || f.hub.placement.exists && d.owner == f.hub.placement.uid {
		return false
	}
	f.hub.decision = decisionRecord{}
	f.changedDecision()
	return true
}

// agentKey is the input of a reconcile of an agent.
type agentKey struct {
	work                 workRecord
	inventory            inventoryRecord
	live, unknown, asked bool
}

type agentResult struct {
	work      workRecord
	inventory inventoryRecord
	live      bool
	unknown   bool
	removed   string
}

var theObject = manifestsOf(1)

func (r inventoryRecord) object() *v1alpha1.AppliedWork {
	if !r.exists {
		return nil
	}
	applied := &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{UID: "inventory"},
		Spec:       v1alpha1.AppliedWorkSpec{Work: v1alpha1.WorkReference{Name: "shop", UID: uidOf(r.uid), Generation: 1}},
	}
	applied.Status.Resources = apply.Ahead(nil, theObject)
	if r.orphaned {
		o := &applied.Status.Resources[0]
		o.OrphanedTime, o.Released = &metav1.Time{Time: time.Unix(1, 0)}, r.released
	}
	if r.request {
		applied.Status.DeletionRequest = &v1alpha1.DeletionRequest{WorkUID: uidOf(r.uid)}
	}
	return applied
}

func uidOf(n uint8) types.UID { return types.UID(fmt.Sprint("u", n)) }

func recordOf(applied *v1alpha1.AppliedWork, uid uint8) (r inventoryRecord) {
	if applied == nil || len(applied.Status.Resources) == 0 {
		return r
	}
	o := applied.Status.Resources[0]
	return inventoryRecord{
		exists: true, uid: uid, orphaned: o.OrphanedTime != nil, released: o.Released,
		request: applied.Status.DeletionRequest != nil && applied.Status.DeletionRequest.WorkUID == uidOf(uid),
	}
}

// reconcile is a reconcile of the agent of a cluster.
func (m *fleetModel) reconcile(f *fleet, i int) bool {
	if f.left.has(i) || f.foreign.has(i) || f.late.has(i) {
		return false
	}
	k := agentKey{f.hub.works[i], f.inventory[i], f.live.has(i), f.unknown.has(i), false}
	r, known := m.agents[k]
	if !known {
		r = m.agent(k)
		m.agents[k] = r
	}
	if r.work == k.work && r.inventory == k.inventory && r.live == k.live && r.unknown == k.unknown {
		return false
	}
	if k.live && !r.live {
		m.remove(f, bit(i), r.removed)
	}
	if r.live && !k.live {
		f.live |= bit(i)
		if f.policy != pickOne {
			f.asked &^= f.wanted() & bit(i)
		}
	}
	if f.unknown &^= bit(i); r.unknown {
		f.unknown |= bit(i)
	}
	if f.hub.works[i] != r.work {
		f.changedWork(i)
	}
	f.hub.works[i], f.inventory[i] = r.work, r.inventory
	return true
}

// agent returns the decision of the agent.
func (m *fleetModel) agent(k agentKey) (r agentResult) {
	r = agentResult{work: k.work, inventory: k.inventory, live: k.live, unknown: k.unknown}
	now := time.Unix(10, 0)
	applied := k.inventory.object()
	uid := k.inventory.uid
	open := func() {
		desired := &v1alpha1.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{UID: "inventory"},
			Spec: v1alpha1.AppliedWorkSpec{
				Work: v1alpha1.WorkReference{Name: "shop", UID: uidOf(k.work.uid), Generation: 1},
			},
		}
		if uid = k.work.uid; applied != nil {
			adopt(applied, desired, theObject, now)
		} else {
			applied = desired
			var found []v1alpha1.AppliedResource
			if k.live {
				found = apply.Ahead(nil, theObject)
			}
			applied.Status.Resources = rebuilt(theObject, found, now)
		}
		applied.Status.Resources = apply.Ahead(applied.Status.Resources, theObject)
		r.unknown = false
	}
	if k.work.exists && !k.work.deleted {
		open()
		r.inventory, r.live = recordOf(applied, uid), true
		return r
	}
	if applied == nil {
		if k.work.exists && k.live {
			open()
			r.inventory = recordOf(applied, uid)
		} else if k.work.exists {
			r.work = workRecord{}
		}
		return r
	}
	ended := k.inventory.request && (!k.work.exists || k.work.uid == k.inventory.uid)
	if !ended {
		observed := deletion.Work{
			Found: k.work.exists, Generated: m.mutant != handDeletedPrunes, Requested: k.work.requested,
		}
		if k.work.deleted {
			observed.Deleted = time.Unix(5, 0)
		}
		reason := deletion.OfWork(observed, deletion.Hub{Definition: definition.Served})
		ended = reason == deletion.Requested || m.mutant == missingWorkPrunes && !k.work.exists
		if !ended {
			orphan(applied, func(v1alpha1.AppliedResource) bool { return false }, reason, now)
		}
	}
	gone, _, _ := due(applied, ended, 0, now)
	recorded := k.inventory.request && k.inventory.uid == k.work.uid
	switch {
	case len(gone) > 0 && ended && k.work.exists && !recorded:
		r.inventory = recordOf(applied, k.work.uid)
		r.inventory.request = true // recorded before anything is deleted
		return r
	case len(gone) > 0:
		r.inventory, r.live, r.removed = inventoryRecord{}, false, "the Work has ended"
	default:
		r.inventory = recordOf(applied, uid)
	}
	if k.work.exists {
		r.work = workRecord{}
	}
	return r
}

// fleetStep is a step of a user, a fault or a controller. It returns false if it is not possible.
type fleetStep struct {
	name string
	do   func(m *fleetModel, f *fleet) bool
}

// settle runs all steps except those of users and faults until nothing changes, and returns the violation that it
// finds then.
func (m *fleetModel) settle(f *fleet) string {
	const maxPasses = 60
	for range maxPasses {
		before := *f
		for _, s := range fairSteps {
			s.do(m, f)
			if m.violation != "" {
				return m.violation
			}
		}
		if *f == before {
			return f.finalViolation()
		}
	}
	return "the controllers do not converge"
}

// finalViolation returns the violation in a state in which no other step is possible.
func (f *fleet) finalViolation() string {
	want := f.wanted()
	one := f.hub.decision.clusters
	if !f.damaged { // otherwise a fault may have destroyed the request to leave the chosen cluster
		one &= f.in
	}
	if f.policy == pickOne && f.wantsSet && f.wantsPlacement && f.in != 0 && one.count() != 1 {
		return fmt.Sprintf("clusters %02b are selected instead of one", f.hub.decision.clusters)
	}
	if missing := want &^ f.live; missing != 0 {
		return fmt.Sprintf("the object is wanted on clusters %02b, but does not exist", missing)
	}
	for i := range clusterCount {
		if !(f.asked & f.live &^ want).has(i) || f.wantsSet && !f.wantsPlacement && f.in.has(i) {
			continue // no object is deleted while a Placement is missing
		}
		if !f.damaged {
			return fmt.Sprintf("the request to delete the object on cluster %s was not carried out", clusterName(i))
		}
		if !f.inventory[i].orphaned && !f.hub.works[i].exists && !f.unknown.has(i) {
			return fmt.Sprintf("the object on cluster %s is kept, and not reported", clusterName(i))
		}
	}
	return ""
}

// fleetWalk is the result of a walk.
type fleetWalk struct {
	states []fleet
	from   []int32
	steps  []uint8
	index  map[fleet]int32
}

func (w *fleetWalk) number(f fleet, from int32, by int) {
	if _, known := w.index[f]; known {
		return
	}
	w.index[f] = int32(len(w.states))
	w.states, w.from, w.steps = append(w.states, f), append(w.from, from), append(w.steps, uint8(by))
}

func (w *fleetWalk) trace(i int32) string {
	var lines []string
	for ; w.from[i] >= 0; i = w.from[i] {
		lines = append(lines, fmt.Sprintf("  %s", fleetSteps[w.steps[i]].name))
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}

// fleetBound limits the depth of a walk.
type fleetBound struct {
	users, faults uint8 // steps of users, and faults
	converged     bool  // begin when everything is placed, and not with a new Placement and WorkSet
	failover      bool  // the Placement has a failover policy
}

// walk reaches every state within the bound, the nearest first, and returns the number of states and the first problem.
func (m *fleetModel) walk(bound fleetBound, limit int) (reached int, problem string) {
	w := &fleetWalk{index: map[fleet]int32{}}
	for _, policy := range []policyKind{pickAll, pickB} {
		start := startOfFleet(policy, 0, 0)
		if bound.converged {
			m.settle(&start)
			start.hub.removals = allClusters // clusters of these names have left before
		}
		start.users, start.faults, start.failover = bound.users, bound.faults, bound.failover
		w.number(start, -1, 0)
	}
	rests := map[fleet]bool{}
	var rest, next fleet // allocated once, because the steps take pointers
	for i := int32(0); int(i) < len(w.states) && int(i) < limit; i++ {
		f := w.states[i]
		rest = f
		rest.users, rest.faults = 0, 0
		if !rests[rest] {
			rests[rest] = true
			if finalViolation := m.settle(&rest); finalViolation != "" {
				const format = "%s\n%s\nwhen nothing else happens\n%+v\nends in\n%+v"
				return len(w.states), fmt.Sprintf(format, finalViolation, w.trace(i), f, rest)
			}
		}
		for n, s := range fleetSteps {
			next = f
			if !s.do(m, &next) || next == f {
				continue
			}
			if m.violation != "" {
				return len(w.states), fmt.Sprintf("%s\n%s\n  %s\n%+v", m.violation, w.trace(i), s.name, f)
			}
			w.number(next, i, n)
		}
	}
	return len(w.states), ""
}

// TestModelOfFleet walks the orders of steps: a part with few steps of users and faults, or more of them with
// MUSTER_MODEL=full.
func TestModelOfFleet(t *testing.T) {
	t.Parallel()
	walks, limit := []fleetBound{
		{users: 2}, {faults: 1}, {users: 1, faults: 1, converged: true}, {faults: 1, converged: true, failover: true},
	}, 50_000
	switch {
	case os.Getenv("MUSTER_MODEL") == "full":
		walks, limit = []fleetBound{
			{users: 3}, {users: 1, faults: 1}, {users: 2, faults: 1, converged: true},
			{users: 1, faults: 1, converged: true, failover: true},
		}, 2_000_000
	case raceEnabled:
		walks, limit = []fleetBound{{users: 1}, {faults: 1}}, 5_000
	}
	m := newFleetModel(t, "")
	for _, bound := range walks {
		began := time.Now()
		reached, problem := m.walk(bound, limit)
		if problem != "" {
			t.Fatalf("%+v: %s", bound, problem)
		}
		took := time.Since(began).Round(time.Millisecond)
		t.Logf("%+v: %d states in %s", bound, reached, took)
	}
}
