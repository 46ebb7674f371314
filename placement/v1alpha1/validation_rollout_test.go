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
		field    string // below spec.rollout; empty: the strategy is valid
		want     string
	}{
		{"an empty strategy", v1alpha1.RolloutStrategy{}, none, ""},
		{"an unknown type", v1alpha1.RolloutStrategy{Type: "Some"}, "type",
			`supported values: "All", "Progressive"`},
		{"maxConcurrency with type All", v1alpha1.RolloutStrategy{MaxConcurrency: new(number(1))}, "maxConcurrency",
			"remove maxConcurrency, or set the type to Progressive"},
		{"maxConcurrency of 1", concurrency(number(1)), none, ""},
		{"maxConcurrency of 0", concurrency(number(0)), "maxConcurrency", share},
		{"maxConcurrency of 100%", concurrency(text("100%")), none, ""},
		{"maxConcurrency of 0%", concurrency(text("0%")), "maxConcurrency", share},
		{"maxConcurrency above 100%", concurrency(text("101%")), "maxConcurrency", share},
		{"maxConcurrency as a number in a string", concurrency(text("5")), "maxConcurrency", share},
		{"maxConcurrency with a sign", concurrency(text("+5%")), "maxConcurrency", share},
		{"maxConcurrency with a fraction of a percent", concurrency(text("0.5%")), "maxConcurrency", share},
		{"maxFailures of 0", failures(number(0)), none, ""},
		{"maxFailures of 0%", failures(text("0%")), none, ""},
		{"a large number of maxFailures", failures(number(1000000)), none, ""},
		{"a negative number of maxFailures", failures(number(-1)), "maxFailures",
			"must be a number from 0, or a percentage from 0% to 100%"},
		{"a negative percentage of maxFailures", failures(text("-1%")), "maxFailures", "must be a number from 0"},
		{"negative progressDeadlineSeconds", v1alpha1.RolloutStrategy{ProgressDeadlineSeconds: -1}, "progressDeadlineSeconds",
			"must be from 1 to 31536000"},
		{"negative minSuccessSeconds", v1alpha1.RolloutStrategy{MinSuccessSeconds: -1}, "minSuccessSeconds",
			"must be from 0 to 31536000"},
		{"minSuccessSeconds of more than a year", v1alpha1.RolloutStrategy{MinSuccessSeconds: 31536001}, "minSuccessSeconds",
			"must be from 0 to 31536000"},
		{"an unknown onFailure", v1alpha1.RolloutStrategy{OnFailure: "Shrug"}, "onFailure",
			`supported values: "Halt", "RollBack"`},
		{"an unknown state", v1alpha1.RolloutStrategy{State: "Walk"}, "state", `supported values: "Run", "Pause", "Stop"`},
		{"a mandatory group by name, and one by index", inGroups(v1alpha1.DecisionGroupReference{Name: "a"},
			v1alpha1.DecisionGroupReference{Index: new(int32(0))}), none, ""},
		{"a mandatory group without name and index", inGroups(v1alpha1.DecisionGroupReference{}), "mandatoryGroups[0]",
			"named by either name or index"},
		{"a mandatory group with name and index", inGroups(v1alpha1.DecisionGroupReference{Name: "a", Index: new(int32(1))}),
			"mandatoryGroups[0]",
			"named by either name or index"},
		{"a negative index of a mandatory group", inGroups(v1alpha1.DecisionGroupReference{Index: new(int32(-1))}),
			"mandatoryGroups[0].index", "index must not be negative"},
		{"too many mandatory groups", inGroups(make([]v1alpha1.DecisionGroupReference, 33)...), "mandatoryGroups",
			"must have at most 32 items"},
		{"mandatory groups with type All",
			v1alpha1.RolloutStrategy{MandatoryGroups: []v1alpha1.DecisionGroupReference{{Name: "a"}}},
			"mandatoryGroups", "may only be set with type ProgressivePerGroup"},
		{"stages with type All", v1alpha1.RolloutStrategy{Stages: []v1alpha1.RolloutStage{{Name: "a"}}}, "stages",
			"may only be set with type Stages"},
		{"type Stages without stages", v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages}, "stages",
			"stages is required with type Stages"},
		{"a stage without a selector", stages(func(*v1alpha1.RolloutStage) {}), none, ""},
		{"a stage without a name", stages(func(s *v1alpha1.RolloutStage) { s.Name = "" }), "stages[0].name",
			"must be a DNS label"},
		{"the stage name Remaining, which the status uses", stages(func(s *v1alpha1.RolloutStage) {
			s.Name = "Remaining"
		}), "stages[0].name", "must be a DNS label"},
		{"two stages with the same name", v1alpha1.RolloutStrategy{Type: v1alpha1.RolloutStages,
			Stages: []v1alpha1.RolloutStage{{Name: "a"}, {Name: "a"}}}, "stages[1]", "Duplicate value"},
		{"an invalid label of a stage", stages(func(s *v1alpha1.RolloutStage) {
			s.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"two words": "a"}}
		}), "stages[0].selector.matchLabels", "name part must consist of"},
		{"an orderBy that is not a label key", stages(func(s *v1alpha1.RolloutStage) {
			s.OrderBy = "two words"
		}), "stages[0].orderBy", "orderBy must be the key of a label"},
		{"maxConcurrency of 0 for a stage", stages(func(s *v1alpha1.RolloutStage) {
			s.MaxConcurrency = new(number(0))
		}), "stages[0].maxConcurrency", share},
		{"a negative waitSeconds before a stage", stages(func(s *v1alpha1.RolloutStage) {
			s.Before.WaitSeconds = -1
		}), "stages[0].before.waitSeconds", "must be from 0 to 31536000"},
		{"waitSeconds after a stage of more than a year", stages(func(s *v1alpha1.RolloutStage) {
			s.After.WaitSeconds = 31536001
		}), "stages[0].after.waitSeconds", "must be from 0 to 31536000"},
	} {
		errs := test.strategy.Validate(field.NewPath("spec", "rollout"))
		switch {
		case test.field == none && len(errs) > 0:
			t.Errorf("%s: unexpected errors: %v", test.reason, errs)
		case test.field == none:
		case len(errs) == 0 || errs[0].Field != "spec.rollout."+test.field || !strings.Contains(errs[0].Error(), test.want):
			t.Errorf("%s: want an error of %s with %q, got %v", test.reason, test.field, test.want, errs)
		}
	}
}
