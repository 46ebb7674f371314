package definition

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestStateIn_ServedTerminatingAbsent(t *testing.T) {
	t.Parallel()
	list := &metav1.APIResourceList{APIResources: []metav1.APIResource{
		{Name: "works/status", Verbs: metav1.Verbs{"get", "patch"}},
		{Name: "works", Verbs: metav1.Verbs{"get", "list", "create"}},
		{Name: "appliedworks", Verbs: metav1.Verbs{"delete", "deletecollection", "get", "list", "watch"}},
	}}
	require.Equal(t, Served, stateIn(list, "works"))
	require.Equal(t, Terminating, stateIn(list, "appliedworks"))
	require.Equal(t, Absent, stateIn(list, "worksets"))
}
