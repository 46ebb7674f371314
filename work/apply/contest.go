package apply

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

const (
	// freeHeals is how many heals of a field are made without a pause.
	freeHeals = 3
	// firstPause and lastPause bound the pause before the next heal of a contested field. It doubles with each heal.
	firstPause = 2 * time.Second
	lastPause  = 5 * time.Minute
	// historyRetention is how long the history of a field is kept after its last heal and pause.
	historyRetention = 15 * time.Minute
	// quietTime is how long a contested field must stay as it was applied, in addition to twice its pause, until it is
	// no longer reported.
	quietTime = time.Minute
	// maxContested is how many fields of an object have a history of their own. Further fields share that of the whole
	// object.
	maxContested = 16
	// maxOpponents is how many field managers have a history of their own for one field. Further managers share one.
	maxOpponents = 3
)

// wholeObject is the field of a contest about the whole object: it was deleted, or many of its fields were changed.
const wholeObject = ""

// healHistory is the history of the heals of one field after changes by one field manager.
type healHistory struct {
	count int
	last  time.Time
}

// pause returns the minimum time between the last heal and the next one.
func (h healHistory) pause() time.Duration {
	if h.count < freeHeals {
		return 0
	}
	return min(firstPause<<min(h.count-freeHeals, 16), lastPause)
}

// reportedUntil returns when the field is no longer reported as contested. Zero: the field is not contested.
func (h healHistory) reportedUntil() time.Time {
	if h.count < freeHeals {
		return time.Time{}
	}
	return h.last.Add(2*h.pause() + quietTime)
}

// contest is the history of heals of one object for one manifest, by field and by the manager that changed the field.
// So an edit of a contested field by another client, such as a person, is healed immediately. A contest is never
// changed, only replaced.
type contest map[FieldConflict]healHistory

// entry returns the key of the history that a lost field belongs to. The number of keys is bounded: a client that
// changes other fields, or under other names, each time must not avoid the pause.
func (c contest) entry(lost FieldConflict) FieldConflict {
	if _, known := c[lost]; known {
		return lost
	}
	managers := map[string]int{} // with a history, by field
	for known := range c {
		managers[known.Field]++
	}
	if managers[lost.Field] == 0 && len(managers) >= maxContested {
		lost.Field = wholeObject
	}
	if managers[lost.Field] >= maxOpponents {
		lost.Manager = ""
	}
	return lost
}

// wait returns how long a heal of the lost fields has to wait; 0: it is due. Fields that are not contested are healed
// immediately, together with all other fields of the object.
func (c contest) wait(lost []FieldConflict, now time.Time) time.Duration {
	var shortest time.Duration
	for i, field := range lost {
		h := c[c.entry(field)]
		left := h.last.Add(h.pause()).Sub(now)
		if left <= 0 {
			return 0
		}
		if i == 0 || left < shortest {
			shortest = left
		}
	}
	return shortest
}

// healed returns the history after a heal of the lost fields.
func (c contest) healed(lost []FieldConflict, now time.Time) contest {
	next := contest{}
	for entry, h := range c {
		if now.Sub(h.last) <= historyRetention+h.pause() {
			next[entry] = h
		}
	}
	counted := map[FieldConflict]bool{} // several lost fields may share an entry
	for _, field := range lost {
		entry := next.entry(field)
		if !counted[entry] {
			next[entry] = healHistory{count: next[entry].count + 1, last: now}
			counted[entry] = true
		}
	}
	return next
}

// reported returns the fields that are contested now, the longest pause among them, and when they have to be determined
// again.
func (c contest) reported(now time.Time) (fields []FieldConflict, pause time.Duration, until time.Time) {
	for _, entry := range slices.SortedFunc(maps.Keys(c), compareConflicts) {
		h := c[entry]
		end := h.reportedUntil()
		if !now.Before(end) {
			continue
		}
		fields = append(fields, entry)
		pause = max(pause, h.pause())
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return fields, pause, until
}

// compareConflicts sorts by field and manager.
func compareConflicts(a, b FieldConflict) int {
	return cmp.Or(strings.Compare(a.Field, b.Field), strings.Compare(a.Manager, b.Manager))
}

// contestedMessage returns the message about contested fields.
func contestedMessage(fields []FieldConflict, pause time.Duration) string {
	if fields[0].Field == wholeObject {
		by := ""
		if fields[0].Manager != "" {
			by = fmt.Sprintf(" by %q", fields[0].Manager)
		}
		return fmt.Sprintf("The object is deleted or replaced%s after each apply; the pause before the next attempt is %s. "+
			"Stop the client that does this, or set mode to CreateOnly or Observe.", by, pause)
	}
	var parts, names []string
	for _, field := range fields[:min(3, len(fields))] {
		by := "another client"
		if field.Manager != "" {
			by = fmt.Sprintf("%q", field.Manager)
		}
		parts = append(parts, fmt.Sprintf("%s by %s", field.Field, by))
		names = append(names, field.Field)
	}
	if more := len(fields) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("Fields of the manifest are changed after each apply: %s; the pause before the next correction "+
		"is %s. Add %s to ignoredFields, or stop the other field manager.", strings.Join(parts, ", "), pause,
		strings.Join(slices.Compact(names), ", "))
}

// lostFields returns the fields that our field manager owned after its last write and does not own any more. Each has
// the manager that owns the field now or, if none does, the manager that wrote to the object last. Nil: unknown.
func lostFields(written, now *observation, manager string) []FieldConflict {
	if now == nil {
		return []FieldConflict{{Field: wholeObject}}
	}
	if written == nil || written.uid != now.uid {
		return nil
	}
	had, err := parseFields(written.fields)
	if err != nil {
		return nil
	}
	has := fieldpath.NewSet()
	if now.fields != nil {
		if has, err = parseFields(now.fields); err != nil {
			return nil
		}
	}
	lost := pathsOfSet(had.Difference(has).Leaves())
	latest, owners := rivalsOf(now.entries, manager)
	if len(lost) > maxContested {
		return []FieldConflict{{Field: wholeObject, Manager: latest}}
	}
	fields := make([]FieldConflict, 0, len(lost))
	for _, path := range lost {
		by := latest
		for _, owner := range owners {
			if owner.fields.Has(path) || !descend(owner.fields, path).Empty() {
				by = owner.manager
				break
			}
		}
		fields = append(fields, FieldConflict{Field: pathOf(path).String(), Manager: by})
	}
	return fields
}

// owned is the set of fields that another field manager owns.
type owned struct {
	manager string
	fields  *fieldpath.Set
}

// rivalsOf returns the fields of the other field managers of an object, and which manager wrote last.
func rivalsOf(entries []metav1.ManagedFieldsEntry, manager string) (latest string, owners []owned) {
	var last time.Time
	for _, entry := range entries {
		if entry.Manager == manager || entry.FieldsV1 == nil || entry.Subresource == "status" {
			continue
		}
		if entry.Time != nil && !entry.Time.Time.Before(last) {
			latest, last = entry.Manager, entry.Time.Time
		}
		if set, err := parseFields(entry.FieldsV1.GetRawBytes()); err == nil {
			owners = append(owners, owned{entry.Manager, set})
		}
	}
	return latest, owners
}

func descend(set *fieldpath.Set, path fieldpath.Path) *fieldpath.Set {
	for _, element := range path {
		set = set.WithPrefix(element)
	}
	return set
}

func pathsOfSet(set *fieldpath.Set) []fieldpath.Path {
	var paths []fieldpath.Path
	for path := range set.All() {
		paths = append(paths, path.Copy())
	}
	return paths
}

// delayHeal decides whether a heal has to wait, and returns the change to report then.
func (m memory) delayHeal(t *task, d decision, now time.Time) (change Change, waits bool) {
	wait := m.contest.wait(d.lost, now)
	if wait == 0 {
		return Change{}, false
	}
	fields, pause, _ := m.contest.reported(now)
	change = t.change(reportOnly(Skipped, v1alpha1.ReasonContested, contestedMessage(fields, pause)))
	change.Conflicts, change.Drifted, change.RetryAfter = fields, d.drifted, wait
	return change, true
}

// contested returns the change of an object that was applied or is unchanged, with the reason Contested if a contest
// is going on.
func (m memory) contested(change Change, now time.Time) Change {
	fields, pause, until := m.contest.reported(now)
	if len(fields) == 0 || change.Reason != v1alpha1.ReasonApplied {
		return change
	}
	change.Reason, change.Message = v1alpha1.ReasonContested, contestedMessage(fields, pause)
	change.Conflicts, change.RetryAfter = fields, until.Sub(now)
	return change
}
