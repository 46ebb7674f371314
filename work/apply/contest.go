package apply

import (
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
	// freeHeals is how many heals of one field follow each other without a pause.
	freeHeals = 3
	// firstPause and lastPause bound the pause before the next heal of a contested field. It doubles with each heal.
	firstPause = 2 * time.Second
	lastPause  = 5 * time.Minute
	// calm is how long after the last heal the history of a field is kept.
	calm = 15 * time.Minute
	// quietTime is how long a contested field must stay as it was applied, besides twice its pause, until it is no
	// longer reported.
	quietTime = time.Minute
	// maxContested bounds how many fields of an object are remembered. Beyond it the object counts as a whole.
	maxContested = 16
)

// wholeObject is the field of a contest about all of an object: it was deleted, or most of its fields were taken.
const wholeObject = ""

// heals is the history of the heals of one field.
type heals struct {
	count   int
	last    time.Time
	manager string // of the latest edit; empty: unknown
}

// pause is the least time between the last heal and the next one.
func (h heals) pause() time.Duration {
	if h.count < freeHeals {
		return 0
	}
	return min(firstPause<<min(h.count-freeHeals, 16), lastPause)
}

// reportedUntil is when the field is no longer reported as contested. Zero: it is not contested.
func (h heals) reportedUntil() time.Time {
	if h.count < freeHeals {
		return time.Time{}
	}
	return h.last.Add(2*h.pause() + quietTime)
}

// contest is the history of heals of one object for one manifest, by field. It is never changed, only replaced.
type contest map[string]heals

// wait returns how long a heal of the lost fields has to wait; 0: it is due. Fields that are not contested are healed
// at once, together with all others of the object.
func (c contest) wait(lost []FieldConflict, now time.Time) time.Duration {
	var shortest time.Duration
	for i, field := range lost {
		h := c[field.Field]
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
	for field, h := range c {
		if now.Sub(h.last) <= calm+h.pause() {
			next[field] = h
		}
	}
	for _, field := range lost {
		h := next[field.Field]
		next[field.Field] = heals{count: h.count + 1, last: now, manager: field.Manager}
	}
	for len(next) > maxContested {
		oldest := ""
		for field, h := range next {
			if oldest == "" || h.last.Before(next[oldest].last) {
				oldest = field
			}
		}
		delete(next, oldest)
	}
	return next
}

// reported returns the fields that are contested now, the longest pause among them, and when that has to be decided
// again.
func (c contest) reported(now time.Time) (fields []FieldConflict, pause time.Duration, until time.Time) {
	for _, field := range slices.Sorted(maps.Keys(c)) {
		h := c[field]
		end := h.reportedUntil()
		if !now.Before(end) {
			continue
		}
		fields = append(fields, FieldConflict{Field: field, Manager: h.manager})
		pause = max(pause, h.pause())
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	return fields, pause, until
}

// contested is the message about contested fields.
func contested(fields []FieldConflict, pause time.Duration) string {
	if fields[0].Field == wholeObject {
		by := ""
		if fields[0].Manager != "" {
			by = fmt.Sprintf(" by %q", fields[0].Manager)
		}
		return fmt.Sprintf("The object is deleted or replaced%s each time it is applied; the pause before the next attempt "+
			"is %s. "+
			"Stop what does that, or set mode to CreateOnly or Observe.", by, pause)
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
	return fmt.Sprintf("Fields of the manifest are changed each time they are applied: %s; the pause before the next "+
		"correction is %s. "+
		"Add %s to ignoredFields, or stop the other field manager.", strings.Join(parts, ", "), pause,
		strings.Join(names, ", "))
}

// lostFields returns the fields that our field manager had after its last write and has no more, each with the manager
// that has it now, or that wrote to the object last. Nil: unknown.
func lostFields(written, now *seen, manager string) []FieldConflict {
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

// owned is what one field manager other than ours has.
type owned struct {
	manager string
	fields  *fieldpath.Set
}

// rivalsOf returns the other field managers of an object, and which of them wrote last.
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

// brake decides whether a heal has to wait, and what is said then.
func (m memory) brake(t *task, d decision, now time.Time) (change Change, waits bool) {
	wait := m.contest.wait(t.lost, now)
	if wait == 0 {
		return Change{}, false
	}
	fields, pause, _ := m.contest.reported(now)
	change = t.change(left(Skipped, v1alpha1.ReasonContested, contested(fields, pause)))
	change.Conflicts, change.Drifted, change.RetryAfter = fields, d.drifted, wait
	return change, true
}

// contested says of an object that was applied, or is as it was, that others change it again and again.
func (m memory) contested(change Change, now time.Time) Change {
	fields, pause, until := m.contest.reported(now)
	if len(fields) == 0 || change.Reason != v1alpha1.ReasonApplied {
		return change
	}
	change.Reason, change.Message = v1alpha1.ReasonContested, contested(fields, pause)
	change.Conflicts, change.RetryAfter = fields, until.Sub(now)
	return change
}
