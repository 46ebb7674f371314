package bundle

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Wanted is the desired state of a member.
type Wanted struct {
	Objects []Object
	// Options is the hash of the spec of each Work without its manifests, as [HashOptions] returns it.
	Options Hash
}

// Act is the request of a step.
type Act int

const (
	// Create creates a Work.
	Create Act = iota
	// Update writes the spec and the marks of a Work, and the note if the Work is the first one.
	Update
	// Note writes only the note on the first Work, because the rest of the Work is up to date or cannot be written yet.
	Note
	// Delete deletes a Work.
	Delete
)

// String returns create, update, note or delete.
func (a Act) String() string { return [...]string{"create", "update", "note", "delete"}[a] }

// Step is one request.
type Step struct {
	Act Act
	// Work is the desired Work. For Delete, only its name is set.
	Work Work
	// First is true for the first Work of the member, which has the note.
	First bool
	// Waits is the reason why the step must wait, as a clause. Empty: the step can be taken.
	Waits string
}

// Arrange returns the steps that turn the existing Works of a member into the desired ones, in the order in which they
// should be taken. An empty result means that all Works are up to date. The package documentation describes why some
// steps wait.
//
// has must contain all Works that the caller created for this base, and no others. A Work whose name is not base, a
// hyphen and a number is treated as a copy made by a user, and is deleted. Without desired objects, all Works are
// deleted.
//
// The caller skips steps that wait, and the steps after a failed one. After any change, call Arrange again, because the
// desired state may have changed.
//
// Arrange does not change its arguments. The order of has only affects the order of deletions. The errors are those of
// [Pack].
func Arrange(base string, has []Existing, want Wanted) ([]Step, error) {
	return arrange(standard, base, has, want)
}

func arrange(limits limits, base string, has []Existing, want Wanted) ([]Step, error) {
	var live, orphans []*Existing
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
	previous, byName := make([]Work, len(live)), make(map[string]*Existing, len(live))
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
				s.Waits = fmt.Sprintf("Work %s is still being deleted", s.Work.Name)
			}
		case !h.is(Fingerprint{s.Work.Hash, want.Options}):
			s.Act, s.Waits = Update, waitsForMove(base, byName, h, homes)
			if s.Waits != "" && s.First && !h.Noted { // the note does not wait with the content
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
			steps = append(steps, Step{Act: Delete, Work: Work{Name: h.Name}, Waits: waitsForMove(base, byName, h, homes)})
		}
	}
	for _, h := range orphans {
		steps = append(steps, Step{Act: Delete, Work: Work{Name: h.Name}})
	}
	return steps, nil
}

// waitsForMove returns the reason why a Work that gives up objects must wait: a Work to which an object moves is not
// applied. Empty: the Work need not wait.
//
// If the desired state changed during a move, an object is in a third Work. The first of the Works that give it up
// keeps it until it has arrived. The other ones do not wait for that, because they could wait for each other.
func waitsForMove(base string, live map[string]*Existing, from *Existing, homes map[Key]string) string {
	for i := range from.Objects {
		o := &from.Objects[i]
		home := homes[o.Key()]
		if home == "" || home == from.Name {
			continue
		}
		kept := false
		for name, h := range live {
			kept = kept || h.Processed && h.has(o.Key()) && (name == home || numberOf(base, name) < numberOf(base, from.Name))
		}
		if !kept {
			return fmt.Sprintf("%s moves to Work %s, which is not applied yet", o.ResourceIdentifier, home)
		}
	}
	return ""
}

// Waiting returns why all steps wait. Empty: no step waits, or at least one step can be taken.
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

// numberOf returns the number in the name of a Work. Negative: the name has another form.
func numberOf(base, name string) int {
	digits, found := strings.CutPrefix(name, base+"-")
	number, err := strconv.Atoi(digits)
	if !found || err != nil || strconv.Itoa(number) != digits {
		return -1
	}
	return number
}
