//go:build unix

package disaster

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestLeader_Paused suspends the process of the leading hub before it sends the request of an irreversible step, for
// longer than its Lease lasts. Another replica takes over and completes the step, and users create the deleted object
// again. When the first replica continues, it sends its request: that must not affect the new object.
func TestLeader_Paused(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 120)
	const works = "/apis/work.muster.dev/v1alpha1/namespaces/member-east/works/apps.extra"
	w := prepareSystem(t)
	stop := w.runHub("the first hub", electionOptions(w.plane.Config()))
	w.join("east")
	w.deploy()
	m := w.members[0]
	stop()

	for _, test := range []struct {
		name         string
		method, path string
		object       func() client.Object
		exists       func() error // The error names the missing object.
		irreversible func() types.UID
	}{
		{"the request to delete a Work", http.MethodPatch, works, w.extraWorkSet, w.extraDelivered, w.uidOfExtraWork},
		{"the deletion of a Work", http.MethodDelete, works, w.extraWorkSet, w.extraDelivered, w.uidOfExtraWork},
		{
			"the deletion of a member's namespace", http.MethodDelete, "/api/v1/namespaces/member-ghost",
			w.ghost, w.ghostPrepared, w.uidOfGhostNamespace,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			parent := w.t
			w.t = t
			defer func() { w.t = parent }()
			object := test.object()
			stop := w.runHub("the hub before", electionOptions(w.plane.Config()))
			require.NoError(t, client.IgnoreAlreadyExists(w.client.Create(t.Context(), object)))
			w.eventually(object.GetName()+" exists", test.exists)
			stop()
			paused := w.startReplica(test.method, test.path)
			require.NoError(t, w.client.Delete(t.Context(), object))
			w.eventually("the leader is paused before "+test.name, paused.paused)

			stop = w.runHub("the hub that takes over", electionOptions(w.plane.Config()))
			defer stop()
			w.eventually("the other replica has completed the deletion", func() error {
				err := w.client.Get(t.Context(), client.ObjectKeyFromObject(object), test.object())
				if apierrors.IsNotFound(err) {
					return nil
				}
				return fmt.Errorf("%s exists (%w)", object.GetName(), err)
			})
			w.eventually("the object is created again", func() error { return w.client.Create(t.Context(), test.object()) })
			w.eventually(object.GetName()+" exists", test.exists)
			m.restartRecord()
			before, uid, left := m.uids(t), test.irreversible(), w.tombstones()

			require.Contains(t, []string{"404", "409", "422"}, paused.resume(t),
				"status code of the request of the paused leader")
			m.requireUnchangedFor(t, before, quiet/2)
			require.Equal(t, uid, test.irreversible(), "the object of the irreversible step was replaced")
			require.NoError(t, test.exists())
			require.Equal(t, left, w.tombstones(), "a leave was recorded that no user requested")
		})
	}
	before := m.uids(t)
	w.startHub()
	w.waitUntilJoined(m.name)
	w.update()
	m.requireUnchanged(t, before)
}

const extraWorkSetYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata: {name: extra, namespace: apps}
spec:
  placements: [{name: shop}]
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: extra, namespace: default}}
`

func (w *system) extraWorkSet() client.Object {
	return object(w.t, extraWorkSetYAML, &placementv1alpha1.WorkSet{})
}

// extraDelivered returns an error until the member has the object of the extra WorkSet, and neither the Work nor the
// object is being deleted.
func (w *system) extraDelivered() error {
	work, err := w.extraWork()
	if err != nil {
		return err
	}
	if work.DeletionTimestamp != nil {
		return fmt.Errorf("Work %s is being deleted", work.Name)
	}
	config := &corev1.ConfigMap{}
	if err := w.members[0].client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "extra"},
		config); err != nil {
		return err
	}
	if config.DeletionTimestamp != nil {
		return fmt.Errorf("ConfigMap %s is being deleted", config.Name)
	}
	return nil
}

func (w *system) extraWork() (*workv1alpha1.Work, error) {
	var list workv1alpha1.WorkList
	err := w.client.List(w.t.Context(), &list, client.InNamespace("member-east"), client.MatchingLabels{
		placementv1alpha1.WorkSetLabel: "extra",
	})
	if err != nil {
		return nil, err
	}
	if len(list.Items) != 1 {
		return nil, fmt.Errorf("WorkSet extra has %d Works", len(list.Items))
	}
	return &list.Items[0], nil
}

func (w *system) uidOfExtraWork() types.UID {
	work, err := w.extraWork()
	require.NoError(w.t, err)
	return work.UID
}

// ghost is a MemberCluster that an administrator creates before its agent exists.
func (w *system) ghost() client.Object {
	return &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "ghost"}, Spec: membershipv1alpha1.MemberClusterSpec{Accepted: new(true)},
	}
}

func (w *system) ghostPrepared() error {
	namespace, err := w.ghostNamespace()
	if err != nil {
		return err
	}
	if namespace.DeletionTimestamp != nil {
		return fmt.Errorf("namespace %s is being deleted", namespace.Name)
	}
	return nil
}

func (w *system) ghostNamespace() (*corev1.Namespace, error) {
	namespace := &corev1.Namespace{}
	return namespace, w.client.Get(w.t.Context(), client.ObjectKey{Name: "member-ghost"}, namespace)
}

func (w *system) uidOfGhostNamespace() types.UID {
	namespace, err := w.ghostNamespace()
	require.NoError(w.t, err)
	return namespace.UID
}

// tombstones returns the names of the records of members that left.
func (w *system) tombstones() []string {
	w.t.Helper()
	var list corev1.ConfigMapList
	require.NoError(w.t, w.client.List(w.t.Context(), &list, client.HasLabels{membership.TombstoneLabel}))
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}
