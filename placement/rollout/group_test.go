package rollout

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func TestGroup_Text(t *testing.T) {
	for text, group := range map[string]Group{
		"0":          {},
		"3":          {Index: 3},
		"3.2":        {Index: 3, Part: 2},
		"canary/1":   {Name: "canary", Index: 1},
		"canary/1.7": {Name: "canary", Index: 1, Part: 7},
	} {
		require.Equal(t, text, group.String())
		parsed, is := groupOf(text)
		require.True(t, is, text)
		require.Equal(t, group, parsed)
	}
	for _, text := range []string{"", "All", "Remaining", "canary/", "1.x", "canary/1."} {
		_, is := groupOf(text)
		require.False(t, is, text)
	}
}

// TestGroup_PartsOfAMandatoryGroup checks that a reference by name or index includes all parts, which are updated in
// order and before other groups.
func TestGroup_PartsOfAMandatoryGroup(t *testing.T) {
	for name, reference := range map[string]v1alpha1.DecisionGroupReference{"name": {Name: "g"},
		"index": {Index: new(int32(1))}} {
		t.Run(name, func(t *testing.T) {
			r := &rollout{Observed: Observed{
				Strategy: v1alpha1.RolloutStrategy{MandatoryGroups: []v1alpha1.DecisionGroupReference{reference}},
				Targets: []Target{
					{Name: "a", Group: Group{Index: 0}},
					{Name: "b", Group: Group{Name: "g", Index: 1, Part: 10}},
					{Name: "c", Group: Group{Name: "g", Index: 1, Part: 2}},
				},
			}}
			r.arrangeGroups()
			var names []string
			for _, s := range r.stages {
				names = append(names, s.Name)
			}
			require.Equal(t, []string{"g/1.2", "g/1.10", "0"}, names)
			require.True(t, r.stages[0].mandatory && r.stages[1].mandatory)
			require.False(t, r.stages[2].mandatory)
		})
	}
}
