package install

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/placement/rollout"
)

// DefaultMaxRemoving is how many MemberAddons may be on their way out at a time where nothing else is said.
const DefaultMaxRemoving = 50

// Observed is what is known of an add-on.
type Observed struct {
	Strategy v1alpha1.InstallStrategy
	// Deleting says that the deletion of the Addon has begun: nobody is to have it.
	Deleting bool
	// Placements are those that the strategy names, in any order, each once. One that is not among them is missing.
	Placements []Placement
	// Members are all members, in any order, each once.
	Members []Member
	// MemberAddons are all of the add-on, in any order, each member once.
	MemberAddons []MemberAddon
	// MaxRemoving is how many MemberAddons may be on their way out at a time. Zero or less: DefaultMaxRemoving.
	MaxRemoving int
}

// Placement is what is known of a Placement.
type Placement struct {
	Namespace, Name string
	State           State
	// Clusters that it is known to have chosen, each once.
	Clusters []Cluster
	// Groups are its decision groups, those without clusters too. Nil: nobody knows.
	Groups []rollout.Group
}

// State says what is known of a Placement.
type State string

// The states of a Placement. Any other is taken for Undecided.
const (
	// Missing Placements are not there.
	Missing State = "Missing"
	// Undecided Placements are there, and Clusters need not be those that they are to have: they are being deleted, were not decided by
	// their present spec, or not all of their decisions are known.
	Undecided State = "Undecided"
	// Decided Placements have chosen Clusters, and no others.
	Decided State = "Decided"
)

// Cluster is a cluster that a Placement has chosen.
type Cluster struct {
	Name string
	// Group is the decision group that it is in.
	Group rollout.Group
}

// Member is a member of the fleet.
type Member struct {
	Name string
	// Joined members may get something new.
	Joined bool
	// Leaving members get nothing new, and what they have goes by the gate of their leave.
	Leaving bool
	// Reachable members can take back what they have.
	Reachable bool
}

// MemberAddon is the add-on on a member.
type MemberAddon struct {
	Member string
	// InstalledBy is the value of [v1alpha1.InstalledByAnnotation]. Empty: a person has made it.
	InstalledBy string
	// GoesBy is the Placement by which one that a person has made went when that was decided last, as in [Decision]. Empty: none.
	GoesBy string
	// Deleting says that its deletion has begun.
	Deleting bool
	// Unclaimed is true if the MemberAddon does not name this Addon by its UID. It is annotated when a Placement has chosen its
	// member.
	Unclaimed bool
	// Earlier is true if the MemberAddon was created for an earlier Addon with this name, as after a restore of the hub. It is kept
	// until a Placement chooses its member: the Placement may not have chosen it yet.
	Earlier bool
}

// Plan is what is to be done.
type Plan struct {
	// Decisions in the order of the members' names.
	Decisions []Decision
	// Shares has for each Placement of the strategy the clusters that go by it, in the order of the strategy. None while
	// the Addon is being deleted.
	Shares []Share
	// Problems are sentences about Placements that are missing, in the order of the strategy.
	Problems []string
}

// Decision is what is to become of the add-on on a member.
type Decision struct {
	Member string
	Action Action
	Reason Reason
	// Placement that the member goes by, as <namespace>/<name>, as it is annotated. Empty: none. The member is in its share.
	Placement string
}

// Action is what is to be done about the add-on on a member.
type Action string

// The actions.
const (
	Create   Action = "Create"   // make a MemberAddon that is installed by the Placement
	Annotate Action = "Annotate" // it is installed by this Placement from now on
	Delete   Action = "Delete"
	Keep     Action = "Keep" // nothing
	Skip     Action = "Skip" // there is none, and it is not the time for one
)

// Reason says why.
type Reason string

// The reasons of decisions; see the package's tables.
const (
	Chosen          Reason = "Chosen"
	ChosenByAnother Reason = "ChosenByAnother"
	ByHand          Reason = "ByHand"
	Uncertain       Reason = "Uncertain"
	Leaving         Reason = "Leaving"
	EarlierAddon    Reason = "EarlierAddon"
	NotJoined       Reason = "NotJoined"
	Removing        Reason = "Removing"
	WaitsForTurn    Reason = "WaitsForTurn"
	NotChosen       Reason = "NotChosen"
	AddonDeleted    Reason = "AddonDeleted"
)

// Share is the clusters that go by a Placement, to which it rolls out.
type Share struct {
	// Placement as <namespace>/<name>.
	Placement string
	// Decided is false while nobody knows all that it has chosen. Clusters that are its own only because they were are then in a group
	// after all others.
	Decided bool
	// Clusters in the order of their names.
	Clusters []Cluster
	// Groups are those of the Placement.
	Groups []rollout.Group
}

// Key is how a Placement is named by annotations and decisions.
func Key(namespace, name string) string { return namespace + "/" + name }

// Decide decides what is to become of the add-on on all members. It changes nothing of what it is given.
func Decide(o Observed) Plan {
	d := newDecider(o)
	var plan Plan
	for _, name := range d.names {
		plan.Decisions = append(plan.Decisions, d.decide(name))
	}
	d.takeTurns(plan.Decisions)
	for _, p := range d.placements {
		plan.Shares = append(plan.Shares, Share{p.key, p.state == Decided, p.clusters, p.groups})
		if p.state == Missing {
			plan.Problems = append(plan.Problems, "There is no Placement "+p.key+
				": the add-on is taken away from nobody until it is there, or spec.install no longer names it.")
		}
	}
	return plan
}

// placement is one of the strategy.
type placement struct {
	key      string
	state    State
	clusters []Cluster // that go by it
	groups   []rollout.Group
}

// choice is the first known choice of a cluster.
type choice struct {
	placement int
	group     rollout.Group
}

type decider struct {
	Observed
	names      []string // of all members that there is something to say of, in order
	placements []placement
	index      map[string]int // of the placements
	certain    bool           // all placements are decided
	chosen     map[string]choice
	members    map[string]Member
	installed  map[string]MemberAddon
}

func newDecider(o Observed) *decider {
	d := &decider{
		Observed: o, certain: true, index: map[string]int{}, chosen: map[string]choice{},
		members: make(map[string]Member, len(o.Members)), installed: make(map[string]MemberAddon, len(o.MemberAddons)),
	}
	if o.Strategy.Type == v1alpha1.InstallPlacements && !o.Deleting {
		d.choose()
	}
	for _, m := range o.Members {
		d.members[m.Name] = m
	}
	named := make(map[string]bool, len(o.MemberAddons))
	for _, a := range o.MemberAddons {
		d.installed[a.Member] = a
		named[a.Member] = true
	}
	for name := range d.chosen {
		named[name] = true
	}
	d.names = slices.Sorted(maps.Keys(named))
	return d
}

// choose has each cluster chosen by the first placement that is known to have chosen it.
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
			if _, before := d.chosen[c.Name]; !before {
				d.chosen[c.Name] = choice{i, c.Group}
			}
		}
	}
}

// decide says what is to become of the add-on on a member, where it is not to wait for its turn.
func (d *decider) decide(name string) Decision {
	decision := func(action Action, reason Reason) Decision {
		return Decision{Member: name, Action: action, Reason: reason}
	}
	member := d.members[name]
	has, there := d.installed[name]
	switch {
	case !there && member.Leaving:
		return decision(Skip, Leaving)
	case !there && !member.Joined:
		return decision(Skip, NotJoined)
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
	_, chosen := d.chosen[name]
	switch made := d.share(decision(Keep, Chosen)); {
	case made.Placement == "" && !d.certain:
		return decision(Keep, Uncertain)
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

// share puts a member into the share of the placement that it goes by, if there is one.
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
	p.clusters = append(p.clusters, Cluster{decision.Member, by.group})
	decision.Placement = p.key
	return decision
}

// takeTurns has those wait that would be too many on their way out.
func (d *decider) takeTurns(decisions []Decision) {
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
