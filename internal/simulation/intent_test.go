package simulation

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/mustertest/apiserver"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// intent is the state that users want, and the deletions that they have requested. The oracle of deletions uses nothing
// else: neither the objects of the hub nor decisions of muster.
type intent struct {
	w *world

	mu         sync.Mutex
	placements map[string]placementIntent
	worksets   map[string]workSetIntent
	works      map[string]map[string]string // hand-written Works, by member: versions of objects
	inFleet    map[string]bool              // whether the member must be in the fleet
	accepted   map[string]bool
	admitted   map[string]time.Duration // when inFleet or accepted changed
	unsettled  bool                     // a disaster is not repaired yet

	requested map[string]time.Duration // the last request of a user that may delete an object, by member/object
	wanted    map[string]time.Duration // since when a user wants an object on a member
	created   map[string]time.Duration // when the object was created on the member
	byHand    map[string]bool          // a user deletes the object on the member
	lingering map[string]bool          // the object may stay although no user wants it: a disaster removed its request
}

type placementIntent struct {
	members []string // nil: all
}

type workSetIntent struct {
	placement string
	objects   map[string]string // versions
}

func newIntent(w *world) *intent {
	return &intent{
		w: w, placements: map[string]placementIntent{}, worksets: map[string]workSetIntent{},
		works:   map[string]map[string]string{},
		inFleet: map[string]bool{}, accepted: map[string]bool{}, admitted: map[string]time.Duration{},
		requested: map[string]time.Duration{}, wanted: map[string]time.Duration{},
		created: map[string]time.Duration{}, byHand: map[string]bool{}, lingering: map[string]bool{},
	}
}

// change changes the state that users want. The removal of an object from this state is a request to delete the object,
// except while a Placement is missing.
func (i *intent) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, was, undecided := i.desired(), maps.Clone(i.inFleet), i.undecided()
	wasAccepted := maps.Clone(i.accepted)
	anyMember := func(string) bool { return true }
	everywhere := i.desiredOn(anyMember)
	f()
	after, now := i.desired(), i.w.h.now()
	for m := range i.inFleet {
		if was[m] != i.inFleet[m] || wasAccepted[m] != i.accepted[m] {
			i.admitted[m] = now
		}
	}
	// A member that left may be in the fleet again after a disaster, with a token with automatic acceptance.
	for m, objects := range i.desiredOn(anyMember) {
		for o := range everywhere[m] {
			if _, still := objects[o]; !still && !i.inFleet[m] {
				i.requested[m+"/"+o] = now
			}
		}
	}
	for m, objects := range before {
		for o := range objects {
			if _, still := after[m][o]; !still {
				undecided[m+"/"+o] = true
			}
		}
	}
	stay := i.undecided()
	for key := range undecided {
		m, o, _ := strings.Cut(key, "/")
		switch {
		case after[m][o] != "":
		case stay[key]:
			i.lingering[key] = true // muster deletes nothing while a Placement is missing
		case i.unsettled:
			// The agent may first observe the restored or replaced Work without the object, which it then keeps. A deletion
			// of the Work itself must be carried out: see pendingWorks.
			i.requested[key], i.lingering[key] = now, true
		default:
			i.requested[key] = now
		}
	}
	for key := range i.created { // a leave deletes orphaned objects as well
		if m, _, _ := strings.Cut(key, "/"); was[m] && !i.inFleet[m] {
			i.requested[key] = now
		}
	}
	for m, objects := range after {
		for o := range objects {
			if _, was := before[m][o]; !was {
				i.wanted[m+"/"+o] = now
				delete(i.lingering, m+"/"+o)
			}
		}
	}
}

// undecided returns the objects, by member/object, of WorkSets whose Placement does not exist.
func (i *intent) undecided() map[string]bool {
	all := map[string]bool{}
	for m, in := range i.inFleet {
		for _, set := range i.worksets {
			if _, ok := i.placements[set.placement]; ok || !in {
				continue
			}
			for o := range set.objects {
				all[m+"/"+o] = true
			}
		}
	}
	return all
}

// desired returns the versions of the objects that users want on each member.
func (i *intent) desired() map[string]map[string]string {
	return i.desiredOn(func(m string) bool { return i.inFleet[m] })
}

func (i *intent) desiredOn(has func(member string) bool) map[string]map[string]string {
	all := map[string]map[string]string{}
	for m := range i.inFleet {
		all[m] = map[string]string{}
		if !has(m) {
			continue
		}
		maps.Copy(all[m], i.works[m])
		for _, set := range i.worksets {
			p, ok := i.placements[set.placement]
			if ok && (p.members == nil || slices.Contains(p.members, m)) {
				maps.Copy(all[m], set.objects)
			}
		}
	}
	return all
}

// admission is the time in which the hub must give a member access. The watches of the hub can be late.
const admission = 5 * time.Minute

// placementChanged notes that a user gives a WorkSet another Placement, or creates its Placement again. The new
// Placement may not select a member that is unreachable.
func (i *intent) placementChanged(set workSetIntent) {
	for m := range i.inFleet {
		for o := range set.objects {
			i.requested[m+"/"+o] = i.w.h.now()
		}
	}
}

// disaster notes a change that no user requested. Objects that no user wants at this time may stay.
func (i *intent) disaster() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unsettled = true
	desired := i.desired()
	for key := range i.created {
		m, o, _ := strings.Cut(key, "/")
		if _, ok := desired[m][o]; !ok {
			i.lingering[key] = true
		}
	}
}

// finished notes that all requests were carried out. None of them justifies a later deletion, except the deletion of an
// object that no user wants and that a disaster kept.
func (i *intent) finished() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.unsettled = false
	maps.DeleteFunc(i.requested, func(key string, _ time.Duration) bool { return !i.lingering[key] })
}

// restored notes that a member was set back to an earlier state, with these ConfigMaps.
func (i *intent) restored(member string, objects []corev1.ConfigMap) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.created, func(key string, _ time.Duration) bool { return strings.HasPrefix(key, member+"/") })
	maps.DeleteFunc(i.byHand, func(key string, _ bool) bool { return strings.HasPrefix(key, member+"/") })
	for _, o := range objects {
		if strings.HasPrefix(o.Name, "o-") {
			i.created[member+"/"+o.Name] = i.w.h.now()
		}
	}
}

// repeated notes that users repeat their requests: a restored object that no user wants is deleted again.
func (i *intent) repeated() {
	i.mu.Lock()
	defer i.mu.Unlock()
	desired := i.desired()
	for key := range i.created {
		if m, o, _ := strings.Cut(key, "/"); desired[m][o] == "" {
			i.requested[key] = i.w.h.now()
		}
	}
}

// inventoryLost notes that a member has lost its AppliedWorks. Its agent finds an object again when the Work of the
// object exists. An object whose Work is deleted before that stays.
func (i *intent) inventoryLost(member string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for key := range i.created {
		if strings.HasPrefix(key, member+"/") {
			i.lingering[key] = true
		}
	}
}

// deletedWithoutEffect notes that a user deletes an object of the hub that a disaster has removed. Its objects on the
// member stay until the user releases them.
func (i *intent) deletedWithoutEffect(member string, objects map[string]string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for o := range objects {
		i.lingering[member+"/"+o] = true
	}
}

func (i *intent) deleteByHand(member, object string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.byHand[member+"/"+object] = true
}

// mayBeRefused reports whether the hub may refuse requests of the member's agent.
func (i *intent) mayBeRefused(member string) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	since, changed := i.admitted[member]
	return i.unsettled || !i.inFleet[member] || !i.accepted[member] || changed && i.w.h.now()-since < admission
}

// observe is the oracle of deletions: no object is deleted on a member without an earlier request by a user.
func (i *intent) observe(member string, change apiserver.Change) {
	if change.Resource.Resource != "configmaps" || change.Object.GetNamespace() != userSpace {
		return
	}
	name := change.Object.GetName()
	if !strings.HasPrefix(name, "o-") {
		return
	}
	key := member + "/" + name
	i.mu.Lock()
	defer i.mu.Unlock()
	switch change.Type {
	case watch.Added:
		i.created[key] = i.w.h.now()
		if i.desired()[member][name] == "" && !i.undecided()[key] {
			i.requested[key] = i.created[key] // an earlier request was not carried out yet
		}
	case watch.Modified:
		owners := 0
		for label := range change.Object.GetAnnotations() {
			if strings.HasPrefix(label, "work.muster.dev/owner") {
				owners++
			}
		}
		if owners > 1 {
			i.w.h.violated("object %s has %d owners", key, owners)
		}
	case watch.Deleted:
		created := i.created[key]
		delete(i.created, key)
		delete(i.lingering, key)
		if i.byHand[key] {
			delete(i.byHand, key)
			return
		}
		request, ok := i.requested[key]
		if wanted, is := i.wanted[key]; !ok || request < created && (!is || request < wanted) {
			i.w.h.violated("object %s was deleted without a request of a user (created %s, last request %s %t)", key, created,
				request, ok)
		}
	}
}

// missing returns an error for each object that differs from the state that users want.
func (i *intent) missing() error {
	i.mu.Lock()
	desired, lingering := i.desired(), maps.Clone(i.lingering)
	i.mu.Unlock()
	var problems []error
	for _, m := range i.w.members {
		var list corev1.ConfigMapList
		if err := m.admin.List(i.w.ctx, &list, client.InNamespace(userSpace)); err != nil {
			return err
		}
		have := map[string]string{}
		for _, o := range list.Items {
			if strings.HasPrefix(o.Name, "o-") {
				have[o.Name] = o.Data["version"]
			}
		}
		for o, version := range desired[m.name] {
			if got, ok := have[o]; !ok || got != version {
				problems = append(problems, fmt.Errorf("%s/%s has version %q, want %q (exists: %t)", m.name, o, got, version,
					ok))
			}
		}
		for o := range have {
			if _, ok := desired[m.name][o]; !ok && !lingering[m.name+"/"+o] {
				problems = append(problems, fmt.Errorf("%s/%s exists although no user wants it", m.name, o))
			}
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}

// manifests returns ConfigMaps with these versions.
func manifests(objects map[string]string) []workv1alpha1.Manifest {
	var all []workv1alpha1.Manifest
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		all = append(all, workv1alpha1.Manifest{})
		all[len(all)-1].Raw = fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":%q,`+
			`"name":%q},"data":{"version":%q}}`,
			userSpace, name, objects[name])
	}
	return all
}
