package disaster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/mustertest"
	workcrds "github.com/muster-sdk/muster/work/crds"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// quiet is the duration for which a test observes that nothing is deleted.
const quiet = 10 * time.Second

// TestWorks checks that the workloads of one member survive the loss of their Works and definitions, until a user
// deletes them.
func TestWorks(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 130)
	w := newSystem(t, hub.Options{}, "east")
	w.deploy()
	w.step("DeletedByHand", w.worksDeletedByHand)
	w.step("DefinitionsRemoved", w.workDefinitionsRemoved)
	w.step("UserDeletes", w.userDeletes)
}

// worksDeletedByHand checks that the hub creates generated Works again that a user deletes, without any change on the
// member, and that a Work without its finalizer, whose deletion no agent observes, deletes nothing either.
func (w *system) worksDeletedByHand(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	before := m.uids(t)

	for _, removeFinalizers := range []bool{false, true} {
		var works workv1alpha1.WorkList
		require.NoError(t, w.client.List(ctx, &works, client.InNamespace("member-east")))
		require.GreaterOrEqual(t, len(works.Items), 3, "Works of the WorkSet, of the add-on and by hand")
		for i := range works.Items {
			work := &works.Items[i]
			if work.Name == "by-hand" && !removeFinalizers {
				continue // Its deletion by a user requests the deletion of its objects.
			}
			if removeFinalizers {
				before := work.DeepCopy()
				work.Finalizers = nil
				require.NoError(t, w.client.Patch(ctx, work, client.MergeFrom(before)))
			}
			require.NoError(t, client.IgnoreNotFound(w.client.Delete(ctx, work)))
		}
		m.requireUnchangedFor(t, before, quiet)
		w.apply()
		w.waitForWorkloads(m)
	}
	w.update()
	m.requireUnchanged(t, before)
}

// workDefinitionsRemoved checks that workloads survive the removal of the definitions of muster's kinds, on the
// hub and on the member, and that they are adopted when definitions and objects are back.
func (w *system) workDefinitionsRemoved(t *testing.T) {
	m := w.members[0]
	before := m.uids(t)

	removeDefinition(t, m.client, "appliedworks.work.muster.dev")
	m.requireUnchangedFor(t, before, quiet)
	require.NoError(t, workcrds.InstallOnMember(t.Context(), m.client))
	w.update()
	m.requireUnchanged(t, before)

	for _, name := range []string{
		"works.work.muster.dev", "worksets.placement.muster.dev", "memberaddons.addon.muster.dev", "addons.addon.muster.dev",
	} {
		removeDefinition(t, w.client, name)
		m.requireUnchangedFor(t, before, quiet)
		require.NoError(t, assembly.InstallHubDefinitions(t.Context(), w.client))
		w.apply()
		w.update()
		m.requireUnchanged(t, before)
	}
}

// removeDefinition deletes a CustomResourceDefinition and waits until it is deleted.
func removeDefinition(t *testing.T, c client.Client, name string) {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	require.NoError(t, c.Delete(t.Context(), definition))
	mustertest.Eventually(t, timeout, "definition "+name+" is deleted", func() error {
		err := c.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(definition), definition)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("finalizers %v, conditions %v (%w)", definition.Finalizers, definition.Status.Conditions, err)
	})
}

// userDeletes checks the opposite: the objects of a WorkSet and a Work that a user deletes are deleted.
func (w *system) userDeletes(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	require.NoError(t, w.client.Delete(ctx, w.handWritten(m)))
	require.NoError(t, w.client.Delete(ctx, workSet(t)))
	w.eventually("the objects of the WorkSet and of the Work are deleted", func() error {
		for _, key := range []client.ObjectKey{{Namespace: "shop", Name: "config"}, {Namespace: "default", Name: "by-hand"}} {
			if err := m.client.Get(ctx, key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("ConfigMap %s exists (%w)", key, err)
			}
		}
		return nil
	})
}
