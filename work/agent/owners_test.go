package agent_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestSharedObject checks two Works that apply the same object.
func TestSharedObject(t *testing.T) { testkit.Virtual(t, testSharedObject) }

func testSharedObject(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	spec := func(data string) string { return "{" + manifests(configMap("a", data)) + "}" }
	first := w.work("first", spec("{k: v}"))
	w.ready(first)
	second := w.work("second", spec("{k: v, more: x}"))
	w.ready(second)
	require.Len(t, w.marks("a"), 2, "both Works apply equal values of the shared field")

	rival := agent.AppliedWorkName(w.name, first.Namespace, first.Name)
	w.change(second, spec("{k: other, more: x}"))
	w.awaitStatus(second,
		"1/1 Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict\n"+
			"ConfigMap NS/a: Other field managers own fields of the object: .data.k is owned by \"muster-work-"+rival+"\". "+
			"Remove the fields from the manifest, add them to ignoredFields, or let the other managers release the fields.\n"+
			"ConfigMap NS/a: Applied=False/Conflict Available=True/Ready")
	require.Equal(t, "v", w.data("a", "k"))
	w.ready(first)

	w.delete(first)
	w.gone(first)
	w.ready(second) // at once, because of the watch
	require.Equal(t, "other", w.data("a", "k"))
	require.Len(t, w.marks("a"), 1)
	w.delete(second)
	w.gone(second)
	require.Nil(t, w.read("ConfigMap", "a"))
}

// marks returns the annotations of a ConfigMap that identify the Works which have applied it.
func (w *world) marks(name string) []string {
	w.t.Helper()
	object := w.read("ConfigMap", name)
	require.NotNil(w.t, object)
	require.Empty(w.t, object.GetOwnerReferences(), "Kubernetes would delete the object with its AppliedWork")
	return slices.DeleteFunc(slices.Collect(maps.Keys(object.GetAnnotations())), func(key string) bool {
		return !strings.HasPrefix(key, apply.MarkPrefix)
	})
}

// TestSharedFieldOwner checks that two Works with the same field owner, which is a mistake, do not revert each
// other's writes endlessly.
func TestSharedFieldOwner(t *testing.T) { testkit.Virtual(t, testSharedFieldOwner) }

func testSharedFieldOwner(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	spec := func(value string) string {
		return "{" + manifests(configMap("a", "{k: "+value+"}")) + ", apply: {fieldOwner: acme}}"
	}
	w.ready(w.work("first", spec("v")))
	second := w.work("second", spec("w"))
	_, member := w.awaitNoRequests()
	require.Equal(t, 1, count(member, "PATCH configmaps a"))
	w.awaitStatus(second,
		"1/1 Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict\n"+
			"ConfigMap NS/a: Another Work applies the object with the same field owner. Set a different "+
			"apply.fieldOwner in one of the Works.\nConfigMap NS/a: Applied=False/Conflict Available=True/Ready")
}

// TestMember_OfTwoHubs checks a member of two hubs, each with a Work of the same name in a namespace of the same name.
func TestMember_OfTwoHubs(t *testing.T) { testkit.Virtual(t, testMemberOfTwoHubs) }

func testMemberOfTwoHubs(t *testing.T) {
	w := newWorldInMemory(t)
	other := worldOf(t, newMemory(t).Admin(), w.options.Member)
	w.start()
	other.start()
	one := w.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	w.ready(one)
	two := other.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	other.ready(two)
	w.delete(one)
	w.gone(one)
	other.ready(two)
	require.Equal(t, "v", other.data("a", "k"))
	require.Nil(t, w.read("ConfigMap", "a"))
}

// TestDefinition_AndCustomResource checks a custom resource whose definition is in the same Work, and one that is
// applied before its definition.
func TestDefinition_AndCustomResource(t *testing.T) {
	t.Parallel()
	w := newWorldWithMember(t)
	w.start()
	definition := func(plural, kind string) string {
		return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: ` + plural +
			`.NS.example.com},
			spec: {group: NS.example.com, scope: Namespaced, names: {plural: ` + plural + `, singular: ` + plural + `x, kind: ` +
			kind + `},
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
				properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}]}}`
	}
	custom := func(kind string) string {
		return "{apiVersion: NS.example.com/v1, kind: " + kind + ", metadata: {name: x, namespace: NS}, spec: {size: 3}}"
	}
	w.ready(w.work("both", "{"+manifests(custom("Wheel"), definition("wheels", "Wheel"))+"}"))

	early := w.work("early", "{"+manifests(custom("Door"))+"}")
	w.eventually(func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(early), early); err != nil {
			return err
		}
		if c := condition(early, "Applied"); c == nil || c.Reason != v1alpha1.ReasonUnknownKind {
			return fmt.Errorf("the status has no failure yet: %s", render(early.Status))
		}
		return nil
	})
	late := w.work("late", "{"+manifests(definition("doors", "Door"))+"}")
	w.ready(late)
	w.ready(early)

	// The deletion of the definition deletes its objects. The Work reports it, and can still be deleted.
	w.delete(late)
	w.gone(late)
	w.eventually(func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(early), early); err != nil {
			return err
		}
		if c := condition(early, "Applied"); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("the status has no failure yet: %s", render(early.Status))
		}
		return nil
	})
	w.toMember.take()
	<-time.After(3 * time.Second)
	require.Less(t, len(w.toMember.take()), 40, "the agent does not request a deleted kind continuously")
	w.delete(early)
	w.gone(early)
}

// TestCleanup_Order checks that workloads are deleted before their configuration, and that the status names a
// finalizer that blocks the deletion.
func TestCleanup_Order(t *testing.T) { testkit.Virtual(t, testCleanupOrder) }

func testCleanupOrder(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: NS, finalizers: [example.com/hold]}}")+
		", manifestOptions: [{select: {name: held}, wave: 60}]}")
	w.ready(work)
	w.delete(work)
	w.awaitStatus(work, "0/0 Applied=False/CleaningUp Available=False/CleaningUp Progressing=True/CleaningUp "+
		"Degraded=False/AsDesired\n"+
		"Waiting for the deletion of 2 objects. ConfigMap NS/a: Waiting for the deletion of ConfigMap NS/held. "+
		"The object is being deleted and waits for finalizer example.com/hold.")
	require.Equal(t, "v", w.data("a", "k"))
	w.patch(w.read("ConfigMap", "held"), "metadata: {finalizers: null}")
	w.gone(work)
	require.Nil(t, w.read("ConfigMap", "a"))
	require.Nil(t, w.applied(work))
}

// TestWork_DeletedInUnusualWays checks Works that disappear in unusual ways.
func TestWork_DeletedInUnusualWays(t *testing.T) {
	spec := func(name string) string { return "{" + manifests(configMap(name, "{k: v}")) + "}" }
	run := func(name string, test func(*testing.T, *world)) {
		t.Run(name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { test(t, newWorldInMemory(t)) })
		})
	}
	run("the inventory is deleted", func(t *testing.T, w *world) {
		w.start()
		work := w.work("shop", spec("a"))
		w.ready(work)
		before := w.applied(work)
		require.NoError(t, w.member.Delete(context.Background(), before))
		w.eventually(func() error {
			now := w.applied(work)
			if now == nil || now.UID == before.UID || len(now.Status.Resources) != 1 {
				return fmt.Errorf("no new inventory: %v", now)
			}
			object := w.read("ConfigMap", "a")
			if object == nil || len(w.marks("a")) != 1 {
				return fmt.Errorf("not healed: %v", object)
			}
			return equal(now.Status.Resources[0].UID, object.GetUID())
		})
		w.delete(work)
		w.gone(work)
		require.Nil(t, w.read("ConfigMap", "a"))
	})
	run("the inventory is deleted with its dependents", func(t *testing.T, w *world) {
		w.start()
		work := w.work("shop", spec("a"))
		w.ready(work)
		before := w.applied(work)
		require.NoError(t, w.member.Delete(context.Background(), before,
			client.PropagationPolicy(metav1.DeletePropagationForeground)))
		w.eventually(func() error {
			if now := w.applied(work); now == nil || now.UID == before.UID || w.data("a", "k") != "v" {
				return fmt.Errorf("not healed: %v", now)
			}
			return nil
		})
	})
	run("the finalizer is removed", func(t *testing.T, w *world) {
		w.start()
		work := w.work("shop", spec("a"))
		w.ready(work)
		w.force(work)
		w.awaitObjects(work, "ConfigMap a v")
		w.orphaned(work, v1alpha1.ReasonWorkNotFound, 1)
	})
	run("the finalizer is removed after the agent has begun to delete", func(t *testing.T, w *world) {
		w.start()
		work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"),
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: NS, finalizers: [example.com/hold]}}")+
			", manifestOptions: [{select: {name: held}, wave: 60}]}")
		w.ready(work)
		w.delete(work)
		w.eventually(func() error { return equal(true, w.read("ConfigMap", "held").GetDeletionTimestamp() != nil) })
		w.force(work)
		w.gone(work)
		w.patch(w.read("ConfigMap", "held"), "metadata: {finalizers: null}")
		w.eventually(func() error {
			return equal("true", fmt.Sprint(w.read("ConfigMap", "a") == nil && w.applied(work) == nil))
		})
	})
	run("the Work is created again at once", func(t *testing.T, w *world) {
		w.start()
		work := w.work("shop", spec("a"))
		w.ready(work)
		w.force(work)
		work = w.work("shop", spec("b"))
		w.ready(work)
		w.awaitObjects(work, "ConfigMap a v", "ConfigMap b v")
		require.Equal(t, work.UID, w.applied(work).Spec.Work.UID)
	})
}

// force deletes a Work and removes the agent's finalizer, until the Work is deleted.
func (w *world) force(work *v1alpha1.Work) {
	w.t.Helper()
	w.delete(work)
	w.eventually(func() error {
		now := &v1alpha1.Work{}
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		now.Finalizers = nil
		if err := w.hub.Update(context.Background(), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		return nil
	})
}
