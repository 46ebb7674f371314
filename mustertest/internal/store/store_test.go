package store

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

var things = schema.GroupResource{Resource: "things"}

func put(s *Store, name, value string) *Item {
	var out *Item
	_ = s.Do(func(tx *Tx) error {
		out = tx.Put(Key{Resource: things, Name: name}, map[string]any{"value": value, "metadata": map[string]any{}})
		return nil
	})
	return out
}

func remove(s *Store, name string) {
	_ = s.Do(func(tx *Tx) error {
		tx.Delete(Key{Resource: things, Name: name})
		return nil
	})
}

func values(items []*Item) map[string]any {
	out := map[string]any{}
	for _, item := range items {
		out[item.Key.Name] = fmt.Sprint(item.Object["value"], "@", item.Revision)
	}
	return out
}

// TestHistory_EveryRevisionIsReadableAndReplayable checks that each listed state can be read again by its revision, and
// that the events after that revision lead to the current state.
func TestHistory_EveryRevisionIsReadableAndReplayable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := New(0)
		type point struct {
			revision uint64
			state    map[string]any
		}
		var points []point
		for i := range rapid.IntRange(1, 40).Draw(t, "writes") {
			name := fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "name"))
			if rapid.Bool().Draw(t, "put") {
				put(s, name, fmt.Sprint(i))
			} else {
				remove(s, name)
			}
			items, revision := s.List(things, "")
			points = append(points, point{revision, values(items)})
		}
		now, _ := s.List(things, "")
		for _, p := range points {
			items, err := s.ListAt(things, "", p.revision)
			require.NoError(t, err)
			if diff := cmp.Diff(p.state, values(items)); diff != "" {
				t.Fatalf("state at %d (-want +got):\n%s", p.revision, diff)
			}
			cursor, err := s.From(things, p.revision)
			require.NoError(t, err)
			events, _, _, err := cursor.Next()
			require.NoError(t, err)
			state := map[string]*Item{}
			for _, item := range items {
				state[item.Key.Name] = item
			}
			for _, event := range events {
				if event.Type == Deleted {
					delete(state, event.Item.Key.Name)
				} else {
					state[event.Item.Key.Name] = event.Item
				}
			}
			var replayed []*Item
			for _, item := range state {
				replayed = append(replayed, item)
			}
			if diff := cmp.Diff(values(now), values(replayed)); diff != "" {
				t.Fatalf("replay from %d (-want +got):\n%s", p.revision, diff)
			}
		}
	})
}

func TestCompact_OldRevisionsExpireAndOpenCursorsContinue(t *testing.T) {
	s := New(0)
	first := put(s, "a", "1")
	open, err := s.From(things, s.Revision())
	require.NoError(t, err)
	behind, err := s.From(things, first.Revision-1)
	require.NoError(t, err)
	put(s, "a", "2")
	events, _, _, err := open.Next()
	require.NoError(t, err)
	require.Len(t, events, 1)

	s.Compact()
	_, err = s.From(things, first.Revision)
	require.ErrorIs(t, err, ErrCompacted)
	_, err = s.ListAt(things, "", first.Revision)
	require.ErrorIs(t, err, ErrCompacted)
	_, _, _, err = behind.Next()
	require.ErrorIs(t, err, ErrCompacted)

	put(s, "a", "3")
	events, _, _, err = open.Next()
	require.NoError(t, err)
	require.Len(t, events, 1)
	_, err = s.From(things, s.Revision()+1)
	require.ErrorIs(t, err, ErrFuture)
}

func TestRestore_RevisionDecreasesAndObjectsReturn(t *testing.T) {
	s := New(0)
	put(s, "a", "1")
	saved := s.Save()
	put(s, "a", "2")
	put(s, "b", "1")
	changed := s.Changed(s.Revision())
	s.Restore(saved)
	select {
	case <-changed:
	default:
		require.Fail(t, "the restore does not notify a waiter")
	}
	items, revision := s.List(things, "")
	require.Equal(t, saved.revision, revision)
	require.Len(t, items, 1)
	require.Equal(t, "1", items[0].Object["value"])
}
