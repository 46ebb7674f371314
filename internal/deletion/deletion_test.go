package deletion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/internal/definition"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestOfWork_Reason(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for _, test := range []struct {
		reason string
		work   Work
		hub    Hub
		want   string
	}{
		{"a Work that exists", Work{Found: true}, Hub{Definition: definition.Served}, ""},
		{"a Work that a user deleted", Work{Found: true, Deleted: at(5)}, Hub{Definition: definition.Served}, Requested},
		{"a missing Work", Work{}, Hub{Definition: definition.Served}, v1alpha1.ReasonWorkNotFound},
		{
			"a missing Work without its definition", Work{}, Hub{Definition: definition.Absent},
			v1alpha1.ReasonDefinitionRemoved,
		},
		{
			"a Work deleted with its definition", Work{Found: true, Deleted: at(5)},
			Hub{Definition: definition.Terminating}, v1alpha1.ReasonDefinitionRemoved,
		},
		{
			"a Work deleted with its namespace", Work{Found: true, Deleted: at(5)},
			Hub{Definition: definition.Served, NamespaceDeleted: at(5)}, v1alpha1.ReasonNamespaceTerminating,
		},
		{
			"a Work deleted before its namespace", Work{Found: true, Deleted: at(4)},
			Hub{Definition: definition.Served, NamespaceDeleted: at(5)}, Requested,
		},
		{
			"a generated Work deleted by a user", Work{Found: true, Deleted: at(5), Generated: true},
			Hub{Definition: definition.Served}, v1alpha1.ReasonNotRequestedByGenerator,
		},
		{
			"a generated Work deleted by its generator", Work{Found: true, Deleted: at(5), Generated: true, Requested: true},
			Hub{Definition: definition.Served}, Requested,
		},
		{
			"a Work and its namespace deleted by a leave", Work{Found: true, Deleted: at(5), Requested: true},
			Hub{Definition: definition.Served, NamespaceDeleted: at(5)}, Requested,
		},
		{
			"a requested deletion that has not begun", Work{Found: true, Generated: true, Requested: true},
			Hub{Definition: definition.Served}, "",
		},
	} {
		require.Equal(t, test.want, OfWork(test.work, test.hub), test.reason)
	}
}

func TestOfGenerator_Requested(t *testing.T) {
	t.Parallel()
	deleted := time.Unix(5, 0)
	require.True(t, OfGenerator(true, deleted, definition.Served))
	require.False(t, OfGenerator(false, time.Time{}, definition.Served), "a missing generator was not deleted on request")
	require.False(t, OfGenerator(true, time.Time{}, definition.Served))
	require.False(t, OfGenerator(true, deleted, definition.Terminating))
	require.False(t, OfGenerator(true, deleted, definition.Absent))
}
