package deletion

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

func TestOfWork(t *testing.T) {
	t.Parallel()
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	for _, test := range []struct {
		reason string
		work   Work
		hub    Hub
		want   string
	}{
		{"a Work that is there", Work{Found: true}, Hub{Definition: Served}, ""},
		{"deleted by a user", Work{Found: true, Deleted: at(5)}, Hub{Definition: Served}, Requested},
		{"missing", Work{}, Hub{Definition: Served}, v1alpha1.ReasonWorkNotFound},
		{"missing with its definition", Work{}, Hub{Definition: Absent}, v1alpha1.ReasonDefinitionRemoved},
		{"deleted with its definition", Work{Found: true, Deleted: at(5)}, Hub{Definition: Terminating}, v1alpha1.ReasonDefinitionRemoved},
		{"deleted with its namespace", Work{Found: true, Deleted: at(5)}, Hub{Definition: Served, NamespaceDeleted: at(5)}, v1alpha1.ReasonNamespaceTerminating},
		{"deleted before its namespace", Work{Found: true, Deleted: at(4)}, Hub{Definition: Served, NamespaceDeleted: at(5)}, Requested},
		{"generated, deleted by hand", Work{Found: true, Deleted: at(5), Generated: true}, Hub{Definition: Served}, v1alpha1.ReasonNotRequestedByGenerator},
		{"generated, deleted by its generator", Work{Found: true, Deleted: at(5), Generated: true, Requested: true}, Hub{Definition: Served}, Requested},
		{"a leave deletes the namespace as well", Work{Found: true, Deleted: at(5), Requested: true}, Hub{Definition: Served, NamespaceDeleted: at(5)}, Requested},
		{"a note without a deletion", Work{Found: true, Generated: true, Requested: true}, Hub{Definition: Served}, ""},
	} {
		require.Equal(t, test.want, OfWork(test.work, test.hub), test.reason)
	}
}

func TestOfGenerator(t *testing.T) {
	t.Parallel()
	deleted := time.Unix(5, 0)
	require.True(t, OfGenerator(true, deleted, Served))
	require.False(t, OfGenerator(false, time.Time{}, Served), "one that is missing was not deleted on request")
	require.False(t, OfGenerator(true, time.Time{}, Served))
	require.False(t, OfGenerator(true, deleted, Terminating))
	require.False(t, OfGenerator(true, deleted, Absent))
}

func TestDefinitionIn(t *testing.T) {
	t.Parallel()
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{
		{Name: "works/status", Verbs: metav1.Verbs{"get", "patch"}}, {Name: "works", Verbs: metav1.Verbs{"get", "list", "create"}},
		{Name: "appliedworks", Verbs: metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}},
	}}
	require.Equal(t, Served, definitionIn(list, "works"))
	require.Equal(t, Terminating, definitionIn(list, "appliedworks"))
	require.Equal(t, Absent, definitionIn(list, "worksets"))
}
