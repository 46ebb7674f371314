package addon_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/addon"
	"github.com/muster-sdk/muster/addon/health"
	"github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/placement/rollout"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// customHealth is an add-on that reports its health itself, and rejects AddonConfigs without variables.
type customHealth struct {
	echo
	version string
}

func (t customHealth) Version() string { return t.version }

func (customHealth) ValidateConfig(config *unstructured.Unstructured) error {
	if _, found, _ := unstructured.NestedSlice(config.Object, "spec", "variables"); !found {
		return errors.New("spec.variables: must have a color")
	}
	return nil
}

func (customHealth) Health(_ context.Context, _ addon.Input, works []health.Work) (health.Answer, error) {
	if len(works) == 0 {
		return health.Answer{}, errors.New("no Works")
	}
	return health.Answer{Health: rollout.Succeeded, Message: "All checks passed."}, nil
}

// TestHealth_AssignedRevisionIsChecked checks that an add-on is also called for its health if a new revision cannot be
// assigned, because the assigned revision still runs.
func TestHealth_AssignedRevisionIsChecked(t *testing.T) {
	testkit.Virtual(t, testHealthAssignedRevisionIsChecked)
}

func testHealthAssignedRevisionIsChecked(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.choose("all", "a", "b")
	h.runAgents()
	h.color("colors", "blue")
	first := h.start(addon.Options{Agents: []addon.Agent{customHealth{echo{h.name("echo")}, "1"}}})
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.byPlacement("all")(s)
		s.Health.Type = v1alpha1.HealthCustom
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{h.reference("colors").ObjectName}}}
	})
	// both reports whether both members are available and have a condition with a reason.
	both := func(kind, reason string) func() bool {
		return func() bool {
			return count([]string{"a", "b"}, func(name string) bool {
				m := h.memberAddon("echo", name)
				if !isTrue(m, v1alpha1.ConditionAvailable) {
					return false
				}
				available := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAvailable)
				other := meta.FindStatusCondition(m.Status.Conditions, kind)
				return available.Message == "All checks passed." && other != nil && other.Reason == reason
			}) == 2
		}
	}
	h.Holds("both are available", both(v1alpha1.ConditionProgressing, v1alpha1.ReasonUpdated))

	config := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: "colors"}}
	require.NoError(t, h.Client.Patch(t.Context(), config,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"variables":null}}`))))
	h.Holds("the configuration is rejected, and both are available",
		both(v1alpha1.ConditionConfigured, v1alpha1.ReasonConfigInvalid))
	h.color("colors", "blue")
	h.Holds("both are configured and available", both(v1alpha1.ConditionProgressing, v1alpha1.ReasonUpdated))
	first.stop()

	a := h.get("echo")
	before := a.DeepCopy()
	a.Spec.Install.Placements[0].Rollout.State = placementv1alpha1.RolloutPause
	require.NoError(t, h.Client.Patch(t.Context(), a, client.MergeFrom(before)))
	h.start(addon.Options{Agents: []addon.Agent{customHealth{echo{h.name("echo")}, "2"}}})
	h.Holds("both wait for a permit and are available",
		both(v1alpha1.ConditionProgressing, v1alpha1.ReasonWaitingForTurn))
}
