package agent

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/internal/deletion"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// The model has one Work of one member, the generator of the Work or a user who writes it by hand, and the agent.
// Users and faults act in any order. The decisions are those of the code: deletion.OfWork, deletion.OfGenerator,
// adopt, orphan, due, rebuilt, apply.Stale.
//
// It checks that no object is deleted on the member unless a user requested the deletion since the object was created
// and has not withdrawn the request; that each request is carried out in the end, or its objects are reported as
// orphaned where a fault destroyed the request; and that a release deletes those.

// mutant disables one of the rules.
type mutant string

const (
	correct            mutant = ""
	missingIsDeleted   mutant = "a missing Work is pruned"
	deletedIsRequest   mutant = "each deletionTimestamp of a Work is a request"
	handDeleted        mutant = "a generated Work that is deleted by hand is pruned"
	newUIDPrunes       mutant = "a Work with another UID prunes objects that it lacks"
	rollbackPrunes     mutant = "an earlier generation prunes objects that it lacks"
	overtakenPrunes    mutant = "a generation of a restored hub that is not an earlier one prunes objects that it lacks"
	formerEnds         mutant = "the deletion of a Work is one of the objects of a former Work"
	secondRestore      mutant = "a restore is not counted while the agent waits for the hub to confirm an earlier one"
	unseenRestore      mutant = "objects are deleted before the agent observes that the hub was restored"
	cachedPrune        mutant = "an object that a cached Work lacks is pruned"
	requestNotRecorded mutant = "a request is not recorded"
	unclaimedDeleted   mutant = "Works of a missing generator are deleted"
	definitionDeletes  mutant = "a generator that is deleted with its definition deletes its Works"
	emptyPrunes        mutant = "an empty selection prunes"
	forbiddenPrunes    mutant = "a forbidden list is an empty one"
	leaderNotFenced    mutant = "a paused leader executes an earlier decision"
	gateIgnored        mutant = "the gate is ignored"
	ownedByInventory   mutant = "objects go with their AppliedWork"
	lostIsEmpty        mutant = "a lost inventory is an empty one"
	releaseOfAll       mutant = "a release is about objects that are orphaned later as well"
)

var mutants = []mutant{
	missingIsDeleted, deletedIsRequest, handDeleted, newUIDPrunes, rollbackPrunes, overtakenPrunes, formerEnds,
	cachedPrune, requestNotRecorded, unclaimedDeleted,
	definitionDeletes, emptyPrunes, forbiddenPrunes, leaderNotFenced, gateIgnored, ownedByInventory, lostIsEmpty,
	releaseOfAll,
}

// objectSet is a set of objects: a, b.
type objectSet uint8

const all objectSet = 3

// generator is a WorkSet.
type generator struct {
	uid     types.UID
	deleted bool      // it has a deletionTimestamp, and a finalizer blocks the deletion
	chosen  bool      // the Placement selects the cluster
	objects objectSet // the result of its selectors and manifests
	edits   int       // edits that change no object
}

// modelWork is a Work on the hub.
type modelWork struct {
	uid       types.UID
	gen       int64
	objects   objectSet
	edits     int
	deleted   int // the time of its deletionTimestamp; 0: none
	finalizer bool
	requested bool
}

type hubState struct {
	generator *generator
	work      *modelWork
}

type model struct {
	mutant    mutant
	generated bool
	now       int
	uids      int
	trace     []string
	violation string

	hub              hubState
	backup           *hubState
	namespaceDeleted int
	works, sets      definition.State // definitions
	inventoryServed  bool
	selectionEmpty   bool // all selected objects are missing
	listForbidden    bool
	unreachable      bool // for the agent
	gateShut         bool
	rewound          bool   // etcd was restored, and the agent has not observed that
	restored         int64  // what Options.HubRestored returns
	waiting          bool   // for the hub to confirm that it is consistent after a restore
	stale            func() // what a paused leader is about to do

	cache     *modelWork // of the agent
	inventory *v1alpha1.AppliedWork
	recent    bool      // the request was observed already
	live      objectSet // objects on the member
	requested objectSet // of those, which a user asked to delete
	destroyed objectSet // of those, whose request a fault may have destroyed
	// of those, whose AppliedWork was lost: the agent finds them by their marks when there is a Work again
	unknown objectSet
}

func newModel(m mutant, generated bool) *model {
	return &model{mutant: m, generated: generated, works: definition.Served, sets: definition.Served,
		inventoryServed: true}
}

func (m *model) uid() types.UID { m.uids++; return types.UID(fmt.Sprint("u", m.uids)) }

func copyOf[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

// remove deletes objects from the member.
func (m *model) remove(objects objectSet, reason string) {
	objects &= m.live
	if bad := objects &^ m.requested; bad != 0 && m.violation == "" {
		m.violation = fmt.Sprintf("objects %b were deleted without a request: %s", bad, reason)
	}
	m.live &^= objects
	m.requested &^= objects
	m.destroyed &^= objects
}

// ask records a request of a user to delete objects. A request can get lost for objects that the agent does not know
// as objects of the Work.
func (m *model) ask(objects objectSet) {
	m.requested |= objects
	w := m.hub.work
	known := m.inventory != nil && w != nil && !m.rewound && !adopts(m.inventory.Spec.Work, v1alpha1.WorkReference{
		UID: w.uid, Generation: w.gen, HubRestored: m.restored,
	})
	if !known || w.deleted != 0 {
		m.destroyed |= objects
		return
	}
	m.destroyed = (m.destroyed|objects)&^(objects&w.objects) | m.unknown
	for _, r := range m.inventory.Status.Resources {
		if r.OrphanedTime != nil { // the agent may never observe that the Work contains it again
			m.destroyed |= objects & setIn([]v1alpha1.AppliedResource{r})
		}
	}
}

// keep withdraws requests whose execution has not begun.
func (m *model) keep(objects objectSet) {
	if w := m.hub.work; w != nil && (w.deleted != 0 || w.requested) { // a backup can contain the request
		return
	}
	released := func(r v1alpha1.AppliedResource) bool { return r.Released }
	if m.inventory != nil && (m.inventory.Status.DeletionRequest != nil ||
		slices.ContainsFunc(m.inventory.Status.Resources, released)) {
		return
	}
	if w := m.hub.work; w != nil {
		objects &= w.objects // the Work carries the request already
	}
	m.requested &^= objects
}

func (m *model) damage() { m.destroyed |= m.live | m.requested }

// wanted returns the objects that the users of the hub want on the member at this time.
func (m *model) wanted() objectSet {
	switch {
	case m.generated && m.hub.generator != nil && !m.hub.generator.deleted && m.hub.generator.chosen:
		return m.hub.generator.objects
	case !m.generated && m.hub.work != nil && m.hub.work.deleted == 0:
		return m.hub.work.objects
	}
	return 0
}

// action is a step of a user, a fault or a controller. It returns false if it is not possible.
type action struct {
	name string
	do   func(m *model) bool
}

func when(condition bool, do func()) bool {
	if condition {
		do()
	}
	return condition
}

var users = []action{
	{"create", func(m *model) bool {
		if m.generated {
			return when(m.hub.generator == nil && m.sets == definition.Served, func() {
				m.hub.generator = &generator{uid: m.uid(), chosen: true, objects: all}
				m.keep(all)
			})
		}
		return when(m.hub.work == nil && m.works == definition.Served && m.namespaceDeleted == 0, func() {
			m.hub.work = &modelWork{uid: m.uid(), gen: 1, objects: all}
			m.keep(all)
		})
	}},
	{"delete", func(m *model) bool {
		if m.generated {
			g := m.hub.generator
			return when(g != nil && !g.deleted && m.sets == definition.Served, func() { g.deleted = true; m.ask(all) })
		}
		w := m.hub.work
		return when(w != nil && w.deleted == 0 && m.works == definition.Served && m.namespaceDeleted == 0, func() {
			m.ask(w.objects)
			w.deleted = m.now
			if !w.finalizer {
				m.hub.work = nil
				m.damage()
			}
		})
	}},
	{"shrink", func(m *model) bool {
		if m.generated {
			g := m.hub.generator
			return when(g != nil && !g.deleted && g.objects == all, func() { g.objects = 1; m.ask(2) })
		}
		w := m.hub.work
		return when(w != nil && w.deleted == 0 && w.objects == all, func() { m.ask(2); w.objects = 1; w.gen++ })
	}},
	{"grow", func(m *model) bool {
		if m.generated {
			g := m.hub.generator
			return when(g != nil && !g.deleted && g.objects != all, func() {
				if g.objects = all; g.chosen {
					m.keep(2)
				}
			})
		}
		w := m.hub.work
		return when(w != nil && w.deleted == 0 && w.objects != all, func() { w.objects = all; w.gen++; m.keep(2) })
	}},
	{"edit", func(m *model) bool {
		if m.generated {
			g := m.hub.generator
			return when(g != nil && !g.deleted, func() { g.edits++ })
		}
		w := m.hub.work
		return when(w != nil && w.deleted == 0, func() { w.edits++; w.gen++ })
	}},
	{"unchoose", func(m *model) bool {
		g := m.hub.generator
		return when(g != nil && !g.deleted && g.chosen, func() { g.chosen = false; m.ask(all) })
	}},
	{"choose", func(m *model) bool {
		g := m.hub.generator
		return when(g != nil && !g.deleted && !g.chosen, func() { g.chosen = true; m.keep(g.objects) })
	}},
}

var faults = []action{
	{"back up", func(m *model) bool {
		m.backup = &hubState{copyOf(m.hub.generator), copyOf(m.hub.work)}
		return true
	}},
	{"restore etcd", func(m *model) bool { return m.restore(false, true, true) }},
	{"restore objects", func(m *model) bool { return m.restore(true, true, true) }},
	{"restore Works first", func(m *model) bool { return m.restore(true, false, true) }},
	{"restore without Works", func(m *model) bool { return m.restore(true, true, false) }},
	{"the Work vanishes", func(m *model) bool {
		return when(m.hub.work != nil, func() { m.hub.work = nil; m.damage() })
	}},
	{"a generated Work is deleted by hand", func(m *model) bool {
		return when(m.generated && m.hub.work != nil && m.hub.work.deleted == 0, func() { m.damage(); m.terminate() })
	}},
	{"the namespace is deleted", func(m *model) bool {
		return when(m.namespaceDeleted == 0, func() { m.namespaceDeleted = m.now; m.damage(); m.terminate() })
	}},
	{"the definition of Works is removed", func(m *model) bool {
		return when(m.works == definition.Served, func() { m.works = definition.Terminating; m.damage(); m.terminate() })
	}},
	{"the definition of generators is removed", func(m *model) bool {
		return when(m.sets == definition.Served, func() {
			m.sets = definition.Terminating
			if g := m.hub.generator; g != nil {
				g.deleted = true
				m.damage()
			}
		})
	}},
	{"the definition of AppliedWorks is removed", func(m *model) bool {
		return when(m.inventoryServed, func() {
			m.inventoryServed = false
			m.inventory = nil
			m.unknown |= m.live
			m.damage()
			if m.mutant == ownedByInventory {
				m.remove(all, "the objects were deleted with their AppliedWork")
			}
		})
	}},
	{"the selection is empty", func(m *model) bool { m.selectionEmpty = true; return true }},
	{"lists are forbidden", func(m *model) bool { m.listForbidden = true; return true }},
	{"the hub is unreachable", func(m *model) bool { m.unreachable = true; return true }},
	{"the gate is shut", func(m *model) bool { m.gateShut = true; return true }},
	{"a leader is paused or resumes", func(m *model) bool {
		if m.stale != nil {
			m.stale()
			m.stale = nil
			return true
		}
		g, w := m.hub.generator, m.hub.work
		return when(m.stale == nil && g != nil && !g.chosen && w != nil && w.deleted == 0, func() {
			uid := w.uid
			m.stale = func() {
				if m.mutant == leaderNotFenced && m.hub.work != nil && m.hub.work.uid == uid && m.hub.work.deleted == 0 {
					m.hub.work.requested = true
					m.terminate()
				}
			}
		})
	}},
	{"the agent restarts", func(m *model) bool { m.recent = false; m.cache = copyOf(m.hub.work); return true }},
	{"faults end", func(m *model) bool { m.heal(); return true }},
}

// terminate sets the deletionTimestamp of the Work.
func (m *model) terminate() {
	w := m.hub.work
	if w == nil || w.deleted != 0 {
		return
	}
	if w.deleted = m.now; !w.finalizer {
		m.hub.work = nil
		m.damage()
	}
}

// restore restores a backup: one of etcd without changes, or objects with new UIDs and without deletionTimestamps.
func (m *model) restore(objects, generators, works bool) bool {
	if m.backup == nil || m.works != definition.Served || m.sets != definition.Served || m.namespaceDeleted != 0 {
		return false
	}
	m.hub, m.stale = hubState{}, nil
	if generators {
		m.hub.generator = copyOf(m.backup.generator)
	}
	if works {
		m.hub.work = copyOf(m.backup.work)
	}
	if g := m.hub.generator; g != nil && objects {
		g.uid, g.deleted = m.uid(), false
	}
	if w := m.hub.work; w != nil && objects {
		w.uid, w.gen, w.deleted = m.uid(), 1, 0
	}
	// A request in the backup is a request, if the user had requested nothing else by then.
	if w := m.hub.work; w != nil && w.deleted != 0 && m.requested == 0 {
		m.ask(w.objects)
	}
	if g := m.hub.generator; g != nil {
		if g.deleted || !g.chosen {
			m.ask(all)
		}
		if w := m.hub.work; w != nil {
			m.ask(w.objects &^ g.objects) // the backup has a change that was on its way
		}
	}
	m.rewound = m.rewound || !objects
	m.gateShut = !objects && m.uids%2 == 0 // if the membership agent observes the epoch
	m.cache = nil
	m.destroyed = all
	m.keep(m.wanted())
	return true
}

// heal ends all faults.
func (m *model) heal() {
	if m.namespaceDeleted != 0 && m.hub.work == nil {
		m.namespaceDeleted = 0
	}
	if m.works == definition.Terminating && m.hub.work == nil {
		m.works = definition.Served
	}
	if m.sets == definition.Terminating && m.hub.generator == nil {
		m.sets = definition.Served
	}
	m.inventoryServed, m.selectionEmpty, m.listForbidden, m.unreachable, m.gateShut = true, false, false, false, false
}

// control is a reconcile of the generator's controller.
func (m *model) control() {
	if !m.generated || m.works != definition.Served || m.namespaceDeleted != 0 {
		if g := m.hub.generator; g != nil && g.deleted && m.sets != definition.Served && m.mutant != definitionDeletes {
			m.hub.generator = nil
		}
		return
	}
	g, w := m.hub.generator, m.hub.work
	withdraw := func() {
		if w != nil {
			w.requested = true
			m.terminate()
		}
	}
	switch {
	case g == nil:
		if m.mutant == unclaimedDeleted {
			withdraw()
		}
	case g.deleted:
		if deletion.OfGenerator(true, time.Unix(1, 0), m.sets) || m.mutant == definitionDeletes {
			withdraw()
		}
		m.hub.generator = nil
	case m.listForbidden && m.mutant != forbiddenPrunes:
	case !g.chosen:
		withdraw()
	case m.selectionEmpty && m.mutant == emptyPrunes, m.listForbidden && m.mutant == forbiddenPrunes:
		withdraw()
	case m.selectionEmpty:
	case w == nil:
		m.hub.work = &modelWork{uid: m.uid(), gen: 1, objects: g.objects, edits: g.edits, finalizer: true}
	case w.deleted == 0 && (w.objects != g.objects || w.edits != g.edits):
		w.objects, w.edits, w.requested = g.objects, g.edits, false
		w.gen++
	}
}

func (m *model) observed(w *modelWork) deletion.Work {
	if w == nil {
		return deletion.Work{}
	}
	o := deletion.Work{Found: true, Generated: m.generated && m.mutant != handDeleted, Requested: w.requested}
	if w.deleted != 0 {
		o.Deleted = time.Unix(int64(w.deleted), 0)
	}
	return o
}

func manifestsOf(objects objectSet) (of []apply.Object) {
	for i, name := range []string{"a", "b"} {
		if objects&(1<<i) != 0 {
			u := &unstructured.Unstructured{}
			u.SetAPIVersion("v1")
			u.SetKind("ConfigMap")
			u.SetName(name)
			of = append(of, apply.Object{Manifest: u})
		}
	}
	return of
}

func setIn(resources []v1alpha1.AppliedResource) (of objectSet) {
	for _, r := range resources {
		of |= map[string]objectSet{"a": 1, "b": 2}[r.Name]
	}
	return of
}

// reconcile is a reconcile of the agent.
func (m *model) reconcile() {
	m.cache = copyOf(m.hub.work)
	m.step()
}

// step reconciles the Work in the agent's cache.
func (m *model) step() {
	work := m.cache
	switch {
	case work == nil || work.deleted != 0:
		m.end(work)
	case m.inventoryServed:
		m.bring(work)
	}
}

func (m *model) desired(w *modelWork) *v1alpha1.AppliedWork {
	return &v1alpha1.AppliedWork{
		ObjectMeta: metav1.ObjectMeta{UID: m.uid()},
		Spec: v1alpha1.AppliedWorkSpec{
			Work: v1alpha1.WorkReference{Name: "shop", UID: w.uid, Generation: w.gen, HubRestored: m.restored},
		},
	}
}

// observeRestore lets the agent observe that etcd was restored.
func (m *model) observeRestore() {
	if m.rewound && !m.unreachable {
		if m.rewound = false; m.mutant != overtakenPrunes && (m.mutant != secondRestore || !m.waiting) {
			m.restored++
		}
		m.waiting = true
	}
}

// confirmHub lets the hub confirm that it is consistent. The hub detects a restore itself.
func (m *model) confirmHub() {
	if !m.rewound && !m.unreachable {
		m.waiting = false
	}
}

// mayDelete reports whether the gate permits deletions: it compares the state of the hub with the one that the agent
// has observed.
func (m *model) mayDelete() bool {
	return m.mutant == gateIgnored || !m.gateShut && !m.waiting && (!m.rewound || m.mutant == unseenRestore)
}

// open creates or adopts the inventory.
func (m *model) open(w *modelWork) {
	at := time.Unix(int64(m.now), 0)
	if m.inventory == nil {
		m.unknown = 0
		m.inventory = m.desired(w)
		marked := manifestsOf(m.live)
		if m.mutant == lostIsEmpty {
			marked = nil
		}
		m.inventory.Status.Resources = rebuilt(manifestsOf(w.objects), apply.Ahead(nil, marked), at)
		return
	}
	uid := m.inventory.UID
	before := m.inventory.DeepCopy()
	adopt(m.inventory, m.desired(w), manifestsOf(w.objects), at)
	m.inventory.UID = uid
	same := before.Spec.Work.UID == w.uid
	if m.mutant == newUIDPrunes && !same || m.mutant == rollbackPrunes && same {
		m.inventory.Status.Resources = before.Status.Resources
	}
	m.inventory.Status.Resources = apply.Ahead(m.inventory.Status.Resources, manifestsOf(w.objects))
	updateOrphanedCondition(m.inventory, "", at)
}

func (m *model) bring(w *modelWork) {
	if m.unreachable && !w.finalizer {
		return
	}
	if live := m.hub.work; !w.finalizer && (live == nil || live.uid != w.uid || live.deleted != 0) {
		return // the patch of the finalizer fails
	} else if !w.finalizer {
		live.finalizer, w.finalizer = true, true
	}
	m.open(w)
	m.live |= w.objects
	stale := m.inventory.DeepCopy()
	stale.Status.Resources = apply.Stale(m.inventory.Status.Resources, manifestsOf(w.objects))
	gone := m.due(stale, true)
	if len(gone) == 0 || !m.mayDelete() {
		return
	}
	live := m.hub.work
	confirmed := !m.unreachable && live != nil && live.uid == w.uid && live.gen == w.gen && live.deleted == 0
	if !confirmed && m.mutant != cachedPrune {
		return
	}
	m.remove(setIn(gone), "the Work does not have them")
	m.drop(setIn(gone))
}

// due returns the objects of an inventory that may be deleted.
func (m *model) due(of *v1alpha1.AppliedWork, ended bool) []v1alpha1.AppliedResource {
	of = of.DeepCopy()
	if m.mutant == releaseOfAll {
		consumeRelease(of)
	}
	gone, _, _ := due(of, ended, 0, time.Unix(int64(m.now), 0))
	return gone
}

// drop removes objects from the inventory.
func (m *model) drop(gone objectSet) {
	m.inventory.Status.Resources = slices.DeleteFunc(m.inventory.Status.Resources, func(r v1alpha1.AppliedResource) bool {
		return setIn([]v1alpha1.AppliedResource{r})&gone != 0
	})
	if updateOrphanedCondition(m.inventory, "", time.Unix(int64(m.now), 0)); len(m.inventory.Status.Resources) == 0 {
		m.inventory = nil
	}
}

// end handles a Work that is missing or being deleted.
func (m *model) end(cached *modelWork) {
	if m.unreachable || !m.inventoryServed {
		return
	}
	live := m.hub.work
	if cached == nil && (live != nil || m.inventory == nil) || cached != nil && (live == nil || live.uid != cached.uid ||
		!live.finalizer) {
		return
	}
	if m.inventory == nil {
		if m.live == 0 {
			live.finalizer = false
			m.hub.work = nil
			return
		}
		m.open(live)
	}
	at := time.Unix(int64(m.now), 0)
	request := m.inventory.Status.DeletionRequest
	ended := request != nil && request.WorkUID == m.inventory.Spec.Work.UID && (live == nil || live.uid == request.WorkUID)
	if !ended && live != nil && m.mutant != formerEnds && adopts(m.inventory.Spec.Work, m.desired(live).Spec.Work) {
		m.open(live)
	}
	if !ended {
		hub := deletion.Hub{Definition: m.works}
		if m.namespaceDeleted != 0 {
			hub.NamespaceDeleted = time.Unix(int64(m.namespaceDeleted), 0)
		}
		reason := deletion.OfWork(m.observed(live), hub)
		ended = reason == deletion.Requested || m.mutant == missingIsDeleted && live == nil || m.mutant == deletedIsRequest &&
			live != nil
		if ended && live != nil && !m.recent {
			m.recent = true // and the next reconcile follows after a moment
			return
		}
		if !ended {
			orphan(m.inventory, func(v1alpha1.AppliedResource) bool { return false }, reason, at)
		}
	}
	m.recent = false
	if gone := m.due(m.inventory, ended); m.mayDelete() && len(gone) > 0 {
		if ended && live != nil && m.inventory.Status.DeletionRequest == nil && m.mutant != requestNotRecorded {
			m.inventory.Spec.Work.UID = live.uid
			m.inventory.Status.DeletionRequest = &v1alpha1.DeletionRequest{WorkUID: live.uid}
			return // the deletion takes a while, and the Work may vanish meanwhile
		}
		if ended && live != nil && m.mutant == requestNotRecorded && m.now%2 == 0 {
			return
		}
		m.remove(setIn(gone), "the Work has ended")
		m.drop(setIn(gone))
	} else if ended && len(gone) > 0 {
		return
	}
	if live != nil {
		m.hub.work = nil
	}
}

// release is a release by a user.
func (m *model) release() bool {
	return when(m.inventory != nil && orphansOf(m.inventory) > 0, func() {
		for _, r := range m.inventory.Status.Resources {
			if r.OrphanedTime != nil {
				m.ask(setIn([]v1alpha1.AppliedResource{r}))
			}
		}
		m.inventory.Annotations = map[string]string{v1alpha1.ReleaseAnnotation: string(m.inventory.UID)}
		if m.mutant != releaseOfAll {
			consumeRelease(m.inventory)
		}
	})
}

func value[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func (m *model) act(a action) {
	m.now++
	if a.do(m) {
		m.trace = append(m.trace, fmt.Sprintf("%-45s hub %+v %+v, live %b, requested %b, destroyed %b", a.name,
			value(m.hub.generator), value(m.hub.work), m.live, m.requested, m.destroyed))
	}
}

var controllers = []action{
	{"controller", func(m *model) bool { m.control(); return true }},
	{"agent", func(m *model) bool { m.reconcile(); return true }},
	{"the agent's cache", func(m *model) bool { m.cache = copyOf(m.hub.work); return true }},
	{"agent, by its cache", func(m *model) bool { m.step(); return true }},
	{"the agent observes a restore", func(m *model) bool { m.observeRestore(); return true }},
	{"the hub confirms", func(m *model) bool { m.confirmHub(); return true }},
}

// walk runs steps of users, faults and controllers, then ends the faults, and returns the violation.
func walk(mutant mutant, seed uint64) (m *model, problem string) {
	random := rand.New(rand.NewPCG(seed, 7))
	m = newModel(mutant, seed%2 == 0)
	some := slices.Clone(faults) // few kinds of faults in one walk, so that they meet more often
	random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	some = append(some[:2+random.IntN(4)], faults[0], faults[len(faults)-1])
	for range 10 + random.IntN(50) {
		switch n := random.IntN(10); {
		case n < 2:
			m.act(users[random.IntN(len(users))])
		case n < 4:
			m.act(some[random.IntN(len(some))])
		case n == 4:
			m.act(action{"release", (*model).release})
		default:
			m.act(controllers[random.IntN(len(controllers))])
		}
		if m.violation != "" {
			return m, m.violation
		}
	}
	settle := func() {
		for range 20 {
			m.now++
			m.heal()
			m.observeRestore()
			m.confirmHub()
			m.control()
			m.reconcile()
		}
	}
	settle()
	if m.violation != "" {
		return m, m.violation
	}
	if want := m.wanted(); want&^m.live != 0 {
		return m, fmt.Sprintf("objects %b are wanted, but do not exist", want&^m.live)
	}
	open := m.requested & m.live &^ m.wanted()
	if left := open &^ m.destroyed; left != 0 {
		return m, fmt.Sprintf("the request to delete objects %b was not carried out", left)
	}
	if m.inventory == nil && m.hub.work == nil && open&^m.unknown != 0 {
		return m, fmt.Sprintf("objects %b are not reported", open)
	}
	m.act(action{"release", (*model).release})
	settle()
	if m.violation == "" && m.inventory != nil && orphansOf(m.inventory) > 0 {
		return m, "a release was not carried out"
	}
	return m, m.violation
}

func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range seeds() {
		if m, problem := walk(correct, seed); problem != "" {
			t.Fatalf("seed %d: %s\n%s", seed, problem, strings.Join(m.trace, "\n"))
		}
	}
}

// TestModel_RestoredGenerationIsOvertaken follows one walk: etcd is restored to a state before an object was added, and
// a user changes the Work before the agent observes it. The object is orphaned, although the generation is not lower.
func TestModel_RestoredGenerationIsOvertaken(t *testing.T) {
	t.Parallel()
	named := map[string]action{}
	for _, a := range slices.Concat(users, faults, controllers) {
		named[a.name] = a
	}
	const observed, confirmed = "the agent observes a restore", "the hub confirms"
	begin := []string{"create", "agent", "shrink", "agent", "back up"}
	once := slices.Concat(begin, []string{"grow", "agent", "restore etcd", "faults end", "edit"})
	// The object is added between two restores, the first of which the hub has not confirmed.
	twice := slices.Concat(begin, []string{"restore etcd", "faults end", "the agent observes a restore", "agent", "grow",
		"agent", "restore etcd", "faults end", "edit"})
	for _, test := range []struct {
		mutant  mutant
		steps   []string
		then    []string
		violate bool
	}{
		{correct, once, []string{"agent", observed, "agent", "edit", "agent"}, false},
		{correct, once, []string{observed, "agent", "edit", "agent"}, false},
		{unseenRestore, once, []string{"agent"}, true},
		{overtakenPrunes, once, []string{observed, confirmed, "agent"}, true},
		{correct, once, []string{observed, "delete", "agent", confirmed, "agent", "agent"}, false},
		{formerEnds, once, []string{observed, "delete", confirmed, "agent", "agent", "agent"}, true},
		{correct, twice, []string{observed, "agent", confirmed, "agent", "edit", "agent"}, false},
		{secondRestore, twice, []string{observed, "agent", confirmed, "agent"}, true},
	} {
		m := newModel(test.mutant, false)
		for _, name := range slices.Concat(test.steps, test.then) {
			act, known := named[name]
			if !known {
				t.Fatalf("there is no action %q", name)
			}
			m.act(act)
		}
		if violated := m.violation != ""; violated != test.violate {
			t.Errorf("mutant %q, %q: violation %q\n%s", test.mutant, test.then, m.violation, strings.Join(m.trace, "\n"))
		}
		if !test.violate && (m.live&2 == 0 || orphansOf(m.inventory) != 1) {
			t.Errorf("mutant %q, %q: objects %b exist, and object 10 is not orphaned", test.mutant, test.then, m.live)
		}
	}
}

// seeds returns the number of walks of TestModel: 4,000, or 20,000 with MUSTER_MODEL=full. With the race detector,
// which finds nothing in a model with one goroutine and slows it down tenfold, 1,000.
func seeds() uint64 {
	switch {
	case os.Getenv("MUSTER_MODEL") == "full":
		return 20000
	case raceEnabled:
		return 1000
	default:
		return 4000
	}
}

// caughtBy has seeds of walks that reveal a mutant, so that the search is short. If a walk has changed, the search
// continues with all other seeds.
var caughtBy = map[mutant]uint64{
	handDeleted: 1044, newUIDPrunes: 1205, rollbackPrunes: 11539, overtakenPrunes: 18759, formerEnds: 11539,
	cachedPrune: 10399, emptyPrunes: 2696, forbiddenPrunes: 938, leaderNotFenced: 6000, gateIgnored: 10429,
	lostIsEmpty: 756, releaseOfAll: 2828,
}

// TestModelCatchesMutants checks that each rule is needed: without it, the model finds a walk that violates a
// guarantee.
func TestModelCatchesMutants(t *testing.T) {
	t.Parallel()
	for _, mutant := range mutants {
		caught := false
		for i := uint64(0); i < 20000 && !caught; i++ {
			seed := i
			if i == 0 {
				seed = caughtBy[mutant]
			}
			_, problem := walk(mutant, seed)
			if caught = problem != ""; caught {
				t.Logf("%s: seed %d: %s", mutant, seed, problem)
			}
		}
		assert.True(t, caught, "%s", mutant)
	}
}
