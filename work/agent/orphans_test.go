package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/crds"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// vanish makes a Work disappear without a deletion that the agent could observe. No agent may run.
func (w *world) vanish(work *v1alpha1.Work) {
	w.t.Helper()
	now := &v1alpha1.Work{}
	require.NoError(w.t, w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), now))
	now.Finalizers = nil
	require.NoError(w.t, w.hub.Update(context.Background(), now))
	w.delete(work)
	w.gone(work)
}

// orphaned waits until the condition Orphaned of a Work's inventory has a reason, and so many objects are orphaned.
func (w *world) orphaned(work *v1alpha1.Work, reason string, objects int) *v1alpha1.AppliedWork {
	w.t.Helper()
	var applied *v1alpha1.AppliedWork
	w.eventually(func() error {
		if applied = w.applied(work); applied == nil {
			return errors.New("there is no inventory")
		}
		n := 0
		for _, r := range applied.Status.Resources {
			if r.OrphanedTime != nil {
				n++
			}
		}
		condition := meta.FindStatusCondition(applied.Status.Conditions, v1alpha1.ConditionOrphaned)
		if condition == nil {
			return fmt.Errorf("no condition, and %d objects are orphaned", n)
		}
		return equal(fmt.Sprint(reason, objects, metav1.ConditionTrue), fmt.Sprint(condition.Reason, n, condition.Status))
	})
	return applied
}

// untouched returns a function that fails the test if these ConfigMaps have changed since the call.
func (w *world) untouched(names ...string) (requireUntouched func()) {
	w.t.Helper()
	before := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		before[name] = w.read("ConfigMap", name)
		require.NotNil(w.t, before[name])
	}
	return func() {
		w.t.Helper()
		for name, object := range before {
			live := w.read("ConfigMap", name)
			require.NotNil(w.t, live, "ConfigMap %s was deleted", name)
			require.Equal(w.t, object.GetUID(), live.GetUID(), "ConfigMap %s was created again", name)
			require.Equal(w.t, object.GetResourceVersion(), live.GetResourceVersion(), "ConfigMap %s was written", name)
			require.Nil(w.t, live.GetDeletionTimestamp(), name)
		}
	}
}

func (w *world) event(reason string) {
	w.t.Helper()
	w.eventually(func() error {
		var events unstructured.UnstructuredList
		events.SetAPIVersion("events.k8s.io/v1")
		events.SetKind("EventList")
		if err := w.hub.List(context.Background(), &events, client.InNamespace(w.options.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Object["reason"] == reason {
				return nil
			}
		}
		return fmt.Errorf("no event has the reason %s", reason)
	})
}

// TestOrphans_MissingWork checks that a missing Work is not a request: its objects stay, are reported, and are
// adopted by a Work with its name.
func TestOrphans_MissingWork(t *testing.T) { testkit.Virtual(t, testOrphansMissingWork) }

func testOrphansMissingWork(t *testing.T) {
	w := newWorldInMemory(t)
	stop := w.start()
	spec := "{" + manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}")) + "}"
	work := w.work("shop", spec)
	w.ready(work)
	requireUntouched := w.untouched("a", "b")
	stop()
	w.vanish(work)

	summaries := make(chan agent.OrphanSummary, 100)
	observe := func(o *agent.Options) { o.OnOrphans = func(s agent.OrphanSummary) { summaries <- s } }
	reported := func(want agent.OrphanSummary) {
		t.Helper()
		for {
			select {
			case summary := <-summaries:
				if reflect.DeepEqual(want, summary) {
					return
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("%v is not reported", want)
			}
		}
	}
	stop = w.start(observe)
	applied := w.orphaned(work, v1alpha1.ReasonWorkNotFound, 2)
	require.Contains(t, applied.Status.Conditions[0].Message, "2 objects orphaned: Work "+work.Namespace+
		"/shop of hub "+w.name+" does not exist")
	all := agent.OrphanSummary{Works: 1, Objects: 2, First: []string{"shop"}}
	reported(all)
	w.event("Orphaned") // Before the agent stops: an Event that is not sent yet would be lost.
	stop()
	stop = w.start(observe)
	reported(all) // a restarted agent reports the orphaned objects that exist
	requireUntouched()
	_, member := w.awaitNoRequests()
	require.Empty(t, w.toMember.take(), "%v", member)

	again := w.work("shop", spec)
	w.ready(again)
	w.eventually(func() error {
		now := w.applied(again)
		if now == nil || now.UID != applied.UID {
			return fmt.Errorf("the inventory was not adopted: %v", now)
		}
		return equal(fmt.Sprint(again.UID, 0), fmt.Sprint(now.Spec.Work.UID, len(now.Status.Conditions)))
	})
	reported(agent.OrphanSummary{})
	w.event("Adopted")
	requireUntouched()

	w.delete(again)
	w.gone(again)
	require.Nil(t, w.read("ConfigMap", "a"), "the object is deleted on request")
	require.Nil(t, w.applied(again))
	stop()
	w.start(observe)
	reported(agent.OrphanSummary{}) // replaces the report of an earlier run
}

// TestOrphans_ReplacedWork checks that a Work which is created again without some of the objects does not request
// their deletion.
func TestOrphans_ReplacedWork(t *testing.T) { testkit.Virtual(t, testOrphansReplacedWork) }

func testOrphansReplacedWork(t *testing.T) {
	w := newWorldInMemory(t)
	stop := w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	w.ready(work)
	requireUntouched := w.untouched("a", "b")
	stop()
	w.vanish(work)
	again := w.work("shop", "{"+manifests(configMap("b", "{k: v}"))+"}")
	w.start()
	applied := w.orphaned(again, v1alpha1.ReasonWorkReplaced, 1)
	w.ready(again)
	w.eventually(func() error {
		if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(again), again); err != nil {
			return err
		}
		if !strings.Contains(again.Status.Message, "The member keeps 1 object that the Work does not contain") {
			return errors.New(again.Status.Message)
		}
		return nil
	})
	requireUntouched()

	w.release(applied, "another")
	w.awaitNoRequests()
	requireUntouched()
	w.release(applied, string(applied.UID))
	w.eventually(func() error { return equal(true, w.read("ConfigMap", "a") == nil) })
	require.NotNil(t, w.read("ConfigMap", "b"), "a release deletes orphaned objects only")
	w.eventually(func() error {
		now := w.applied(again)
		return equal("0 0", fmt.Sprint(len(now.Status.Conditions), len(now.Annotations)))
	})
}

func (w *world) release(applied *v1alpha1.AppliedWork, value string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, v1alpha1.ReleaseAnnotation, value)
	require.NoError(w.t, w.member.Patch(context.Background(), applied.DeepCopy(),
		client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// TestOrphans_AreDeletedOnRequest checks that orphaned objects are deleted on an explicit request, or after a
// configured grace period.
func TestOrphans_AreDeletedOnRequest(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"release": 0, "grace period": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { testOrphansAreDeletedOnRequest(t, grace) })
		})
	}
}

func testOrphansAreDeletedOnRequest(t *testing.T, grace time.Duration) {
	w := newWorldInMemory(t)
	stop := w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	w.ready(work)
	requireUntouched := w.untouched("a")
	stop()
	w.vanish(work)
	w.start(func(o *agent.Options) { o.OrphanGracePeriod = grace })
	applied := w.orphaned(work, v1alpha1.ReasonWorkNotFound, 1)
	requireUntouched()
	if grace == 0 {
		w.release(applied, string(applied.UID))
	}
	w.eventually(func() error {
		return equal("true", fmt.Sprint(w.read("ConfigMap", "a") == nil && w.applied(work) == nil))
	})
}

// TestOrphans_NamespaceIsDeleted checks that the deletion of the namespace by a user is not a request to delete the
// objects of its member. With the permissions of an earlier release, the agent detects the deletion in another way.
func TestOrphans_NamespaceIsDeleted(t *testing.T) {
	t.Parallel()
	for name, may := range map[string]bool{"namespace readable": true, "namespace not readable": false} {
		t.Run(name, func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { testOrphansNamespaceIsDeleted(t, may) })
		})
	}
}

func testOrphansNamespaceIsDeleted(t *testing.T, may bool) {
	w := newWorldInMemory(t)
	user := "agent-" + w.name
	rules := agent.HubRules()
	if !may {
		for i := range rules {
			if rules[i].Resources[0] == "namespaces" {
				rules[i].Verbs = []string{"watch"}
			}
		}
	}
	grantCluster(t, w.hub, user+"-all", user, rules) // the namespace controller removes a RoleBinding at some time
	w.options.Hub = w.server.Config(user)
	w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	w.ready(work)
	requireUntouched := w.untouched("a")
	namespace := w.manifest("{apiVersion: v1, kind: Namespace, metadata: {name: " + w.options.Namespace + "}}")
	require.NoError(t, w.hub.Delete(t.Context(), namespace))
	w.orphaned(work, v1alpha1.ReasonNamespaceTerminating, 1)
	w.gone(work)
	w.eventually(func() error {
		err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(namespace), namespace)
		return equal(true, err != nil && client.IgnoreNotFound(err) == nil)
	})
	requireUntouched()
	w.create(w.hub, "{apiVersion: v1, kind: Namespace, metadata: {name: "+w.options.Namespace+"}}")
	again := w.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	w.ready(again)
	requireUntouched()
	w.delete(again)
	w.gone(again)
	require.Nil(t, w.read("ConfigMap", "a"))
}

// TestOrphans_DefinitionsAreRemoved checks that the removal of a definition, on the hub or on the member, is not a
// request to delete workloads.
func TestOrphans_DefinitionsAreRemoved(t *testing.T) {
	testkit.Virtual(t, testOrphansDefinitionsAreRemoved)
}

func testOrphansDefinitionsAreRemoved(t *testing.T) {
	w := newWorldInMemory(t)
	c := w.hub
	w.start()
	spec := "{" + manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}")) + "}"
	work := w.work("shop", spec)
	w.ready(work)
	requireUntouched := w.untouched("a", "b")
	remove := func(name string) {
		t.Helper()
		definition := w.manifest("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " +
			name + "." + v1alpha1.GroupName + "}}")
		require.NoError(t, c.Delete(t.Context(), definition))
		w.eventually(func() error {
			err := c.Get(context.Background(), client.ObjectKeyFromObject(definition), definition)
			return equal(true, err != nil && client.IgnoreNotFound(err) == nil)
		})
	}

	remove("works")
	w.orphaned(work, v1alpha1.ReasonDefinitionRemoved, 2)
	requireUntouched()
	require.NoError(t, crds.InstallOnHub(t.Context(), c))
	w.eventually(func() error {
		work = w.spec("shop", spec)
		return c.Create(context.Background(), work)
	})
	w.ready(work)
	w.eventually(func() error { return equal(0, len(w.applied(work).Status.Conditions)) })
	requireUntouched()

	before := w.applied(work).UID
	remove("appliedworks")
	<-time.After(2 * time.Second) // the time that the garbage collector would need
	requireUntouched()
	require.NoError(t, crds.InstallOnMember(t.Context(), c))
	w.eventually(func() error {
		now := &v1alpha1.AppliedWork{}
		err := c.Get(context.Background(), client.ObjectKey{Name: agent.AppliedWorkName(w.name, work.Namespace, work.Name)},
			now)
		if err != nil {
			return err
		}
		if now.UID == before || len(now.Status.Resources) != 2 || now.Status.Resources[0].UID == "" {
			return fmt.Errorf("not rebuilt: %v", now.Status)
		}
		return nil
	})
	requireUntouched()
	w.delete(work)
	w.gone(work)
	require.Nil(t, w.read("ConfigMap", "a"))
}

// TestOrphans_LostInventory checks that an inventory which is lost while no agent runs is rebuilt from the marks on
// the objects: objects that the Work does not contain are kept and reported, and a deletion of the Work is executed.
func TestOrphans_LostInventory(t *testing.T) { testkit.Virtual(t, testOrphansLostInventory) }

func testOrphansLostInventory(t *testing.T) {
	w := newWorldInMemory(t)
	stop := w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	w.ready(work)
	other := w.work("other", "{"+manifests(configMap("c", "{k: v}"))+"}")
	w.ready(other)
	requireUntouched := w.untouched("a")
	stop()
	for _, lost := range []*v1alpha1.Work{work, other} {
		require.NoError(t, w.member.Delete(t.Context(), w.applied(lost)))
	}
	w.change(work, "{"+manifests(configMap("b", "{k: v}"))+"}")
	w.delete(other)
	stop = w.start()
	w.gone(other)
	require.Nil(t, w.read("ConfigMap", "c"))
	applied := w.orphaned(work, v1alpha1.ReasonInventoryRebuilt, 1)
	require.Len(t, applied.Status.Resources, 2)
	requireUntouched()
	stop()
	w.start()
	w.release(applied, string(applied.UID))
	w.eventually(func() error { return equal(true, w.read("ConfigMap", "a") == nil) })
}

// TestOrphans_GeneratedWork checks that a generated Work which a user deletes is released, and its objects are
// adopted when its generator creates it again. If the generator deletes the Work, its objects are deleted.
func TestOrphans_GeneratedWork(t *testing.T) { testkit.Virtual(t, testOrphansGeneratedWork) }

func testOrphansGeneratedWork(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	generate := func() *v1alpha1.Work {
		work := w.spec("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
		work.Annotations = map[string]string{v1alpha1.GeneratedByAnnotation: "WorkSet shop/web"}
		require.NoError(t, w.hub.Create(t.Context(), work))
		w.ready(work)
		return work
	}
	work := generate()
	requireUntouched := w.untouched("a")
	w.delete(work)
	w.gone(work)
	w.orphaned(work, v1alpha1.ReasonNotRequestedByGenerator, 1)
	requireUntouched()
	work = generate()
	requireUntouched()

	require.NoError(t, w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	work.Annotations[v1alpha1.DeletionRequestedByAnnotation] = "5d0c9b6a-0000-0000-0000-000000000000"
	require.NoError(t, w.hub.Update(t.Context(), work))
	w.delete(work)
	w.gone(work)
	require.Nil(t, w.read("ConfigMap", "a"))
	require.Nil(t, w.applied(work))
}

// TestPruneGate checks that the agent applies objects and deletes none while the gate withholds deletions, and that
// the status of the Work reports this.
func TestPruneGate(t *testing.T) { testkit.Virtual(t, testPruneGate) }

func testPruneGate(t *testing.T) {
	w := newWorldInMemory(t)
	var shut atomic.Bool
	w.start(func(o *agent.Options) {
		o.PruneGate = func(context.Context) string {
			if shut.Load() {
				return "The hub was restored, and has not confirmed that it is complete."
			}
			return ""
		}
	})
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	w.ready(work)
	requireUntouched := w.untouched("b")
	shut.Store(true)
	w.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	w.awaitStatus(work, "1/1 Applied=True/Applied Available=True/Ready Progressing=True/PruneWithheld "+
		"Degraded=False/AsDesired\n"+
		"The deletion of 1 object that the Work no longer contains is withheld: The hub was restored, and has not "+
		"confirmed that it is complete.\n"+
		"ConfigMap NS/a: Applied=True/Applied Available=True/Ready")
	require.Equal(t, "w", w.data("a", "k"))
	requireUntouched()
	w.delete(work)
	w.awaitStatus(work, "0/0 Applied=False/CleaningUp Available=False/CleaningUp Progressing=True/PruneWithheld "+
		"Degraded=False/AsDesired\n"+
		"The deletion of 2 objects is withheld: The hub was restored, and has not confirmed that it is complete.")
	requireUntouched()
	shut.Store(false)
	w.gone(work)
	require.Nil(t, w.read("ConfigMap", "b"))
}

// TestPrune_ReadsTheWorkFromTheHub checks that an object is pruned only after the Work was read from the hub and not
// from a cache, and that nothing is pruned while the hub does not respond.
func TestPrune_ReadsTheWorkFromTheHub(t *testing.T) {
	testkit.Virtual(t, testPruneReadsTheWorkFromTheHub)
}

func testPruneReadsTheWorkFromTheHub(t *testing.T) {
	w := newWorldInMemory(t)
	w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	w.ready(work)
	requireUntouched := w.untouched("b")
	requested := make(chan struct{}, 100)
	w.toHub.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if describe(request) == "GET works shop" {
			requested <- struct{}{}
			return nil, errors.New("the network is gone")
		}
		return next.RoundTrip(request)
	})
	w.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	<-requested
	<-requested
	require.Equal(t, "w", w.data("a", "k"))
	requireUntouched()
	w.toHub.intercept(nil)
	w.eventually(func() error { return equal(true, w.read("ConfigMap", "b") == nil) })
}

// TestOrphans_EarlierGeneration checks that a Work of an earlier generation, from a restored hub, does not request
// the deletion of objects that it lacks.
func TestOrphans_EarlierGeneration(t *testing.T) { testkit.Virtual(t, testOrphansEarlierGeneration) }

func testOrphansEarlierGeneration(t *testing.T) {
	w := newWorldInMemory(t)
	stop := w.start()
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	w.ready(work)
	requireUntouched := w.untouched("b")
	stop()
	applied := w.applied(work)
	applied.Spec.Work.Generation = 50
	require.NoError(t, w.member.Update(t.Context(), applied))
	w.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	stop = w.start()
	w.orphaned(work, v1alpha1.ReasonHubRestored, 1)
	requireUntouched()
	w.ready(work)
	w.change(work, "{"+manifests(configMap("a", "{k: w}"), configMap("c", "{k: w}"))+"}")
	w.ready(work)
	w.change(work, "{"+manifests(configMap("c", "{k: w}"))+"}")
	w.eventually(func() error { return equal(true, w.read("ConfigMap", "a") == nil) })
	requireUntouched()
	stop()
}

// TestOrphans_RestoredHub checks Works whose generation is not lower than before although the hub was restored:
// objects that they lack are orphaned, also if a user deletes the Work.
func TestOrphans_RestoredHub(t *testing.T) { testkit.Virtual(t, testOrphansRestoredHub) }

func testOrphansRestoredHub(t *testing.T) {
	w := newWorldInMemory(t)
	var restored atomic.Int64
	options := func(o *agent.Options) { o.HubRestored = restored.Load }
	stop := w.start(options)
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	w.ready(work)
	w.awaitNoWrites() // otherwise the agent may apply the former manifests once more, after the restore
	requireUntouched := w.untouched("b")
	restored.Store(5)
	w.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	w.orphaned(work, v1alpha1.ReasonHubRestored, 1)
	require.EqualValues(t, 5, w.applied(work).Spec.Work.HubRestored)
	w.change(work, "{"+manifests(configMap("a", "{k: w}"), configMap("c", "{k: w}"))+"}")
	w.ready(work)
	w.change(work, "{"+manifests(configMap("c", "{k: w}"))+"}")
	w.eventually(func() error { return equal(true, w.read("ConfigMap", "a") == nil) })
	requireUntouched()
	w.ready(work)
	w.eventually(func() error { // otherwise the inventory may still contain a
		return equal(2, len(w.applied(work).Status.Resources))
	})

	stop()
	restored.Store(6)
	w.change(work, "{"+manifests(configMap("d", "{k: w}"))+"}")
	w.delete(work)
	w.start(options)
	w.gone(work)
	w.orphaned(work, v1alpha1.ReasonHubRestored, 2)
	require.NotNil(t, w.read("ConfigMap", "c"), "the deleted Work does not contain the object")
	requireUntouched()
}
