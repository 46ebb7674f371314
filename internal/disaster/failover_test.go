package disaster

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/mustertest"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

const replaceablePlacementYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: Placement
metadata: {name: replaceable, namespace: apps}
spec:
  policy: {type: PickN, numberOfClusters: 1}
  failover: {}
`

const replaceableWorkSetYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata: {name: replaceable, namespace: apps}
spec:
  placements: [{name: replaceable}]
  manifests:
  - apiVersion: apps/v1
    kind: Deployment
    metadata: {name: replaceable, namespace: default}
    spec:
      replicas: 1
      selector: {matchLabels: {app: replaceable}}
      template:
        metadata: {labels: {app: replaceable}}
        spec: {containers: [{name: web, image: registry.k8s.io/pause:3.10}]}
`

// failover checks an empty spec.failover. The copy of a workload on an unreachable member stays while the replacement
// is not ready, also when the member returns meanwhile. When the replacement is ready, the hub removes the Work of the
// copy, and a member that returns after that deletes the copy.
func (w *system) failover(t *testing.T) {
	ctx := t.Context()
	for _, o := range []client.Object{
		object(t, replaceablePlacementYAML, &placementv1alpha1.Placement{}),
		object(t, replaceableWorkSetYAML, &placementv1alpha1.WorkSet{}),
	} {
		w.eventually("create "+o.GetName(), func() error { return client.IgnoreAlreadyExists(w.client.Create(ctx, o)) })
	}
	w.eventually("a member is selected", func() error {
		if len(w.decisions()["replaceable"]) != 1 {
			return fmt.Errorf("selected: %v", w.decisions())
		}
		return nil
	})
	at := slices.IndexFunc(w.members, func(m *member) bool { return m.name == w.decisions()["replaceable"][0] })
	old, other := w.members[at], w.members[1-at]
	w.eventually(old.name+" runs the workload", func() error { return available(t, old) })
	before := deploymentOf(t, old).UID

	other.cordon(t, true) // The replacement cannot become ready.
	w.loseMember(old, other)
	require.Error(t, available(t, other))
	w.start(old)
	w.waitUntilJoined(old.name)
	w.requireCopyKeptFor(old, before, lifecycle.HealthyAfter+5*time.Second)

	old.stop()
	w.eventually(other.name+" is selected again", func() error { return w.checkSelected(old.name, other.name) })
	w.requireCopyKeptFor(old, before, 3*time.Second)
	other.cordon(t, false)
	w.eventually(other.name+" replaces "+old.name, func() error { return w.checkSelected(other.name) })
	require.NoError(t, available(t, other), "the replacement is ready before the old member is deselected")
	w.start(old)
	w.eventually(old.name+" deletes its copy", func() error {
		err := old.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "replaceable"}, &appsv1.Deployment{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the Deployment exists: %w", err)
	})
}

// loseMember stops the agent of a member, and waits until another member is selected in its place and has the workload.
func (w *system) loseMember(old, other *member) {
	w.t.Helper()
	old.stop()
	w.eventually(other.name+" is selected as well", func() error { return w.checkSelected(old.name, other.name) })
	w.eventually(other.name+" has the workload", func() error {
		return other.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "replaceable"},
			&appsv1.Deployment{})
	})
}

// checkSelected returns an error unless the Placement has selected exactly these members.
func (w *system) checkSelected(names ...string) error {
	got := slices.Sorted(slices.Values(w.decisions()["replaceable"]))
	if slices.Sort(names); !slices.Equal(got, names) {
		return fmt.Errorf("selected: %v", got)
	}
	return nil
}

// requireCopyKeptFor checks for a duration that a member has its copy of the workload, and that its deletion is not
// requested.
func (w *system) requireCopyKeptFor(m *member, uid types.UID, while time.Duration) {
	w.t.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); <-time.After(500 * time.Millisecond) {
		d := deploymentOf(w.t, m)
		require.Equal(w.t, uid, d.UID, "%s has created its copy again", m.name)
		require.Nil(w.t, d.DeletionTimestamp, "%s deletes its copy", m.name)
		var works workv1alpha1.WorkList
		require.NoError(w.t, w.client.List(w.t.Context(), &works, client.InNamespace("member-"+m.name)))
		require.NotEmpty(w.t, works.Items, "the Work of %s is deleted", m.name)
		for i := range works.Items {
			require.Nil(w.t, works.Items[i].DeletionTimestamp, "Work %s of %s is being deleted", works.Items[i].Name, m.name)
		}
	}
}

func deploymentOf(t *testing.T, m *member) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	require.NoError(t, m.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "replaceable"}, d))
	return d
}

func available(t *testing.T, m *member) error {
	d := &appsv1.Deployment{}
	err := m.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "replaceable"}, d)
	if err == nil && d.Status.AvailableReplicas == 0 {
		err = errors.New("the Deployment is not available")
	}
	return err
}

// cordon sets whether Pods can start on the nodes of a member.
func (m *member) cordon(t *testing.T, unschedulable bool) {
	t.Helper()
	var nodes corev1.NodeList
	require.NoError(t, m.client.List(t.Context(), &nodes))
	require.NotEmpty(t, nodes.Items)
	for i := range nodes.Items {
		mustertest.Change(t, m.client, &nodes.Items[i], func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
	}
}
