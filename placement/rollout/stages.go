package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

// Every strategy is a list of stages: All and Progressive have one, ProgressivePerGroup has one for each group.

// stage is a part of a rollout that is done before the next begins.
type stage struct {
	v1alpha1.RolloutStage
	mandatory bool
	lost      bool // all its clusters left before it was done
	slots     slots
	members   []member
	tally

	reachedAt, finishedAt *metav1.Time
	waiting               v1alpha1.RolloutPhase // the phase while a gate blocks the stage; empty: none does
	gate                  v1alpha1.GatePosition
	until                 time.Time
}

// member is a target in its stage.
type member struct {
	*Target
	stage           int
	order           order
	state           state
	hasSlot         bool // holds a slot
	hurt            bool // failed or timed out, at any revision
	countsAsFailure bool // failed or timed out at the goal, because of the rollout
}

// The names of stages that no user has named. A user cannot use them: names of stages and groups have no capitals, or
// contain a slash.
const (
	single    = "All"
	remaining = "Remaining"
)

// arrange creates the stages and assigns every target to its stage.
func (r *rollout) arrange() error {
	r.members = make([]member, len(r.Targets))
	for i := range r.members {
		r.members[i].Target = &r.Targets[i]
	}
	switch r.Strategy.Type {
	case v1alpha1.RolloutProgressivePerGroup:
		r.arrangeGroups()
	case v1alpha1.RolloutStages:
		if err := r.arrangeStages(); err != nil {
			return err
		}
	default:
		r.stages = []stage{{RolloutStage: v1alpha1.RolloutStage{Name: single}}}
	}
	if !slices.IsSortedFunc(r.members, compare) {
		slices.SortFunc(r.members, compare)
	}
	rows := make(map[string]*v1alpha1.RolloutStageStatus, len(r.memory.Stages))
	for i := range r.memory.Stages {
		rows[r.memory.Stages[i].Name] = &r.memory.Stages[i]
	}
	rest := r.members
	for i := range r.stages {
		s := &r.stages[i]
		end := 0
		for end < len(rest) && rest[end].stage == i {
			end++
		}
		s.members, rest = rest[:end:end], rest[end:]
		s.slots.limit = len(s.members)
		if r.Strategy.Type == v1alpha1.RolloutStages {
			s.slots.limit = max(1, share(s.MaxConcurrency, len(s.members), 1))
		}
		if row := rows[s.Name]; row != nil {
			s.reachedAt, s.finishedAt = row.ReachedAt, row.FinishedAt
		}
	}
	return nil
}

// arrangeGroups creates a stage for each group that has a cluster, or that lost its last cluster before it was done.
// Mandatory groups are first, in the order of the strategy; the others are sorted by index.
func (r *rollout) arrangeGroups() {
	type ranked struct {
		Group
		rank int
	}
	place := map[Group]int{}
	for i := range r.Targets {
		place[r.Targets[i].Group] = 0
	}
	lost := r.lostGroups(place)
	for _, group := range lost {
		place[group] = 0
	}
	groups := make([]ranked, 0, len(place))
	for group := range place {
		rank := slices.IndexFunc(r.Strategy.MandatoryGroups, group.named)
		if rank < 0 {
			rank = len(r.Strategy.MandatoryGroups)
		}
		groups = append(groups, ranked{group, rank})
	}
	slices.SortFunc(groups, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), a.compare(b.Group))
	})
	for i, group := range groups {
		place[group.Group] = i
		r.stages = append(r.stages, stage{
			RolloutStage: v1alpha1.RolloutStage{Name: group.String()},
			mandatory:    group.rank < len(r.Strategy.MandatoryGroups),
			lost:         slices.Contains(lost, group.Group),
		})
	}
	for i := range r.members {
		r.members[i].stage = place[r.members[i].Group]
	}
}

// arrangeStages creates the stages of the strategy, and an additional one if they do not select all clusters.
func (r *rollout) arrangeStages() error {
	selectors := make([]labels.Selector, len(r.Strategy.Stages))
	for i, s := range r.Strategy.Stages {
		selectors[i] = labels.Everything()
		if s.Selector != nil {
			selector, err := metav1.LabelSelectorAsSelector(s.Selector)
			if err != nil {
				return fmt.Errorf("stage %s: selector: %w", s.Name, err)
			}
			selectors[i] = selector
		}
		r.stages = append(r.stages, stage{RolloutStage: s})
	}
	dropped := false
	for i := range r.members {
		m := &r.members[i]
		set := labels.Set(m.Labels)
		m.stage = slices.IndexFunc(selectors, func(s labels.Selector) bool { return s.Matches(set) })
		if m.stage < 0 {
			m.stage, dropped = len(selectors), true
		} else if key := r.stages[m.stage].OrderBy; key != "" {
			m.order = orderOf(m.Labels, key)
		}
	}
	if dropped {
		r.stages = append(r.stages, stage{RolloutStage: v1alpha1.RolloutStage{Name: remaining}})
	}
	return nil
}

// compare orders targets by stage, label, group and name.
func compare(a, b member) int {
	if c := cmp.Or(cmp.Compare(a.stage, b.stage), a.order.compare(b.order)); c != 0 {
		return c
	}
	return cmp.Or(a.Group.compare(b.Group), strings.Compare(a.Name, b.Name))
}

// order is the position of a cluster by the value of a label: numbers first, then other texts, then clusters without
// the label.
type order struct {
	class  int // 0: number, 1: text, 2: no label
	number int64
	text   string
}

func orderOf(set map[string]string, key string) order {
	value, found := set[key]
	number, err := strconv.ParseInt(value, 10, 64)
	switch {
	case !found:
		return order{class: 2}
	case err != nil:
		return order{class: 1, text: value}
	}
	return order{number: number}
}

func (o order) compare(other order) int {
	return cmp.Or(cmp.Compare(o.class, other.class), cmp.Compare(o.number, other.number),
		strings.Compare(o.text, other.text))
}

func (g Group) compare(other Group) int {
	return cmp.Or(cmp.Compare(g.Index, other.Index), strings.Compare(g.Name, other.Name), cmp.Compare(g.Part, other.Part))
}

// groupOf parses the result of [Group.String], such as the name of a stage.
func groupOf(text string) (group Group, is bool) {
	name, index, named := strings.Cut(text, "/")
	if !named {
		name, index = "", text
	}
	index, part, divided := strings.Cut(index, ".")
	n, err := strconv.ParseInt(index, 10, 32)
	group = Group{Name: name, Index: int32(n)}
	if err != nil || !divided {
		return group, err == nil
	}
	n, err = strconv.ParseInt(part, 10, 32)
	group.Part = int32(n)
	return group, err == nil
}

func (g Group) named(ref v1alpha1.DecisionGroupReference) bool {
	if ref.Index != nil {
		return g.Index == *ref.Index
	}
	return g.Name == ref.Name
}

// String returns the name and the index of the group as name/index, or the index if the group has no name. A part other
// than the first is added to the index, as in name/index.part.
func (g Group) String() string {
	index := strconv.Itoa(int(g.Index))
	if g.Part != 0 {
		index += "." + strconv.Itoa(int(g.Part))
	}
	if g.Name == "" {
		return index
	}
	return g.Name + "/" + index
}

// share returns a number, or a percentage of a total, rounded down. If it is not set, it returns fallback.
func share(of *intstr.IntOrString, total, fallback int) int {
	switch {
	case of == nil:
		return fallback
	case of.Type == intstr.Int:
		return of.IntValue()
	}
	percent, _ := strconv.Atoi(strings.TrimSuffix(of.StrVal, "%")) // the strategy is validated
	return percent * total / 100
}
