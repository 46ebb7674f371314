package bundle

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func config(t require.TestingT, name string, size int) Object {
	return sized(t, "ConfigMap", name, size)
}

// formatSteps formats steps as text.
func formatSteps(steps []Step) []string {
	var all []string
	for i := range steps {
		s := &steps[i]
		text := fmt.Sprint(s.Act, " ", s.Work.Name)
		if s.First {
			text += " with the note"
		}
		if s.Waits != "" {
			text += ": " + s.Waits
		}
		all = append(all, text)
	}
	return all
}

func TestArrange(t *testing.T) {
	a, b, c := config(t, "a", 200), config(t, "b", 200), config(t, "c", 400)
	grown := config(t, "a", 650)
	for _, test := range []struct {
		reason string
		before desiredState
		change func(*member)
		want   desiredState
		steps  []string
	}{
		{"Works in the desired state need no steps", desired(1, a, b), nil, desired(1, b, a), nil},
		{"missing Works are created",
			desired(1), nil, desired(1, a, b, c), []string{"create w-0 with the note", "create w-1"}},
		{"content and note change in one update", desired(1, a, b), nil, desired(2, a, config(t, "b", 201)),
			[]string{"update w-0 with the note"}},
		{"changed content alone updates the Work",
			desired(1, a, b), nil, desired(1, a, config(t, "b", 201)), []string{"update w-0 with the note"}},
		{"a changed note does not update the content", desired(1, a, b, c), nil, desired(2, a, b, c),
			[]string{"note w-0 with the note"}},
		{"the note is a step of its own if only another Work changes",
			desired(1, a, b, c), nil, desired(2, a, b, config(t, "c", 401)),
			[]string{"note w-0 with the note", "update w-1"}},
		{"changed options update all Works", desired(1, a, b, c), nil, desiredState{Wanted{[]Object{a, b, c}, Hash{1}}, 1},
			[]string{"update w-0 with the note", "update w-1"}},
		{"an object that moves is added to its new Work first", desired(1, a, b), nil, desired(1, grown, b),
			[]string{"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet", "create w-1"}},
		{"the note does not wait for a move", desired(1, a, b), nil, desired(2, grown, b),
			[]string{"note w-0 with the note",
				"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet", "create w-1"}},
		{"a move waits until the new Work is applied", desired(1, a, b), func(m *member) {
			m.executeReady(t, desired(1, grown, b))
		}, desired(1, grown, b),
			[]string{"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet"}},
		{"an applied new Work completes a move", desired(1, a, b), func(m *member) {
			m.executeReady(t, desired(1, grown, b))
			m.processWork("w-1")
		}, desired(1, grown, b), []string{"update w-0 with the note"}},
		{"a move waits until the new Work is applied with the object",
			desired(1, config(t, "a", 100), config(t, "b", 600), c),
			nil, desired(1, config(t, "a", 250), config(t, "b", 600), c),
			[]string{"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet", "update w-1"}},
		{"the new Work of a move is being deleted", desired(1, a, b), func(m *member) {
			m.executeReady(t, desired(1, grown, b))
			m.processWork("w-1")
			m.change("w-1", func(h *Existing) { h.Deleting = true })
		}, desired(1, grown, b), []string{
			"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet",
			"create w-1: Work w-1 is still being deleted",
		}},
		{"a Work without objects is deleted", desired(1, a, b, c), nil, desired(1, a, b), []string{"delete w-1"}},
		{"the first Work is deleted, and the next one gets the note", desired(1, a, b, c), nil, desired(1, c),
			[]string{"note w-1 with the note", "delete w-0"}},
		{"a canceled move waits until the original Work is applied", desired(1, a, b), func(m *member) {
			m.executeReady(t, desired(1, grown, b))
			m.processWork("w-1")
			m.change("w-0", func(h *Existing) { h.Processed = false })
		}, desired(1, a, b), []string{"delete w-1: ConfigMap a moves to Work w-0, which is not applied yet"}},
		{"all Works are deleted if no objects are desired",
			desired(1, a, b, c), nil, desired(0), []string{"delete w-0", "delete w-1"}},
		{"a Work that is being deleted is not deleted again", desired(1, a, b, c), func(m *member) {
			m.change("w-1", func(h *Existing) { h.Deleting = true })
		}, desired(0), []string{"delete w-0"}},
		{"creation waits for the deletion of a Work with the same name", desired(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Deleting = true })
		}, desired(1, a),
			[]string{"create w-0 with the note: Work w-0 is still being deleted"}},
		{"changes by other clients are reverted", desired(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Hash = Hash{1} })
		}, desired(1, a), []string{"update w-0 with the note"}},
		{"a Work that the API server changed is up to date as it was written", desired(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) {
				h.Written, h.Hash, h.Options = &Fingerprint{h.Hash, h.Options}, Hash{1}, Hash{2}
			})
		}, desired(1, a), nil},
		{"a Work that the API server changed is updated if other objects are desired", desired(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Written, h.Hash = &Fingerprint{h.Hash, h.Options}, Hash{1} })
		}, desired(1, b), []string{"update w-0 with the note"}},
		{"a Work without its marks is updated", desired(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Written, h.Marked = &Fingerprint{h.Hash, h.Options}, false })
		}, desired(1, a), []string{"update w-0 with the note"}},
		{"a Work with the desired content is up to date, whatever was written", desired(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Written = &Fingerprint{Hash{1}, Hash{2}} })
		}, desired(1, a), nil},
		{"a wrong note is corrected", desired(1, a), func(m *member) {
			m.notes["w-0"] = 9
		}, desired(1, a), []string{"note w-0 with the note"}},
		{"only the note of the first Work is checked",
			desired(1, a, b, c), func(m *member) { m.notes["w-1"] = 9 }, desired(1, a, b, c), nil},
		{"a copy under another name is deleted", desired(1, a), func(m *member) {
			orphan := m.works["w-0"]
			orphan.Name, orphan.Hash = "copy", Hash{1}
			m.works["copy"] = orphan
		}, desired(1, a), []string{"delete copy"}},
		{"a copy with a name that resembles a number is deleted", desired(1, a), func(m *member) {
			orphan := m.works["w-0"]
			orphan.Name = "w-01"
			m.works["w-01"] = orphan
		}, desired(1, a), []string{"delete w-01"}},
	} {
		m := convergedMember(t, test.before)
		if test.change != nil {
			test.change(m)
		}
		if diff := cmp.Diff(test.steps, formatSteps(m.arrange(t, test.want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// executeReady executes all steps that need not wait, once.
func (m *member) executeReady(t require.TestingT, w desiredState) {
	for _, s := range m.arrange(t, w) {
		if s.Waits == "" {
			m.execute(t, w, &s)
		}
	}
}

// TestArrange_SortsStepsByNumber checks that steps are sorted by number, so that 10 follows 9.
func TestArrange_SortsStepsByNumber(t *testing.T) {
	var objects []Object
	for i := range 11 {
		objects = append(objects, config(t, fmt.Sprintf("o%02d", i), 700))
	}
	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprintf("create w-%d", i))
	}
	want[0] += " with the note"
	require.Equal(t, want, formatSteps(newMember().arrange(t, desired(1, objects...))))
}

func TestArrangeRefuses(t *testing.T) {
	a := config(t, "a", 100)
	steps, err := Arrange("w", nil, Wanted{Objects: []Object{a, a}})
	require.ErrorIs(t, err, ErrDuplicate)
	require.Nil(t, steps)
}

func TestWaiting(t *testing.T) {
	for _, test := range []struct {
		reason string
		steps  []Step
		want   string
	}{
		{"no steps", nil, ""},
		{"the reason of the first step if all steps wait", []Step{{Waits: "x"}, {Waits: "y"}}, "x"},
		{"no reason if one step is ready", []Step{{Waits: "x"}, {}}, ""},
	} {
		require.Equal(t, test.want, Waiting(test.steps), test.reason)
	}
}

func TestNumberOf(t *testing.T) {
	for name, want := range map[string]int{
		"shop.web-0": 0, "shop.web-17": 17, "shop.web": -1, "shop.web-": -1, "shop.web-01": -1, "shop.web--1": -1,
		"shop.web-+1": -1, "shop.web-0-0": -1,
		"shop.webs-0": -1, "shop.web-99999999999999999999": -1,
	} {
		require.Equal(t, want, numberOf("shop.web", name), name)
	}
}

// TestArrangeProperties changes the desired state at random, executes any subset of the steps, lets the agent process
// any Work, and lets other clients interfere. It checks that the member has exactly the desired objects in the end. An
// object that stays desired is never deleted on the way, unless another client does it.
func TestArrangeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := newMember(), desired(0)
		interfering := rapid.Bool().Draw(t, "other clients interfere")
		const always = 4 // the first names are always desired
		names := []string{"a", "b", "c", "d", "e", "f"}
		requireKept := func(change func()) {
			var had []Key
			for _, name := range names[:always] {
				if o := config(t, name, 0); m.hasObject(o.Key()) {
					had = append(had, o.Key())
				}
			}
			change()
			for _, key := range had {
				require.True(t, interfering || m.hasObject(key), "the member has lost %s", key.Name)
			}
		}
		processWork := func(t *rapid.T) {
			if names := m.names(); len(names) > 0 {
				requireKept(func() { m.processWork(rapid.SampledFrom(names).Draw(t, "work")) })
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"new desired state": func(t *rapid.T) {
				want = desired(want.note + 1)
				want.Options[0] = byte(rapid.IntRange(0, 1).Draw(t, "options"))
				for i, name := range names {
					if i < always || rapid.Bool().Draw(t, "with "+name) {
						want.Objects = append(want.Objects, config(t, name, rapid.IntRange(80, few.bytes).Draw(t, name)))
					}
				}
			},
			"one object": func(t *rapid.T) {
				if len(want.Objects) > 0 {
					want.Objects = slices.Clone(want.Objects)
					o := &want.Objects[rapid.IntRange(0, len(want.Objects)-1).Draw(t, "index")]
					*o = config(t, o.Name, rapid.IntRange(80, few.bytes).Draw(t, "size"))
				}
			},
			"deliver": func(t *rapid.T) {
				steps := m.arrange(t, want)
				for i := range rapid.IntRange(0, len(steps)).Draw(t, "steps") {
					if steps[i].Waits == "" {
						m.execute(t, want, &steps[i])
						if rapid.Bool().Draw(t, "agent processes at once") && !m.works[steps[i].Work.Name].Processed {
							requireKept(func() { m.processWork(steps[i].Work.Name) })
						}
					}
				}
			},
			"agent": processWork,
			"others": func(t *rapid.T) {
				names := m.names()
				if len(names) == 0 || !interfering {
					return
				}
				name := rapid.SampledFrom(names).Draw(t, "work")
				switch rapid.IntRange(0, 4).Draw(t, "change") {
				case 0:
					m.change(name, func(h *Existing) { h.Objects, h.Hash, h.Processed = nil, Hash{}, false })
				case 1:
					m.change(name, func(h *Existing) { h.Marked = false })
				case 2:
					m.notes[name] = -1
				case 3:
					m.change(name, func(h *Existing) { h.Deleting = true })
				case 4:
					m.change(name, func(h *Existing) { h.Options, h.Processed = Hash{9}, false })
				}
			},
		})
		requireKept(func() { m.converge(t, want) })
		m.requireExact(t, want)
	})
}

// TestArrangeWritesOnce checks that one write is made for each Work that differs, and one for the note if the first
// Work does not differ or has to wait.
func TestArrangeWritesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(prefix string) (objects []Object) {
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				if size := rapid.SampledFrom([]int{0, 90, 180, 380, 380, 600}).Draw(t, prefix+name); size > 0 {
					objects = append(objects, config(t, name, size))
				}
			}
			return objects
		}
		m := convergedMember(t, desired(1, draw("before")...))
		var previous []Work
		for _, name := range m.names() {
			previous = append(previous, m.works[name].Work)
		}
		want := desired(2, draw("after")...)
		works, err := pack(few, "w", previous, want.Objects)
		require.NoError(t, err)
		differ := written(previous, works)
		m.converge(t, want)
		require.GreaterOrEqual(t, len(m.writes), differ)
		require.LessOrEqual(t, len(m.writes), differ+1, m.writes)
		m.requireExact(t, want)
	})
}

// TestArrangeCrossing checks a case that must not block: two objects were moving, one to w-1 and one to w-2, when their
// desired sizes changed so that each fits only into the other Work. A step that waited for both to arrive would wait
// forever, because w-0 still has them.
func TestArrangeCrossing(t *testing.T) {
	old := []Object{config(t, "a", 80), config(t, "b", 80), config(t, "c", 80), config(t, "d", 80)}
	m := newMember()
	for name, objects := range map[string][]Object{"w-0": old, "w-1": {config(t, "d", 800)},
		"w-2": {config(t, "c", 471)}} {
		m.works[name] = Existing{Work: Work{Name: name, Objects: objects}, Marked: true}
		m.processWork(name)
	}
	want := desired(1, config(t, "a", 81), config(t, "b", 249), config(t, "c", 471), config(t, "d", 800))
	m.converge(t, want)
	m.requireExact(t, want)
}
