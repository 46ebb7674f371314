package disaster

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/hub"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

const singlePlacementYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: Placement
metadata: {name: single, namespace: apps}
spec: {policy: {type: PickN, numberOfClusters: 1}}
`

const singleWorkSetYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata: {name: single, namespace: apps}
spec:
  placements: [{name: single}]
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: single, namespace: default}}
`

// TestPlacement checks that workloads stay on two members while Placements are created again and members are lost.
func TestPlacement(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 2}, 140)
	w := newSystem(t, hub.Options{}, "east", "west")
	w.deploy()
	w.step("CreatedAgain", w.placementsCreatedAgain)
	w.step("Failover", w.failover)
}

// placementsCreatedAgain checks that Placements which are deleted and created again select the same members: as
// with kubectl replace --force, and after the removal of their definition. One of the members is unreachable meanwhile,
// so that a new Placement would not select it. It has a workload of which there is one copy.
func (w *system) placementsCreatedAgain(t *testing.T) {
	ctx := t.Context()
	createSingle := func() {
		for _, o := range []client.Object{
			object(t, singlePlacementYAML, &placementv1alpha1.Placement{}), object(t, singleWorkSetYAML,
				&placementv1alpha1.WorkSet{}),
		} {
			w.eventually("create "+o.GetName(), func() error { return client.IgnoreAlreadyExists(w.client.Create(ctx, o)) })
		}
	}
	createSingle()
	w.eventually("one member has ConfigMap default/single", func() error {
		for _, m := range w.members {
			if _, has := m.uids(t)["ConfigMap default/single"]; has {
				return nil
			}
		}
		return fmt.Errorf("no member has the ConfigMap: %s", slices.Collect(maps.Keys(w.members[0].uids(t))))
	})
	unreachable := w.members[slices.IndexFunc(w.members, func(m *member) bool {
		return m.name == w.decisions()["single"][0]
	})]
	unreachable.stop()
	w.eventually(unreachable.name+" is unreachable", func() error {
		if health := w.health(unreachable.name); health == metav1.ConditionTrue {
			return fmt.Errorf("condition Healthy is %s", health)
		}
		return nil
	})
	before := w.observePlaced()
	require.Len(t, before.decisions["shop"], 2)

	for _, test := range []struct {
		name   string
		remove func()
	}{
		{"the Placements are deleted", func() {
			require.NoError(t, w.client.DeleteAllOf(ctx, &placementv1alpha1.Placement{}, client.InNamespace("apps")))
		}},
		{"the definition is removed", func() {
			removeDefinition(t, w.client, "placements.placement.muster.dev")
			require.NoError(t, assembly.InstallHubDefinitions(ctx, w.client))
		}},
	} {
		test.remove()
		w.apply()
		createSingle()
		w.eventually(test.name+", and the Placements are decided again", func() error {
			var list placementv1alpha1.PlacementList
			if err := w.client.List(ctx, &list); err != nil {
				return err
			}
			for i := range list.Items {
				if p := &list.Items[i]; p.Status.DecidedGeneration != p.Generation {
					return fmt.Errorf("Placement %s is not decided", p.Name)
				}
			}
			if len(list.Items) != 2 {
				return fmt.Errorf("%d Placements exist", len(list.Items))
			}
			return nil
		})
		w.requirePlacedFor(before, quiet)
	}
	w.start(unreachable)
	w.waitUntilJoined(unreachable.name)
	w.update()
	w.requirePlacedFor(before, quiet)
}
