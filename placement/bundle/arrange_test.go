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

// said formats steps as text.
func said(steps []Step) []string {
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
		has    wish
		change func(*member)
		want   wish
		steps  []string
	}{
		{"what is as it is to be is left alone", wants(1, a, b), nil, wants(1, b, a), nil},
		{"nothing is there yet", wants(1), nil, wants(1, a, b, c), []string{"create w-0 with the note", "create w-1"}},
		{"content changes together with the note", wants(1, a, b), nil, wants(2, a, config(t, "b", 201)),
			[]string{"update w-0 with the note"}},
		{"so it does alone", wants(1, a, b), nil, wants(1, a, config(t, "b", 201)), []string{"update w-0 with the note"}},
		{"another note that changes nothing else", wants(1, a, b, c), nil, wants(2, a, b, c),
			[]string{"note w-0 with the note"}},
		{"so it is where only another Work changes", wants(1, a, b, c), nil, wants(2, a, b, config(t, "c", 401)),
			[]string{"note w-0 with the note", "update w-1"}},
		{"options are those of all Works", wants(1, a, b, c), nil, wish{Wanted{[]Object{a, b, c}, Hash{1}}, 1},
			[]string{"update w-0 with the note", "update w-1"}},
		{"an object that moves is gained before it is given up", wants(1, a, b), nil, wants(1, grown, b),
			[]string{"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet", "create w-1"}},
		{"the note does not wait for that", wants(1, a, b), nil, wants(2, grown, b),
			[]string{"note w-0 with the note",
				"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet", "create w-1"}},
		{"to be written is not to be applied", wants(1, a, b), func(m *member) {
			m.deliver(t, wants(1, grown, b))
		}, wants(1, grown, b),
			[]string{"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet"}},
		{"to be applied is", wants(1, a, b), func(m *member) {
			m.deliver(t, wants(1, grown, b))
			m.obey("w-1")
		}, wants(1, grown, b), []string{"update w-0 with the note"}},
		{"a Work that is applied without the object is not enough", wants(1, config(t, "a", 100), config(t, "b", 600), c),
			nil, wants(1, config(t, "a", 250), config(t, "b", 600), c),
			[]string{"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet", "update w-1"}},
		{"what it moves to goes", wants(1, a, b), func(m *member) {
			m.deliver(t, wants(1, grown, b))
			m.obey("w-1")
			m.change("w-1", func(h *Existing) { h.Deleting = true })
		}, wants(1, grown, b), []string{
			"update w-0 with the note: ConfigMap a moves to Work w-1, which is not applied yet",
			"create w-1: Work w-1 is still being deleted",
		}},
		{"a Work without objects goes", wants(1, a, b, c), nil, wants(1, a, b), []string{"delete w-1"}},
		{"the first may be the one that goes", wants(1, a, b, c), nil, wants(1, c),
			[]string{"note w-1 with the note", "delete w-0"}},
		{"a move is called off: the Work that had the object shall have it first", wants(1, a, b), func(m *member) {
			m.deliver(t, wants(1, grown, b))
			m.obey("w-1")
			m.change("w-0", func(h *Existing) { h.Processed = false })
		}, wants(1, a, b), []string{"delete w-1: ConfigMap a moves to Work w-0, which is not applied yet"}},
		{"without objects all go", wants(1, a, b, c), nil, wants(0), []string{"delete w-0", "delete w-1"}},
		{"what is being deleted is not deleted again", wants(1, a, b, c), func(m *member) {
			m.change("w-1", func(h *Existing) { h.Deleting = true })
		}, wants(0), []string{"delete w-0"}},
		{"a name is waited for", wants(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Deleting = true })
		}, wants(1, a),
			[]string{"create w-0 with the note: Work w-0 is still being deleted"}},
		{"others' edits are undone", wants(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Hash = Hash{1} })
		}, wants(1, a), []string{"update w-0 with the note"}},
		{"what the API server has made of a Work is as good as what it was written to be", wants(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) {
				h.Written, h.Hash, h.Options = &Fingerprint{h.Hash, h.Options}, Hash{1}, Hash{2}
			})
		}, wants(1, a), nil},
		{"unless something else is wanted by now", wants(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Written, h.Hash = &Fingerprint{h.Hash, h.Options}, Hash{1} })
		}, wants(1, b), []string{"update w-0 with the note"}},
		{"or somebody has taken its marks off", wants(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Written, h.Marked = &Fingerprint{h.Hash, h.Options}, false })
		}, wants(1, a), []string{"update w-0 with the note"}},
		{"what was written to be something else, and is as it is wanted", wants(1, a), func(m *member) {
			m.change("w-0", func(h *Existing) { h.Written = &Fingerprint{Hash{1}, Hash{2}} })
		}, wants(1, a), nil},
		{"another note is put right", wants(1, a), func(m *member) {
			m.notes["w-0"] = 9
		}, wants(1, a), []string{"note w-0 with the note"}},
		{"on the first Work alone", wants(1, a, b, c), func(m *member) { m.notes["w-1"] = 9 }, wants(1, a, b, c), nil},
		{"a copy under another name goes", wants(1, a), func(m *member) {
			orphan := m.works["w-0"]
			orphan.Name, orphan.Hash = "copy", Hash{1}
			m.works["copy"] = orphan
		}, wants(1, a), []string{"delete copy"}},
		{"so it does where that looks like a number", wants(1, a), func(m *member) {
			orphan := m.works["w-0"]
			orphan.Name = "w-01"
			m.works["w-01"] = orphan
		}, wants(1, a), []string{"delete w-01"}},
	} {
		m := reached(t, test.has)
		if test.change != nil {
			test.change(m)
		}
		if diff := cmp.Diff(test.steps, said(m.arrange(t, test.want))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.reason, diff)
		}
	}
}

// deliver takes all steps that need not wait, once.
func (m *member) deliver(t require.TestingT, w wish) {
	for _, s := range m.arrange(t, w) {
		if s.Waits == "" {
			m.take(t, w, &s)
		}
	}
}

// TestArrangeByNumbers checks that steps are sorted by number, so that 10 follows 9.
func TestArrangeByNumbers(t *testing.T) {
	var objects []Object
	for i := range 11 {
		objects = append(objects, config(t, fmt.Sprintf("o%02d", i), 700))
	}
	var want []string
	for i := range 11 {
		want = append(want, fmt.Sprintf("create w-%d", i))
	}
	want[0] += " with the note"
	require.Equal(t, want, said(newMember().arrange(t, wants(1, objects...))))
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
		{"nothing is to be done", nil, ""},
		{"all wait: the first says why", []Step{{Waits: "x"}, {Waits: "y"}}, "x"},
		{"one can be taken", []Step{{Waits: "x"}, {}}, ""},
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

// TestArrangeProperties changes the desired state at random, takes any subset of the steps, lets the agent process any
// Work, and lets other clients interfere. It checks that the member has exactly the desired objects in the end. An
// object that stays desired is never deleted on the way, unless another client does it.
func TestArrangeProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, want := newMember(), wants(0)
		meddling := rapid.Bool().Draw(t, "others meddle")
		const always = 4 // so many are wanted all the while
		names := []string{"a", "b", "c", "d", "e", "f"}
		keeps := func(what func()) {
			var had []Key
			for _, name := range names[:always] {
				if o := config(t, name, 0); m.has(o.Key()) {
					had = append(had, o.Key())
				}
			}
			what()
			for _, key := range had {
				require.True(t, meddling || m.has(key), "the member has lost %s", key.Name)
			}
		}
		obey := func(t *rapid.T) {
			if names := m.names(); len(names) > 0 {
				keeps(func() { m.obey(rapid.SampledFrom(names).Draw(t, "work")) })
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"another wish": func(t *rapid.T) {
				want = wants(want.note + 1)
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
					o := &want.Objects[rapid.IntRange(0, len(want.Objects)-1).Draw(t, "which")]
					*o = config(t, o.Name, rapid.IntRange(80, few.bytes).Draw(t, "size"))
				}
			},
			"deliver": func(t *rapid.T) {
				steps := m.arrange(t, want)
				for i := range rapid.IntRange(0, len(steps)).Draw(t, "so many") {
					if steps[i].Waits == "" {
						m.take(t, want, &steps[i])
						if rapid.Bool().Draw(t, "the agent is fast") && !m.works[steps[i].Work.Name].Processed {
							keeps(func() { m.obey(steps[i].Work.Name) })
						}
					}
				}
			},
			"agent": obey,
			"others": func(t *rapid.T) {
				names := m.names()
				if len(names) == 0 || !meddling {
					return
				}
				name := rapid.SampledFrom(names).Draw(t, "work")
				switch rapid.IntRange(0, 4).Draw(t, "what") {
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
		keeps(func() { m.settle(t, want) })
		m.exact(t, want)
	})
}

// TestArrangeWritesOnce checks that one write is made for each Work that differs, and one for the note if the first
// Work does not differ or has to wait.
func TestArrangeWritesOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(what string) (objects []Object) {
			for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
				if size := rapid.SampledFrom([]int{0, 90, 180, 380, 380, 600}).Draw(t, what+name); size > 0 {
					objects = append(objects, config(t, name, size))
				}
			}
			return objects
		}
		m := reached(t, wants(1, draw("before")...))
		var previous []Work
		for _, name := range m.names() {
			previous = append(previous, m.works[name].Work)
		}
		want := wants(2, draw("after")...)
		works, err := pack(few, "w", previous, want.Objects)
		require.NoError(t, err)
		differ := written(previous, works)
		m.settle(t, want)
		require.GreaterOrEqual(t, len(m.writes), differ)
		require.LessOrEqual(t, len(m.writes), differ+1, m.writes)
		m.exact(t, want)
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
		m.obey(name)
	}
	want := wants(1, config(t, "a", 81), config(t, "b", 249), config(t, "c", 471), config(t, "d", 800))
	m.settle(t, want)
	m.exact(t, want)
}
