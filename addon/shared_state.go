package addon

import (
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/internal/permit"
	"github.com/muster-sdk/muster/addon/v1alpha1"
)

// sharedState connects the controllers of Addons and of MemberAddons: it contains the rollout permits and the state of
// each member. All of it can be rebuilt from the API, so a restart loses nothing.
type sharedState struct {
	memberChanged func(types.NamespacedName) // by namespace of the member, and name of the add-on
	addonChanged  func(addon string)

	mu     sync.Mutex
	addons map[string]*addonState // by add-on
}

// addonState is the state of one add-on. Members are identified by their namespaces.
type addonState struct {
	decided bool // the permits are set
	permits map[string]memberPermit
	members map[string]memberState
	forced  []v1alpha1.ForcedRemoval // of members without the add-on, the latest last
}

// memberPermit is the permit of a member, and the settings of its Placement, which the controller of Addons sets.
type memberPermit struct {
	permit.Permit
	configs []v1alpha1.ConfigReference
	hosting string
}

// memberState is the state of a member, which the controller of MemberAddons sets.
type memberState struct {
	permit.MemberState
	member health.Member
}

func newSharedState() *sharedState { return &sharedState{addons: map[string]*addonState{}} }

func (b *sharedState) addon(addon string) *addonState {
	p := b.addons[addon]
	if p == nil {
		p = &addonState{permits: map[string]memberPermit{}, members: map[string]memberState{}}
		b.addons[addon] = p
	}
	return p
}

// setPermits replaces the permits of the members of an add-on.
func (b *sharedState) setPermits(addon string, permits map[string]memberPermit) {
	b.mu.Lock()
	p := b.addon(addon)
	for namespace, now := range permits {
		now.Permit = now.After(p.permits[namespace].Permit)
		permits[namespace] = now
	}
	changed := p.replace(permits)
	p.decided = true
	b.mu.Unlock()
	b.notify(addon, changed)
}

// roll updates the permits of the members in a rollout: members on hold get no new permit, and all others get the
// permit for the revision.
func (b *sharedState) roll(addon string, r *rolling, now time.Time) {
	b.mu.Lock()
	p := b.addon(addon)
	permits := maps.Clone(p.permits)
	for namespace, t := range permits {
		if why, in := r.hold[namespace]; in && t.Placement == r.placement {
			t.Permit = t.Rolled(r.plan.Revision, why, now)
			permits[namespace] = t
		}
	}
	changed := p.replace(permits)
	b.mu.Unlock()
	b.notify(addon, changed)
}

func (p *addonState) replace(permits map[string]memberPermit) (changed []string) {
	for namespace, now := range permits {
		if before, known := p.permits[namespace]; !known || !p.decided || !reflect.DeepEqual(before, now) {
			changed = append(changed, namespace)
		}
	}
	for namespace := range p.permits {
		if _, still := permits[namespace]; !still {
			changed = append(changed, namespace)
		}
	}
	p.permits = permits
	return changed
}

func (b *sharedState) notify(addon string, namespaces []string) {
	for _, namespace := range namespaces {
		b.memberChanged(types.NamespacedName{Namespace: namespace, Name: addon})
	}
}

// forced returns the latest forced removals of members that do not have the add-on any more.
func (b *sharedState) forced(addon string) []v1alpha1.ForcedRemoval {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.addon(addon).forced)
}

// permits returns the permits of all members of an add-on.
func (b *sharedState) permits(addon string) map[string]memberPermit {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.addon(addon).permits)
}

// permit returns the permit of a member. known is false before the first decision.
func (b *sharedState) permit(key types.NamespacedName) (t memberPermit, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.addons[key.Name]
	if p == nil || !p.decided {
		return memberPermit{}, false
	}
	return p.permits[key.Namespace], true
}

// setMember sets the state of a member.
func (b *sharedState) setMember(key types.NamespacedName, now memberState) {
	b.mu.Lock()
	p := b.addon(key.Name)
	before, known := p.members[key.Namespace]
	p.members[key.Namespace] = now
	b.mu.Unlock()
	if !known || !reflect.DeepEqual(before, now) {
		b.addonChanged(key.Name)
	}
}

// members returns the states of all members of an add-on.
func (b *sharedState) members(addon string) map[string]memberState {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.addon(addon).members)
}

// removeMember removes a member that does not have the add-on any more.
func (b *sharedState) removeMember(key types.NamespacedName) {
	b.mu.Lock()
	p := b.addon(key.Name)
	last, known := p.members[key.Namespace]
	delete(p.members, key.Namespace)
	if last.member.Forced != nil {
		p.forced = append(p.forced, *last.member.Forced)
		p.forced = p.forced[max(0, len(p.forced)-v1alpha1.MaxForcedRemovals):]
	}
	b.mu.Unlock()
	if known {
		b.addonChanged(key.Name)
	}
}

// removePermits removes the rollout permits of an add-on that does not exist.
func (b *sharedState) removePermits(addon string) {
	b.mu.Lock()
	p := b.addon(addon)
	p.decided, p.permits = false, map[string]memberPermit{}
	if len(p.members) == 0 {
		delete(b.addons, addon)
	}
	b.mu.Unlock()
}
