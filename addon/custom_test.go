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

// teller is an add-on that reports its health itself, and rejects AddonConfigs without variables.
type teller struct {
	echo
	version string
}

func (t teller) Version() string { return t.version }

func (teller) ValidateConfig(config *unstructured.Unstructured) error {
	if _, found, _ := unstructured.NestedSlice(config.Object, "spec", "variables"); !found {
		return errors.New("spec.variables: must have a color")
	}
	return nil
}

func (teller) Health(_ context.Context, _ addon.Input, works []health.Work) (health.Answer, error) {
	if len(works) == 0 {
		return health.Answer{}, errors.New("asked about nothing")
	}
	return health.Answer{Health: rollout.Succeeded, Message: "It says so itself."}, nil
}

// TestHealthOfWhatRuns checks that an add-on is also called for its health if a new revision cannot be assigned,
// because the assigned revision still runs.
func TestHealthOfWhatRuns(t *testing.T) { testkit.Virtual(t, testHealthOfWhatRuns) }

func testHealthOfWhatRuns(t *testing.T) {
	h := newHub(t)
	h.members("a", "b")
	h.choose("all", "a", "b")
	h.obey()
	h.color("colors", "blue")
	first := h.start(addon.Options{Agents: []addon.Agent{teller{echo{h.name("echo")}, "1"}}})
	h.addon("echo", func(s *v1alpha1.AddonSpec) {
		h.placed("all")(s)
		s.Health.Type = v1alpha1.HealthCustom
		s.Configs = []v1alpha1.ConfigKind{{Group: v1alpha1.GroupName, Resource: "addonconfigs",
			Defaults: []v1alpha1.ObjectName{h.reference("colors").ObjectName}}}
	})
	// Both say what is to be said of what is wrong, and that what runs is well.
	both := func(kind, reason string) func() bool {
		return func() bool {
			return count([]string{"a", "b"}, func(name string) bool {
				m := h.memberAddon("echo", name)
				if !is(m, v1alpha1.ConditionAvailable) {
					return false
				}
				said := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionAvailable)
				why := meta.FindStatusCondition(m.Status.Conditions, kind)
				return said.Message == "It says so itself." && why != nil && why.Reason == reason
			}) == 2
		}
	}
	h.eventually("both are well", both(v1alpha1.ConditionProgressing, v1alpha1.ReasonUpdated))

	config := &v1alpha1.AddonConfig{ObjectMeta: metav1.ObjectMeta{Namespace: h.namespace, Name: "colors"}}
	require.NoError(t, h.client.Patch(t.Context(), config,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"variables":null}}`))))
	h.eventually("the configuration is refused, and both are well",
		both(v1alpha1.ConditionConfigured, v1alpha1.ReasonConfigInvalid))
	h.color("colors", "blue")
	h.eventually("both are well again", both(v1alpha1.ConditionProgressing, v1alpha1.ReasonUpdated))
	first.stop()

	a := h.get("echo")
	before := a.DeepCopy()
	a.Spec.Install.Placements[0].Rollout.State = placementv1alpha1.RolloutPause
	require.NoError(t, h.client.Patch(t.Context(), a, client.MergeFrom(before)))
	h.start(addon.Options{Agents: []addon.Agent{teller{echo{h.name("echo")}, "2"}}})
	h.eventually("both wait, and are well", both(v1alpha1.ConditionProgressing, v1alpha1.ReasonWaitingForTurn))
}
