package bundle

import (
	"fmt"
	"maps"
	"slices"

	"github.com/stretchr/testify/require"
)

// desiredState is the desired state of a member, with its note.
type desiredState struct {
	Wanted
	note int
}

func desired(note int, objects ...Object) desiredState {
	return desiredState{Wanted{Objects: objects}, note}
}

// member simulates the Works of one member on the hub, and its agent.
type member struct {
	works   map[string]Existing // without Noted, which depends on the desired state
	notes   map[string]int
	applied map[string][]Object // by Work
	writes  []string
}

func newMember() *member {
	return &member{works: map[string]Existing{}, notes: map[string]int{}, applied: map[string][]Object{}}
}

// convergedMember returns a member that has reached a desired state.
func convergedMember(t require.TestingT, w desiredState) *member {
	m := newMember()
	m.converge(t, w)
	m.writes = nil
	return m
}

func (m *member) names() []string { return slices.Sorted(maps.Keys(m.works)) }

// arrange computes the steps from the existing Works alone, as a controller does after a restart.
func (m *member) arrange(t require.TestingT, w desiredState) []Step {
	var existing []Existing
	for _, name := range m.names() {
		h := m.works[name]
		h.Noted = m.notes[name] == w.note
		h.Objects = slices.Clone(h.Objects)
		for i := range h.Objects {
			h.Objects[i].JSON = nil
		}
		existing = append(existing, h)
	}
	steps, err := arrange(few, "w", existing, w.Wanted)
	require.NoError(t, err)
	return steps
}

// execute carries out a step.
func (m *member) execute(t require.TestingT, w desiredState, s *Step) {
	name := s.Work.Name
	h, exists := m.works[name]
	require.Equal(t, s.Act != Create, exists, "%s %s", s.Act, name)
	require.False(t, h.Deleting, "%s %s", s.Act, name)
	switch s.Act {
	case Create, Update:
		h = Existing{Work: s.Work, Options: w.Options, Marked: true}
	case Delete:
		h.Deleting = true
	}
	m.works[name] = h
	if s.First {
		m.notes[name] = w.note
	}
	m.writes = append(m.writes, fmt.Sprint(s.Act, " ", name))
}

// processWork makes the agent process one Work.
func (m *member) processWork(name string) {
	h := m.works[name]
	if h.Deleting {
		delete(m.works, name)
		delete(m.notes, name)
		delete(m.applied, name)
		return
	}
	m.applied[name] = h.Objects
	h.Processed = true
	m.works[name] = h
}

// change changes a Work, as another client may do.
func (m *member) change(name string, change func(*Existing)) {
	h := m.works[name]
	h.Objects = slices.Clone(h.Objects)
	change(&h)
	m.works[name] = h
}

// converge executes steps until none remain.
func (m *member) converge(t require.TestingT, w desiredState) {
	for range 40 {
		steps := m.arrange(t, w)
		if len(steps) == 0 && !slices.ContainsFunc(m.names(), func(name string) bool {
			return m.works[name].Deleting || !m.works[name].Processed
		}) {
			return
		}
		for i := range steps {
			if steps[i].Waits == "" {
				m.execute(t, w, &steps[i])
			}
		}
		for _, name := range m.names() {
			m.processWork(name)
		}
	}
	require.Fail(t, "the member does not converge")
}

// hasObject reports whether the member has an object. An object that one Work gives up stays while another Work has it.
func (m *member) hasObject(key Key) bool {
	for _, objects := range m.applied {
		if slices.ContainsFunc(objects, func(o Object) bool { return o.Key() == key }) {
			return true
		}
	}
	return false
}

// requireExact checks that the member has exactly the desired objects, each once, and that the hub reports this.
func (m *member) requireExact(t require.TestingT, w desiredState) {
	want := map[Key]Hash{}
	for i := range w.Objects {
		want[w.Objects[i].Key()] = w.Objects[i].Hash
	}
	got := map[Key]Hash{}
	for i, name := range m.names() { // in the order of their numbers, because there are fewer than ten
		h := m.works[name]
		require.True(t, h.Marked && h.Options == w.Options, name)
		require.NotEmpty(t, m.applied[name], name)
		require.Equal(t, h.Objects, m.applied[name], name)
		for j := range h.Objects {
			require.NotContains(t, got, h.Objects[j].Key(), "the object is in two Works")
			got[h.Objects[j].Key()] = h.Objects[j].Hash
		}
		if i == 0 {
			require.Equal(t, w.note, m.notes[name], name)
		}
	}
	require.Equal(t, want, got)
	require.Len(t, m.applied, len(m.works))
}
