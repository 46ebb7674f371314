package install

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// DefaultMaxRemoving is the maximum number of MemberAddons that are removed at a time if no other limit is set.
const DefaultMaxRemoving = 50

// Observed is the observed state of an add-on.
type Observed struct {
	Strategy v1alpha1.InstallStrategy
	// Deleting is true if the Addon has a deletionTimestamp: no member must have the add-on.
	Deleting bool
	// Placements are the Placements of the strategy, in any order, without duplicates. A Placement that is not included
	// is missing.
	Placements []Placement
	// Members are all members, in any order, without duplicates.
	Members []Member
	// MemberAddons are all MemberAddons of the add-on, in any order, at most one for each member.
	MemberAddons []MemberAddon
	// MaxRemoving is the maximum number of MemberAddons that are removed at a time. Zero or less: DefaultMaxRemoving.
	MaxRemoving int
}

// Placement is the observed state of a Placement.
type Placement struct {
	Namespace, Name string
	State           State
	// Clusters are the clusters that the Placement is known to select, without duplicates.
	Clusters []Cluster
	// Groups are the decision groups, including empty ones. Nil: unknown.
	Groups []rollout.Group
}

// State is the state of the observation of a Placement.
type State string

// The states of a Placement. Other values are treated as Undecided.
const (
	// Missing means that the Placement does not exist.
	Missing State = "Missing"
	// Undecided means that Clusters may be incomplete or outdated: the Placement is being deleted, has no decision for its
	// current spec, or not all of its decisions are known.
	Undecided State = "Undecided"
	// Decided means that Clusters are exactly the selected clusters.
	Decided State = "Decided"
)

// Cluster is a cluster that a Placement selects.
type Cluster struct {
	Name string
	// Group is the decision group of the cluster.
	Group rollout.Group
	// Refusal is the reason why the namespace of the Placement must not select the cluster for a new installation.
	// Empty: it may. A cluster with a refusal keeps the MemberAddon that this Placement installed, and gets no new one.
	Refusal string
}

// Member is a member of the fleet.
type Member struct {
	Name string
	// Joined is true if the member may get new add-ons.
	Joined bool
	// Leaving is true if the member is leaving. It gets no new add-ons, and the leave removes the existing ones.
	Leaving bool
	// Reachable is true if the member can remove objects.
	Reachable bool
}

// MemberAddon is the add-on on a member.
type MemberAddon struct {
	Member string
	// InstalledBy is the value of [v1alpha1.InstalledByAnnotation]. Empty: a user created the MemberAddon.
	InstalledBy string
	// GoesBy is the Placement of the last [Decision] for a MemberAddon that a user created. Empty: none.
	GoesBy string
	// Deleting is true if the MemberAddon has a deletionTimestamp.
	Deleting bool
	// Unclaimed is true if the MemberAddon does not contain the UID of this Addon. It is annotated when a Placement
	// selects its member.
	Unclaimed bool
	// Earlier is true if the MemberAddon was created for an earlier Addon with this name, for example before a restore of
	// the hub. It is kept until a Placement selects its member, because the Placement may not have selected it yet.
	Earlier bool
}

// Plan is the result of [Decide].
type Plan struct {
	// Decisions are the decisions in the order of the member names.
	Decisions []Decision
	// Shares are the clusters of each Placement, in the order of the strategy. Empty while the Addon is being deleted.
	Shares []Share
	// Problems are messages about missing Placements, in the order of the strategy.
	Problems []string
}

// Decision is the action for the add-on on one member.
type Decision struct {
	Member string
	Action Action
	Reason Reason
	// Placement is the Placement that applies to the member, as <namespace>/<name>, in the form of the annotation.
	// Empty: none. The member is in its share.
	Placement string
	// Refusal is the first refusal of a Placement that selects the member. It is set if Reason is NotAllowed.
	Refusal string
}

// Action is an action for the add-on on a member.
type Action string

// The actions.
const (
	Create   Action = "Create"   // create a MemberAddon that the Placement installs
	Annotate Action = "Annotate" // annotate the MemberAddon with this Placement
	Delete   Action = "Delete"
	Keep     Action = "Keep" // no action
	Skip     Action = "Skip" // there is no MemberAddon, and none is created
)

// Reason is the reason of a decision.
type Reason string

// The reasons of decisions; see the tables of the package.
const (
	Chosen          Reason = "Chosen"
	ChosenByAnother Reason = "ChosenByAnother"
	ByHand          Reason = "ByHand"
	Uncertain       Reason = "Uncertain"
	Leaving         Reason = "Leaving"
	EarlierAddon    Reason = "EarlierAddon"
	NotAllowed      Reason = "NotAllowed"
	NotJoined       Reason = "NotJoined"
	Removing        Reason = "Removing"
	WaitsForTurn    Reason = "WaitsForTurn"
	NotChosen       Reason = "NotChosen"
	AddonDeleted    Reason = "AddonDeleted"
)

// Share is the set of clusters to which a Placement rolls out.
type Share struct {
	// Placement is the name of the Placement as <namespace>/<name>.
	Placement string
	// Decided is false while the selection of the Placement is not completely known. Clusters that are only kept from an
	// earlier decision are then in a group after all others.
	Decided bool
	// Clusters are the clusters in the order of their names.
	Clusters []Cluster
	// Groups are the decision groups of the Placement.
	Groups []rollout.Group
}

// Key returns the name of a Placement as it is used in annotations and decisions. The key of a ClusterPlacement has
// an empty namespace.
func Key(namespace, name string) string { return namespace + "/" + name }

// Describe returns the kind and name of a Placement for messages.
func Describe(namespace, name string) string { return describe(Key(namespace, name)) }

func describe(key string) string {
	if name, clusterScoped := strings.CutPrefix(key, "/"); clusterScoped {
		return "ClusterPlacement " + name
	}
	return "Placement " + key
}

// Decide returns the plan for the add-on on all members. It does not modify its argument.
func Decide(o Observed) Plan {
	d := newDecider(o)
	plan := Plan{Decisions: slices.Grow([]Decision(nil), len(d.names))}
	for _, name := range d.names {
		plan.Decisions = append(plan.Decisions, d.decide(name))
	}
	d.limitRemovals(plan.Decisions)
	for _, p := range d.placements {
		plan.Shares = append(plan.Shares, Share{p.key, p.state == Decided, p.clusters, p.groups})
		if p.state == Missing {
			plan.Problems = append(plan.Problems, describe(p.key)+
				" does not exist: the add-on stays on its members until the Placement is created or removed from spec.install.")
		}
	}
	return plan
}

// placement is a Placement of the strategy.
type placement struct {
	key      string
	state    State
	clusters []Cluster // the clusters to which it applies
	groups   []rollout.Group
}

// choice is the first known selection of a cluster.
type choice struct {
	placement int
	group     rollout.Group
}

type decider struct {
	Observed
	names      []string // all members with a decision, in order
	placements []placement
	index      map[string]int // the index in placements
	certain    bool           // all placements are decided
	chosen     map[string]choice
	refused    map[string]string // by cluster: why selections of it do not apply
	members    map[string]Member
	installed  map[string]MemberAddon
}

func newDecider(o Observed) *decider {
	d := &decider{
		Observed: o, certain: true, index: map[string]int{}, chosen: map[string]choice{}, refused: map[string]string{},
		members: make(map[string]Member, len(o.Members)), installed: make(map[string]MemberAddon, len(o.MemberAddons)),
	}
	for _, m := range o.Members {
		d.members[m.Name] = m
	}
	named := make(map[string]bool, len(o.MemberAddons))
	for _, a := range o.MemberAddons {
		d.installed[a.Member] = a
		named[a.Member] = true
	}
	if o.Strategy.Type == v1alpha1.InstallPlacements && !o.Deleting {
		d.choose()
	}
	for name := range d.chosen {
		named[name] = true
	}
	for name := range d.refused {
		named[name] = true
	}
	d.names = slices.Sorted(maps.Keys(named))
	return d
}

// choose assigns each cluster to the first placement that is known to select it.
func (d *decider) choose() {
	known := make(map[string]Placement, len(d.Placements))
	for _, p := range d.Placements {
		known[Key(p.Namespace, p.Name)] = p
	}
	for _, install := range d.Strategy.Placements {
		key := Key(install.Namespace, install.Name)
		if _, twice := d.index[key]; twice {
			continue
		}
		p, i := known[key], len(d.placements)
		if _, there := known[key]; !there {
			p.State = Missing
		}
		d.index[key] = i
		d.placements = append(d.placements, placement{key: key, state: p.State, groups: p.Groups})
		d.certain = d.certain && p.State == Decided
		for _, c := range p.Clusters {
			if c.Refusal != "" {
				if has := d.installed[c.Name]; cmp.Or(has.InstalledBy, has.GoesBy) != key {
					d.refused[c.Name] = cmp.Or(d.refused[c.Name], describe(key)+": "+c.Refusal)
					continue
				}
			}
			if _, before := d.chosen[c.Name]; !before {
				d.chosen[c.Name] = choice{i, c.Group}
			}
		}
	}
}

// decide returns the decision for a member, without the limit for removals.
func (d *decider) decide(name string) Decision {
	decision := func(action Action, reason Reason) Decision {
		return Decision{Member: name, Action: action, Reason: reason}
	}
	member := d.members[name]
	has, there := d.installed[name]
	_, chosen := d.chosen[name]
	switch {
	case !there && member.Leaving:
		return decision(Skip, Leaving)
	case !there && !member.Joined:
		return decision(Skip, NotJoined)
	case !there && !chosen:
		return d.refusal(decision(Skip, NotAllowed))
	case !there:
		return d.share(decision(Create, Chosen))
	case has.Deleting:
		return decision(Keep, Removing)
	case d.Deleting:
		return decision(Delete, AddonDeleted)
	case member.Leaving:
		return decision(Keep, Leaving)
	case has.InstalledBy == "":
		return d.share(decision(Keep, ByHand))
	}
	switch made := d.share(decision(Keep, Chosen)); {
	case made.Placement == "" && !d.certain:
		return decision(Keep, Uncertain)
	case made.Placement == "" && d.refused[name] != "":
		return d.refusal(decision(Keep, NotAllowed))
	case made.Placement == "" && has.Earlier:
		return decision(Keep, EarlierAddon)
	case made.Placement == "":
		return decision(Delete, NotChosen)
	case made.Placement == has.InstalledBy && chosen && has.Unclaimed:
		made.Action = Annotate
		return made
	case made.Placement != has.InstalledBy:
		made.Action, made.Reason = Annotate, ChosenByAnother
		return made
	default:
		return made
	}
}

// refusal adds the reason why the selections of a member do not apply.
func (d *decider) refusal(decision Decision) Decision {
	decision.Refusal = d.refused[decision.Member]
	return decision
}

// share adds a member to the share of its placement, if there is one.
func (d *decider) share(decision Decision) Decision {
	by, chosen := d.chosen[decision.Member]
	has := d.installed[decision.Member]
	before, named := d.index[cmp.Or(has.InstalledBy, has.GoesBy)]
	switch {
	case named && d.placements[before].state != Decided && (!chosen || before < by.placement):
		by = choice{before, rollout.Group{Index: math.MaxInt32}}
	case !chosen:
		return decision
	}
	p := &d.placements[by.placement]
	p.clusters = append(p.clusters, Cluster{Name: decision.Member, Group: by.group})
	decision.Placement = p.key
	return decision
}

// limitRemovals delays the removals that exceed the limit.
func (d *decider) limitRemovals(decisions []Decision) {
	free := d.MaxRemoving
	if free <= 0 {
		free = DefaultMaxRemoving
	}
	for name, has := range d.installed {
		if has.Deleting && d.members[name].Reachable {
			free--
		}
	}
	for i := range decisions {
		decision := &decisions[i]
		switch {
		case decision.Action != Delete || !d.members[decision.Member].Reachable:
		case free > 0:
			free--
		default:
			decision.Action, decision.Reason = Keep, WaitsForTurn
		}
	}
}
