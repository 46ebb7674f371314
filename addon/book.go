package addon

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/turn"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// book is what the controllers of Addons and of MemberAddons tell each other: whose turn it is, and how each member is doing. All of it follows
// from what is stored, so that a restart loses nothing.
type book struct {
	memberChanged func(types.NamespacedName) // by namespace of the member, and name of the add-on
	addonChanged  func(addon string)

	mu    sync.Mutex
	pages map[string]*page // by add-on
}

// page is about one add-on. Members are told by their namespaces.
type page struct {
	decided   bool // turns are
	turns     map[string]assigned
	standings map[string]standing
	forced    []v1alpha1.ForcedRemoval // of members that have it no more, the latest last
}

// assigned is what the controller of Addons says of a member: whether it is its turn, and what it has by the placement that it goes by.
type assigned struct {
	turn.Turn
	configs []v1alpha1.ConfigReference
	hosting string
}

// standing is what the controller of MemberAddons says of a member.
type standing struct {
	turn.Standing
	member health.Member
}

func newBook() *book { return &book{pages: map[string]*page{}} }

func (b *book) page(addon string) *page {
	p := b.pages[addon]
	if p == nil {
		p = &page{turns: map[string]assigned{}, standings: map[string]standing{}}
		b.pages[addon] = p
	}
	return p
}

// decide says who is to have the add-on, and by what.
func (b *book) decide(addon string, turns map[string]assigned) {
	b.mu.Lock()
	p := b.page(addon)
	for namespace, now := range turns {
		now.Turn = now.After(p.turns[namespace].Turn)
		turns[namespace] = now
	}
	changed := p.replace(turns)
	p.decided = true
	b.mu.Unlock()
	b.tell(addon, changed)
}

// roll says what the members of a rollout may be told: those on hold nothing new, the others the revision.
func (b *book) roll(addon string, r *rolling, now time.Time) {
	b.mu.Lock()
	p := b.page(addon)
	turns := maps.Clone(p.turns)
	for namespace, t := range turns {
		if why, in := r.hold[namespace]; in && t.Placement == r.placement {
			t.Turn = t.Rolled(r.plan.Revision, why, now)
			turns[namespace] = t
		}
	}
	changed := p.replace(turns)
	b.mu.Unlock()
	b.tell(addon, changed)
}

func (p *page) replace(turns map[string]assigned) (changed []string) {
	for namespace, now := range turns {
		if before, known := p.turns[namespace]; !known || !p.decided || !reflect.DeepEqual(before, now) {
			changed = append(changed, namespace)
		}
	}
	for namespace := range p.turns {
		if _, still := turns[namespace]; !still {
			changed = append(changed, namespace)
		}
	}
	p.turns = turns
	return changed
}

func (b *book) tell(addon string, namespaces []string) {
	for _, namespace := range namespaces {
		b.memberChanged(types.NamespacedName{Namespace: namespace, Name: addon})
	}
}

// forced are the latest removals that were forced of members that have the add-on no more.
func (b *book) forced(addon string) []v1alpha1.ForcedRemoval {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.page(addon).forced)
}

// turns are those of all members of an add-on.
func (b *book) turns(addon string) map[string]assigned {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.page(addon).turns)
}

// turn returns the rollout permit of a member. known is false before the first decision.
func (b *book) turn(key types.NamespacedName) (t assigned, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.pages[key.Name]
	if p == nil || !p.decided {
		return assigned{}, false
	}
	return p.turns[key.Namespace], true
}

// stands says how a member is doing.
func (b *book) stands(key types.NamespacedName, now standing) {
	b.mu.Lock()
	p := b.page(key.Name)
	before, known := p.standings[key.Namespace]
	p.standings[key.Namespace] = now
	b.mu.Unlock()
	if !known || !reflect.DeepEqual(before, now) {
		b.addonChanged(key.Name)
	}
}

// standings are all of an add-on.
func (b *book) standings(addon string) map[string]standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.page(addon).standings)
}

// gone says that a member has the add-on no more.
func (b *book) gone(key types.NamespacedName) {
	b.mu.Lock()
	p := b.page(key.Name)
	last, known := p.standings[key.Namespace]
	delete(p.standings, key.Namespace)
	if last.member.Forced != nil {
		p.forced = append(p.forced, *last.member.Forced)
		p.forced = p.forced[max(0, len(p.forced)-v1alpha1.MaxForcedRemovals):]
	}
	b.mu.Unlock()
	if known {
		b.addonChanged(key.Name)
	}
}

// undecided removes the rollout permits of an add-on that does not exist.
func (b *book) undecided(addon string) {
	b.mu.Lock()
	p := b.page(addon)
	p.decided, p.turns = false, map[string]assigned{}
	if len(p.standings) == 0 {
		delete(b.pages, addon)
	}
	b.mu.Unlock()
}
