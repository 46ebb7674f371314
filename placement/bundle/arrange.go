package bundle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Wanted is what a member is to have.
type Wanted struct {
	Objects []Object
	// Options is the hash of what the spec of each Work says besides, by [HashOptions].
	Options Hash
}

// Act is what is done to a Work.
type Act int

const (
	// Create makes a Work that is not there.
	Create Act = iota
	// Update writes a Work as it is to be: its spec, its marks and, on the first one, the note.
	Update
	// Note writes the note on the first Work, which is as it is to be or has to wait.
	Note
	// Delete deletes a Work.
	Delete
)

// String is create, update, note or delete.
func (a Act) String() string { return [...]string{"create", "update", "note", "delete"}[a] }

// Step is one request.
type Step struct {
	Act Act
	// Work as it is to be. Of one that is deleted there is the name alone.
	Work Work
	// First says that it is the member's first Work: the one that the note is on.
	First bool
	// Waits says why the step cannot be taken yet, as a clause. Empty: it can.
	Waits string
}

// Arrange returns the steps from the Works that a member has to those that it is to have, in the order in which they
// are taken; none: all is as it is to be. The package's documentation says why some of them wait.
//
// The Works that there are must be all that the caller has made for this, and no others: one whose name is not base,
// a hyphen and a number is taken for a copy that a user made, and is deleted. Without objects all Works are.
//
// A step that waits is left out, and so are those after one that has failed. Once anything has changed, Works are
// arranged anew: what is wanted may be something else by then.
//
// No argument is changed. The order of what there is matters to the order of deletions alone. The error is as of
// [Pack].
func Arrange(base string, has []Held, want Wanted) ([]Step, error) {
	return arrange(standard, base, has, want)
}

func arrange(limits limits, base string, has []Held, want Wanted) ([]Step, error) {
	var live, orphans []*Held
	dying := map[string]bool{}
	for i := range has {
		switch h := &has[i]; {
		case h.Deleting:
			dying[h.Name] = true
		case numberOf(base, h.Name) < 0:
			orphans = append(orphans, h)
		default:
			live = append(live, h)
		}
	}
	previous, byName := make([]Work, len(live)), make(map[string]*Held, len(live))
	for i, h := range live {
		previous[i], byName[h.Name] = h.Work, h
	}
	works, err := pack(limits, base, previous, want.Objects)
	if err != nil {
		return nil, err
	}
	homes := make(map[Key]string, len(want.Objects))
	for i := range works {
		for j := range works[i].Objects {
			homes[works[i].Objects[j].Key()] = works[i].Name
		}
	}

	var steps []Step
	stays := map[string]bool{}
	for i := range works {
		s := Step{Work: works[i], First: i == 0}
		stays[s.Work.Name] = true
		h := byName[s.Work.Name]
		switch {
		case h == nil:
			if dying[s.Work.Name] {
				s.Waits = fmt.Sprintf("Work %s, which is being deleted, is not gone yet", s.Work.Name)
			}
		case !h.is(Fingerprint{s.Work.Hash, want.Options}):
			s.Act, s.Waits = Update, mover(base, byName, h, homes)
			if s.Waits != "" && s.First && !h.Noted { // which is no reason for the note to wait
				steps = append(steps, Step{Act: Note, Work: s.Work, First: true})
			}
		case s.First && !h.Noted:
			s.Act = Note
		default:
			continue
		}
		steps = append(steps, s)
	}
	for _, h := range live {
		if !stays[h.Name] {
			steps = append(steps, Step{Act: Delete, Work: Work{Name: h.Name}, Waits: mover(base, byName, h, homes)})
		}
	}
	for _, h := range orphans {
		steps = append(steps, Step{Act: Delete, Work: Work{Name: h.Name}})
	}
	return steps, nil
}

// mover says what a Work that gives up objects has to wait for: that the Works which they move to are applied. Empty:
// for nothing.
//
// An object that was on its way already, when something else was wanted, is in a third Work besides. The first of those
// that it leaves keeps it until it has arrived, and the others need not: they might wait for each other.
func mover(base string, live map[string]*Held, from *Held, homes map[Key]string) string {
	for i := range from.Objects {
		o := &from.Objects[i]
		home := homes[o.Key()]
		if home == "" || home == from.Name {
			continue
		}
		kept := false
		for name, h := range live {
			kept = kept || h.Settled && h.has(o.Key()) && (name == home || numberOf(base, name) < numberOf(base, from.Name))
		}
		if !kept {
			return fmt.Sprintf("%s moves to Work %s, which is not applied yet", o.ResourceIdentifier, home)
		}
	}
	return ""
}

// Waiting says what steps wait for. Empty: for nothing, or there is one that can be taken.
func Waiting(steps []Step) string {
	why := ""
	for i := range steps {
		if steps[i].Waits == "" {
			return ""
		}
		why = cmp.Or(why, steps[i].Waits)
	}
	return why
}

// numberOf is the number in the name of a Work; negative: the name has another form.
func numberOf(base, name string) int {
	digits, found := strings.CutPrefix(name, base+"-")
	number, err := strconv.Atoi(digits)
	if !found || err != nil || strconv.Itoa(number) != digits {
		return -1
	}
	return number
}
