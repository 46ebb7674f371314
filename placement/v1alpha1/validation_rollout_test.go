package v1alpha1_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/muster-sdk/muster/placement/v1alpha1"
)

func stages(change func(*v1alpha1.RolloutStage)) v1alpha1.RolloutStrategy {
	stage := v1alpha1.RolloutStage{Name: "canary"}
	change(&stage)
	return v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages, Stages: []v1alpha1.RolloutStage{stage}}
}

func inGroups(groups ...v1alpha1.DecisionGroupReference) v1alpha1.RolloutStrategy {
	return v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressivePerGroup, MandatoryGroups: groups}
}

func concurrency(share intstr.IntOrString) v1alpha1.RolloutStrategy {
	return v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutProgressive, MaxConcurrency: &share}
}

func failures(share intstr.IntOrString) v1alpha1.RolloutStrategy {
	return v1alpha1.RolloutStrategy{MaxFailures: &share}
}

func TestValidateRollout(t *testing.T) {
	const share, none = "must be a number from 1, or a percentage from 1% to 100%", ""
	number, text := intstr.FromInt32, intstr.FromString
	for _, test := range []struct {
		reason   string
		strategy v1alpha1.RolloutStrategy
		field    string // below spec.rollout; empty: it is valid
		want     string
	}{
		{"nothing is all at once", v1alpha1.RolloutStrategy{}, none, ""},
		{"a type that does not exist", v1alpha1.RolloutStrategy{Type: "Some"}, "type",
			`supported values: "All", "Progressive"`},
		{"all at once is not some at a time", v1alpha1.RolloutStrategy{MaxConcurrency: new(number(1))}, "maxConcurrency",
			"remove maxConcurrency, or set the type to Progressive"},
		{"a number", concurrency(number(1)), none, ""},
		{"none at a time would never end", concurrency(number(0)), "maxConcurrency", share},
		{"a percentage", concurrency(text("100%")), none, ""},
		{"nothing of all would never end", concurrency(text("0%")), "maxConcurrency", share},
		{"more than all", concurrency(text("101%")), "maxConcurrency", share},
		{"a number as a text is neither", concurrency(text("5")), "maxConcurrency", share},
		{"no sign", concurrency(text("+5%")), "maxConcurrency", share},
		{"no fraction", concurrency(text("0.5%")), "maxConcurrency", share},
		{"no failure", failures(number(0)), none, ""},
		{"no failure of all", failures(text("0%")), none, ""},
		{"more than there are is all", failures(number(1000000)), none, ""},
		{"fewer than none", failures(number(-1)), "maxFailures", "must be a number from 0, or a percentage from 0% to 100%"},
		{"fewer than none of all", failures(text("-1%")), "maxFailures", "must be a number from 0"},
		{"no time to fail in", v1alpha1.RolloutStrategy{ProgressDeadlineSeconds: -1}, "progressDeadlineSeconds",
			"must be from 1 to 31536000"},
		{"a soak that began before", v1alpha1.RolloutStrategy{MinSuccessSeconds: -1}, "minSuccessSeconds",
			"must be from 0 to 31536000"},
		{"a soak of more than a year", v1alpha1.RolloutStrategy{MinSuccessSeconds: 31536001}, "minSuccessSeconds",
			"must be from 0 to 31536000"},
		{"another action", v1alpha1.RolloutStrategy{OnFailure: "Shrug"}, "onFailure", `supported values: "Halt", "RollBack"`},
		{"another state", v1alpha1.RolloutStrategy{State: "Walk"}, "state", `supported values: "Run", "Pause", "Stop"`},
		{"a group by name, one by index", inGroups(v1alpha1.DecisionGroupReference{Name: "a"},
			v1alpha1.DecisionGroupReference{Index: new(int32(0))}), none, ""},
		{"a group by nothing", inGroups(v1alpha1.DecisionGroupReference{}), "mandatoryGroups[0]",
			"named by either name or index"},
		{"a group by both", inGroups(v1alpha1.DecisionGroupReference{Name: "a", Index: new(int32(1))}), "mandatoryGroups[0]",
			"named by either name or index"},
		{"an index that none can have", inGroups(v1alpha1.DecisionGroupReference{Index: new(int32(-1))}),
			"mandatoryGroups[0].index", "index must not be negative"},
		{"too many groups to name", inGroups(make([]v1alpha1.DecisionGroupReference, 33)...), "mandatoryGroups",
			"must have at most 32 items"},
		{"groups are of one type", v1alpha1.RolloutStrategy{MandatoryGroups: []v1alpha1.DecisionGroupReference{{Name: "a"}}},
			"mandatoryGroups", "may only be set with type ProgressivePerGroup"},
		{"stages are of one type", v1alpha1.RolloutStrategy{Stages: []v1alpha1.RolloutStage{{Name: "a"}}}, "stages",
			"may only be set with type Stages"},
		{"stages without one", v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages}, "stages",
			"stages is required with type Stages"},
		{"a stage of all", stages(func(*v1alpha1.RolloutStage) {}), none, ""},
		{"a stage that cannot be approved", stages(func(s *v1alpha1.RolloutStage) { s.Name = "" }), "stages[0].name",
			"must be a DNS label"},
		{"a name that the table has for others", stages(func(s *v1alpha1.RolloutStage) {
			s.Name = "Remaining"
		}), "stages[0].name", "must be a DNS label"},
		{"two stages of one name", v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages,
			Stages: []v1alpha1.RolloutStage{{Name: "a"}, {Name: "a"}}}, "stages[1]", "Duplicate value"},
		{"a label that nothing can have", stages(func(s *v1alpha1.RolloutStage) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"two words": "a"}}
		}), "stages[0].selector.matchLabels", "name part must consist of"},
		{"an order by such a label", stages(func(s *v1alpha1.RolloutStage) {
			s.OrderBy = "two words"
		}), "stages[0].orderBy", "orderBy must be the key of a label"},
		{"none of a stage at a time", stages(func(s *v1alpha1.RolloutStage) {
			s.MaxConcurrency = new(number(0))
		}), "stages[0].maxConcurrency", share},
		{"a wait that is over", stages(func(s *v1alpha1.RolloutStage) {
			s.Before.WaitSeconds = -1
		}), "stages[0].before.waitSeconds", "must be from 0 to 31536000"},
		{"a wait that never is", stages(func(s *v1alpha1.RolloutStage) {
			s.After.WaitSeconds = 31536001
		}), "stages[0].after.waitSeconds", "must be from 0 to 31536000"},
	} {
		errs := test.strategy.Validate(field.NewPath("spec", "rollout"))
		switch {
		case test.field == none && len(errs) > 0:
			t.Errorf("%s: want it to be valid, got %v", test.reason, errs)
		case test.field == none:
		case len(errs) == 0 || errs[0].Field != "spec.rollout."+test.field || !strings.Contains(errs[0].Error(), test.want):
			t.Errorf("%s: want a complaint about %s that says %q, got %v", test.reason, test.field, test.want, errs)
		}
	}
}
