package agent_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/readycondition"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// awaitStatus waits until the rendered status of a Work equals a text; see render.
func (f *fixture) awaitStatus(work *v1alpha1.Work, want string) {
	f.T.Helper()
	want = strings.TrimSpace(want)
	f.Eventually("the status of Work "+work.Name+" is as expected", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		got := strings.ReplaceAll(render(work.Status), f.name, "NS")
		if work.Status.ObservedGeneration != work.Generation {
			return fmt.Errorf("want a status of generation %[2]d, got generation %[1]d:\n%[3]s", work.Status.ObservedGeneration,
				work.Generation,
				got)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			return fmt.Errorf("(-want +got)\n%s\n%s", diff, got)
		}
		return nil
	})
}

// ready waits until a Work is applied and available.
func (f *fixture) ready(work *v1alpha1.Work) {
	f.T.Helper()
	f.Eventually("Work "+work.Name+" is ready", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		for _, name := range []string{v1alpha1.ConditionApplied, v1alpha1.ConditionAvailable} {
			if c := condition(work, name); c == nil || c.Status != metav1.ConditionTrue ||
				c.ObservedGeneration != work.Generation {
				return fmt.Errorf("generation %d is not ready:\n%s", work.Generation, render(work.Status))
			}
		}
		return nil
	})
}

func condition(work *v1alpha1.Work, name string) *metav1.Condition {
	for i := range work.Status.Conditions {
		if work.Status.Conditions[i].Type == name {
			return &work.Status.Conditions[i]
		}
	}
	return nil
}

// render formats a status: a line for the Work, its message, and for each manifest a line, its differences and its
// values.
func render(status v1alpha1.WorkStatus) string {
	conditions := func(of []metav1.Condition) string {
		var parts []string
		for _, c := range of {
			if readycondition.Is(c.Type) { // derived from the others, see checkReady
				continue
			}
			parts = append(parts, fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason))
		}
		return strings.Join(parts, " ")
	}
	lines := []string{status.Ready + " " + conditions(status.Conditions), status.Message}
	for _, m := range status.Manifests {
		lines = append(lines, fmt.Sprintf("%s: %s", m.ResourceIdentifier, conditions(m.Conditions)))
		for _, d := range m.Diffs {
			lines = append(lines, fmt.Sprintf("  %s wanted %s found %s", d.Path, d.Wanted, d.Found))
		}
		for _, v := range m.Feedback {
			lines = append(lines, fmt.Sprintf("  %s = %s (%s)", v.Name, v.Value, v.Type))
		}
	}
	return strings.Join(lines, "\n")
}
