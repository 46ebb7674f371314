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
	f := newMemoryFixture(t)
	f.start()
	spec := func(data string) string { return "{" + manifests(configMap("a", data)) + "}" }
	first := f.work("first", spec("{k: v}"))
	f.ready(first)
	second := f.work("second", spec("{k: v, more: x}"))
	f.ready(second)
	require.Len(t, f.marks("a"), 2, "both Works apply equal values of the shared field")

	rival := agent.AppliedWorkName(f.name, first.Namespace, first.Name)
	f.change(second, spec("{k: other, more: x}"))
	f.awaitStatus(second,
		"1/1 Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict\n"+
			"ConfigMap NS/a: Other field managers own fields of the object: .data.k is owned by \"muster-work-"+rival+"\". "+
			"Remove the fields from the manifest, add them to ignoredFields, or let the other managers release the fields.\n"+
			"ConfigMap NS/a: Applied=False/Conflict Available=True/Ready")
	require.Equal(t, "v", f.data("a", "k"))
	f.ready(first)

	f.delete(first)
	f.gone(first)
	f.ready(second) // at once, because of the watch
	require.Equal(t, "other", f.data("a", "k"))
	require.Len(t, f.marks("a"), 1)
	f.delete(second)
	f.gone(second)
	require.Nil(t, f.read("ConfigMap", "a"))
}

// marks returns the annotations of a ConfigMap that identify the Works which have applied it.
func (f *fixture) marks(name string) []string {
	f.T.Helper()
	object := f.read("ConfigMap", name)
	require.NotNil(f.T, object)
	require.Empty(f.T, object.GetOwnerReferences(), "Kubernetes would delete the object with its AppliedWork")
	return slices.DeleteFunc(slices.Collect(maps.Keys(object.GetAnnotations())), func(key string) bool {
		return !strings.HasPrefix(key, apply.MarkPrefix)
	})
}

// TestSharedFieldOwner checks that two Works with the same field owner, which is a mistake, do not revert each
// other's writes endlessly.
func TestSharedFieldOwner(t *testing.T) { testkit.Virtual(t, testSharedFieldOwner) }

func testSharedFieldOwner(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	spec := func(value string) string {
		return "{" + manifests(configMap("a", "{k: "+value+"}")) + ", apply: {fieldOwner: acme}}"
	}
	f.ready(f.work("first", spec("v")))
	second := f.work("second", spec("w"))
	_, member := f.awaitNoRequests()
	require.Equal(t, 1, count(member, "PATCH configmaps a"))
	f.awaitStatus(second,
		"1/1 Applied=False/Conflict Available=True/Ready Progressing=False/AsDesired Degraded=True/Conflict\n"+
			"ConfigMap NS/a: Another Work applies the object with the same field owner. Set a different "+
			"apply.fieldOwner in one of the Works.\nConfigMap NS/a: Applied=False/Conflict Available=True/Ready")
}

// TestMember_OfTwoHubs checks a member of two hubs, each with a Work of the same name in a namespace of the same name.
func TestMember_OfTwoHubs(t *testing.T) { testkit.Virtual(t, testMemberOfTwoHubs) }

func testMemberOfTwoHubs(t *testing.T) {
	f := newMemoryFixture(t)
	other := fixtureOf(t, newMemory(t).Admin(), f.options.Member)
	f.start()
	other.start()
	one := f.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	f.ready(one)
	two := other.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	other.ready(two)
	f.delete(one)
	f.gone(one)
	other.ready(two)
	require.Equal(t, "v", other.data("a", "k"))
	require.Nil(t, f.read("ConfigMap", "a"))
}

// TestDefinition_AndCustomResource checks a custom resource whose definition is in the same Work, and one that is
// applied before its definition.
func TestDefinition_AndCustomResource(t *testing.T) {
	t.Parallel()
	f := newFixtureWithMember(t)
	f.start()
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
	f.ready(f.work("both", "{"+manifests(custom("Wheel"), definition("wheels", "Wheel"))+"}"))

	early := f.work("early", "{"+manifests(custom("Door"))+"}")
	f.Eventually("the kind of the object is unknown", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(early), early); err != nil {
			return err
		}
		if c := condition(early, "Applied"); c == nil || c.Reason != v1alpha1.ReasonUnknownKind {
			return fmt.Errorf("the status has no failure yet: %s", render(early.Status))
		}
		return nil
	})
	late := f.work("late", "{"+manifests(definition("doors", "Door"))+"}")
	f.ready(late)
	f.ready(early)

	// The deletion of the definition deletes its objects. The Work reports it, and can still be deleted.
	f.delete(late)
	f.gone(late)
	f.Eventually("the failure is reported", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(early), early); err != nil {
			return err
		}
		if c := condition(early, "Applied"); c == nil || c.Status != metav1.ConditionFalse {
			return fmt.Errorf("the status has no failure yet: %s", render(early.Status))
		}
		return nil
	})
	f.toMember.take()
	<-time.After(3 * time.Second)
	require.Less(t, len(f.toMember.take()), 40, "the agent does not request a deleted kind continuously")
	f.delete(early)
	f.gone(early)
}

// TestCleanup_Order checks that workloads are deleted before their configuration, and that the status names a
// finalizer that blocks the deletion.
func TestCleanup_Order(t *testing.T) { testkit.Virtual(t, testCleanupOrder) }

func testCleanupOrder(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: NS, finalizers: [example.com/hold]}}")+
		", manifestOptions: [{select: {name: held}, wave: 60}]}")
	f.ready(work)
	f.delete(work)
	f.awaitStatus(work, "0/0 Applied=False/CleaningUp Available=False/CleaningUp Progressing=True/CleaningUp "+
		"Degraded=False/AsDesired\n"+
		"Waiting for the deletion of 2 objects. ConfigMap NS/a: Waiting for the deletion of ConfigMap NS/held. "+
		"The object is being deleted and waits for finalizer example.com/hold.")
	require.Equal(t, "v", f.data("a", "k"))
	f.patch(f.read("ConfigMap", "held"), "metadata: {finalizers: null}")
	f.gone(work)
	require.Nil(t, f.read("ConfigMap", "a"))
	require.Nil(t, f.applied(work))
}

// TestWork_DeletedInUnusualWays checks Works that disappear in unusual ways.
func TestWork_DeletedInUnusualWays(t *testing.T) {
	spec := func(name string) string { return "{" + manifests(configMap(name, "{k: v}")) + "}" }
	run := func(name string, test func(*testing.T, *fixture)) {
		t.Run(name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { test(t, newMemoryFixture(t)) })
		})
	}
	run("the inventory is deleted", func(t *testing.T, f *fixture) {
		f.start()
		work := f.work("shop", spec("a"))
		f.ready(work)
		before := f.applied(work)
		require.NoError(t, f.member.Delete(context.Background(), before))
		f.Eventually("the inventory is created again", func() error {
			now := f.applied(work)
			if now == nil || now.UID == before.UID || len(now.Status.Resources) != 1 {
				return fmt.Errorf("no new inventory: %v", now)
			}
			object := f.read("ConfigMap", "a")
			if object == nil || len(f.marks("a")) != 1 {
				return fmt.Errorf("not healed: %v", object)
			}
			return equal(now.Status.Resources[0].UID, object.GetUID())
		})
		f.delete(work)
		f.gone(work)
		require.Nil(t, f.read("ConfigMap", "a"))
	})
	run("the inventory is deleted with its dependents", func(t *testing.T, f *fixture) {
		f.start()
		work := f.work("shop", spec("a"))
		f.ready(work)
		before := f.applied(work)
		require.NoError(t, f.member.Delete(context.Background(), before,
			client.PropagationPolicy(metav1.DeletePropagationForeground)))
		f.Eventually("the inventory and the object are created again", func() error {
			if now := f.applied(work); now == nil || now.UID == before.UID || f.data("a", "k") != "v" {
				return fmt.Errorf("not healed: %v", now)
			}
			return nil
		})
	})
	run("the finalizer is removed", func(t *testing.T, f *fixture) {
		f.start()
		work := f.work("shop", spec("a"))
		f.ready(work)
		f.force(work)
		f.awaitObjects(work, "ConfigMap a v")
		f.orphaned(work, v1alpha1.ReasonWorkNotFound, 1)
	})
	run("the finalizer is removed after the agent has begun to delete", func(t *testing.T, f *fixture) {
		f.start()
		work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"),
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: NS, finalizers: [example.com/hold]}}")+
			", manifestOptions: [{select: {name: held}, wave: 60}]}")
		f.ready(work)
		f.delete(work)
		f.Eventually("ConfigMap held is being deleted", func() error {
			return equal(true, f.read("ConfigMap", "held").GetDeletionTimestamp() != nil)
		})
		f.force(work)
		f.gone(work)
		f.patch(f.read("ConfigMap", "held"), "metadata: {finalizers: null}")
		f.Eventually("ConfigMap a and the inventory are deleted", func() error {
			return equal("true", fmt.Sprint(f.read("ConfigMap", "a") == nil && f.applied(work) == nil))
		})
	})
	run("the Work is created again at once", func(t *testing.T, f *fixture) {
		f.start()
		work := f.work("shop", spec("a"))
		f.ready(work)
		f.force(work)
		work = f.work("shop", spec("b"))
		f.ready(work)
		f.awaitObjects(work, "ConfigMap a v", "ConfigMap b v")
		require.Equal(t, work.UID, f.applied(work).Spec.Work.UID)
	})
}

// force deletes a Work and removes the agent's finalizer, until the Work is deleted.
func (f *fixture) force(work *v1alpha1.Work) {
	f.T.Helper()
	f.delete(work)
	f.Eventually("the finalizers of Work "+work.Name+" are removed", func() error {
		now := &v1alpha1.Work{}
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		now.Finalizers = nil
		if err := f.Client.Update(context.Background(), now); err != nil {
			return client.IgnoreNotFound(err)
		}
		return nil
	})
}
