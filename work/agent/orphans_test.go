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
func (f *fixture) vanish(work *v1alpha1.Work) {
	f.T.Helper()
	now := &v1alpha1.Work{}
	require.NoError(f.T, f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), now))
	now.Finalizers = nil
	require.NoError(f.T, f.Client.Update(context.Background(), now))
	f.delete(work)
	f.gone(work)
}

// orphaned waits until the condition Orphaned of a Work's inventory has a reason, and so many objects are orphaned.
func (f *fixture) orphaned(work *v1alpha1.Work, reason string, objects int) *v1alpha1.AppliedWork {
	f.T.Helper()
	var applied *v1alpha1.AppliedWork
	f.Eventually("the objects of Work "+work.Name+" are orphaned", func() error {
		if applied = f.applied(work); applied == nil {
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
func (f *fixture) untouched(names ...string) (requireUntouched func()) {
	f.T.Helper()
	before := map[string]*unstructured.Unstructured{}
	for _, name := range names {
		before[name] = f.read("ConfigMap", name)
		require.NotNil(f.T, before[name])
	}
	return func() {
		f.T.Helper()
		for name, object := range before {
			live := f.read("ConfigMap", name)
			require.NotNil(f.T, live, "ConfigMap %s was deleted", name)
			require.Equal(f.T, object.GetUID(), live.GetUID(), "ConfigMap %s was created again", name)
			require.Equal(f.T, object.GetResourceVersion(), live.GetResourceVersion(), "ConfigMap %s was written", name)
			require.Nil(f.T, live.GetDeletionTimestamp(), name)
		}
	}
}

func (f *fixture) event(reason string) {
	f.T.Helper()
	f.Eventually("an Event has reason "+reason, func() error {
		var events unstructured.UnstructuredList
		events.SetAPIVersion("events.k8s.io/v1")
		events.SetKind("EventList")
		if err := f.Client.List(context.Background(), &events, client.InNamespace(f.options.Namespace)); err != nil {
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
	f := newMemoryFixture(t)
	stop := f.start()
	spec := "{" + manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}")) + "}"
	work := f.work("shop", spec)
	f.ready(work)
	requireUntouched := f.untouched("a", "b")
	stop()
	f.vanish(work)

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
	stop = f.start(observe)
	applied := f.orphaned(work, v1alpha1.ReasonWorkNotFound, 2)
	require.Contains(t, applied.Status.Conditions[0].Message, "2 objects orphaned: Work "+work.Namespace+
		"/shop of hub "+f.name+" does not exist")
	all := agent.OrphanSummary{Works: 1, Objects: 2, First: []string{"shop"}}
	reported(all)
	f.event("Orphaned") // Before the agent stops: an Event that is not sent yet would be lost.
	stop()
	stop = f.start(observe)
	reported(all) // a restarted agent reports the orphaned objects that exist
	requireUntouched()
	_, member := f.awaitNoRequests()
	require.Empty(t, f.toMember.take(), "%v", member)

	again := f.work("shop", spec)
	f.ready(again)
	f.Eventually("the new Work adopts the inventory", func() error {
		now := f.applied(again)
		if now == nil || now.UID != applied.UID {
			return fmt.Errorf("the inventory was not adopted: %v", now)
		}
		return equal(fmt.Sprint(again.UID, 0), fmt.Sprint(now.Spec.Work.UID, len(now.Status.Conditions)))
	})
	reported(agent.OrphanSummary{})
	f.event("Adopted")
	requireUntouched()

	f.delete(again)
	f.gone(again)
	require.Nil(t, f.read("ConfigMap", "a"), "the object is deleted on request")
	require.Nil(t, f.applied(again))
	stop()
	f.start(observe)
	reported(agent.OrphanSummary{}) // replaces the report of an earlier run
}

// TestOrphans_ReplacedWork checks that a Work which is created again without some of the objects does not request
// their deletion.
func TestOrphans_ReplacedWork(t *testing.T) { testkit.Virtual(t, testOrphansReplacedWork) }

func testOrphansReplacedWork(t *testing.T) {
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	requireUntouched := f.untouched("a", "b")
	stop()
	f.vanish(work)
	again := f.work("shop", "{"+manifests(configMap("b", "{k: v}"))+"}")
	f.start()
	applied := f.orphaned(again, v1alpha1.ReasonWorkReplaced, 1)
	f.ready(again)
	f.Eventually("the status reports the object that the Work does not contain", func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(again), again); err != nil {
			return err
		}
		if !strings.Contains(again.Status.Message, "The member keeps 1 object that the Work does not contain") {
			return errors.New(again.Status.Message)
		}
		return nil
	})
	requireUntouched()

	f.release(applied, "another")
	f.awaitNoRequests()
	requireUntouched()
	f.release(applied, string(applied.UID))
	f.Holds("ConfigMap a does not exist", func() bool { return f.read("ConfigMap", "a") == nil })
	require.NotNil(t, f.read("ConfigMap", "b"), "a release deletes orphaned objects only")
	f.Eventually("the inventory has neither conditions nor annotations", func() error {
		now := f.applied(again)
		return equal("0 0", fmt.Sprint(len(now.Status.Conditions), len(now.Annotations)))
	})
}

func (f *fixture) release(applied *v1alpha1.AppliedWork, value string) {
	f.T.Helper()
	patch := fmt.Sprintf(`{"metadata": {"annotations": {%q: %q}}}`, v1alpha1.ReleaseAnnotation, value)
	require.NoError(f.T, f.member.Patch(context.Background(), applied.DeepCopy(),
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
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	f.ready(work)
	requireUntouched := f.untouched("a")
	stop()
	f.vanish(work)
	f.start(func(o *agent.Options) { o.OrphanGracePeriod = grace })
	applied := f.orphaned(work, v1alpha1.ReasonWorkNotFound, 1)
	requireUntouched()
	if grace == 0 {
		f.release(applied, string(applied.UID))
	}
	f.Eventually("ConfigMap a and the inventory are deleted", func() error {
		return equal("true", fmt.Sprint(f.read("ConfigMap", "a") == nil && f.applied(work) == nil))
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
	f := newMemoryFixture(t)
	user := "agent-" + f.name
	rules := agent.HubRules()
	if !may {
		for i := range rules {
			if rules[i].Resources[0] == "namespaces" {
				rules[i].Verbs = []string{"watch"}
			}
		}
	}
	grantCluster(t, f.Client, user+"-all", user, rules) // the namespace controller removes a RoleBinding at some time
	f.options.Hub = f.server.Config(user)
	f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	f.ready(work)
	requireUntouched := f.untouched("a")
	namespace := f.manifest("{apiVersion: v1, kind: Namespace, metadata: {name: " + f.options.Namespace + "}}")
	require.NoError(t, f.Client.Delete(t.Context(), namespace))
	f.orphaned(work, v1alpha1.ReasonNamespaceTerminating, 1)
	f.gone(work)
	f.Eventually("the namespace is deleted", func() error {
		err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(namespace), namespace)
		return equal(true, err != nil && client.IgnoreNotFound(err) == nil)
	})
	requireUntouched()
	f.create(f.Client, "{apiVersion: v1, kind: Namespace, metadata: {name: "+f.options.Namespace+"}}")
	again := f.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	f.ready(again)
	requireUntouched()
	f.delete(again)
	f.gone(again)
	require.Nil(t, f.read("ConfigMap", "a"))
}

// TestOrphans_DefinitionsAreRemoved checks that the removal of a definition, on the hub or on the member, is not a
// request to delete workloads.
func TestOrphans_DefinitionsAreRemoved(t *testing.T) {
	testkit.Virtual(t, testOrphansDefinitionsAreRemoved)
}

func testOrphansDefinitionsAreRemoved(t *testing.T) {
	f := newMemoryFixture(t)
	c := f.Client
	f.start()
	spec := "{" + manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}")) + "}"
	work := f.work("shop", spec)
	f.ready(work)
	requireUntouched := f.untouched("a", "b")
	remove := func(name string) {
		t.Helper()
		definition := f.manifest("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " +
			name + "." + v1alpha1.GroupName + "}}")
		require.NoError(t, c.Delete(t.Context(), definition))
		f.Eventually("definition "+name+" is deleted", func() error {
			err := c.Get(context.Background(), client.ObjectKeyFromObject(definition), definition)
			return equal(true, err != nil && client.IgnoreNotFound(err) == nil)
		})
	}

	remove("works")
	f.orphaned(work, v1alpha1.ReasonDefinitionRemoved, 2)
	requireUntouched()
	require.NoError(t, crds.InstallOnHub(t.Context(), c))
	f.Eventually("Works are served again", func() error {
		work = f.spec("shop", spec)
		return c.Create(context.Background(), work)
	})
	f.ready(work)
	f.Eventually("the inventory has no conditions", func() error {
		return equal(0, len(f.applied(work).Status.Conditions))
	})
	requireUntouched()

	before := f.applied(work).UID
	remove("appliedworks")
	<-time.After(2 * time.Second) // the time that the garbage collector would need
	requireUntouched()
	require.NoError(t, crds.InstallOnMember(t.Context(), c))
	f.Eventually("the inventory is rebuilt", func() error {
		now := &v1alpha1.AppliedWork{}
		err := c.Get(context.Background(), client.ObjectKey{Name: agent.AppliedWorkName(f.name, work.Namespace, work.Name)},
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
	f.delete(work)
	f.gone(work)
	require.Nil(t, f.read("ConfigMap", "a"))
}

// TestOrphans_LostInventory checks that an inventory which is lost while no agent runs is rebuilt from the marks on
// the objects: objects that the Work does not contain are kept and reported, and a deletion of the Work is executed.
func TestOrphans_LostInventory(t *testing.T) { testkit.Virtual(t, testOrphansLostInventory) }

func testOrphansLostInventory(t *testing.T) {
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	other := f.work("other", "{"+manifests(configMap("c", "{k: v}"))+"}")
	f.ready(other)
	requireUntouched := f.untouched("a")
	stop()
	for _, lost := range []*v1alpha1.Work{work, other} {
		require.NoError(t, f.member.Delete(t.Context(), f.applied(lost)))
	}
	f.change(work, "{"+manifests(configMap("b", "{k: v}"))+"}")
	f.delete(other)
	stop = f.start()
	f.gone(other)
	require.Nil(t, f.read("ConfigMap", "c"))
	applied := f.orphaned(work, v1alpha1.ReasonInventoryRebuilt, 1)
	require.Len(t, applied.Status.Resources, 2)
	requireUntouched()
	stop()
	f.start()
	f.release(applied, string(applied.UID))
	f.Holds("ConfigMap a does not exist", func() bool { return f.read("ConfigMap", "a") == nil })
}

// TestOrphans_GeneratedWork checks that a generated Work which a user deletes is released, and its objects are
// adopted when its generator creates it again. If the generator deletes the Work, its objects are deleted.
func TestOrphans_GeneratedWork(t *testing.T) { testkit.Virtual(t, testOrphansGeneratedWork) }

func testOrphansGeneratedWork(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	generate := func() *v1alpha1.Work {
		work := f.spec("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
		work.Annotations = map[string]string{v1alpha1.GeneratedByAnnotation: "WorkSet shop/web"}
		require.NoError(t, f.Client.Create(t.Context(), work))
		f.ready(work)
		return work
	}
	work := generate()
	requireUntouched := f.untouched("a")
	f.delete(work)
	f.gone(work)
	f.orphaned(work, v1alpha1.ReasonNotRequestedByGenerator, 1)
	requireUntouched()
	work = generate()
	requireUntouched()

	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work))
	work.Annotations[v1alpha1.DeletionRequestedByAnnotation] = "5d0c9b6a-0000-0000-0000-000000000000"
	require.NoError(t, f.Client.Update(t.Context(), work))
	f.delete(work)
	f.gone(work)
	require.Nil(t, f.read("ConfigMap", "a"))
	require.Nil(t, f.applied(work))
}

// TestPruneGate checks that the agent applies objects and deletes none while the gate withholds deletions, and that
// the status of the Work reports this.
func TestPruneGate(t *testing.T) { testkit.Virtual(t, testPruneGate) }

func testPruneGate(t *testing.T) {
	f := newMemoryFixture(t)
	var shut atomic.Bool
	f.start(func(o *agent.Options) {
		o.PruneGate = func(context.Context) string {
			if shut.Load() {
				return "The hub was restored, and has not confirmed that it is complete."
			}
			return ""
		}
	})
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	requireUntouched := f.untouched("b")
	shut.Store(true)
	f.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	f.awaitStatus(work, "1/1 Applied=True/Applied Available=True/Ready Progressing=True/PruneWithheld "+
		"Degraded=False/AsDesired\n"+
		"The deletion of 1 object that the Work no longer contains is withheld: The hub was restored, and has not "+
		"confirmed that it is complete.\n"+
		"ConfigMap NS/a: Applied=True/Applied Available=True/Ready")
	require.Equal(t, "w", f.data("a", "k"))
	requireUntouched()
	f.delete(work)
	f.awaitStatus(work, "0/0 Applied=False/CleaningUp Available=False/CleaningUp Progressing=True/PruneWithheld "+
		"Degraded=False/AsDesired\n"+
		"The deletion of 2 objects is withheld: The hub was restored, and has not confirmed that it is complete.")
	requireUntouched()
	shut.Store(false)
	f.gone(work)
	require.Nil(t, f.read("ConfigMap", "b"))
}

// TestPrune_ReadsTheWorkFromTheHub checks that an object is pruned only after the Work was read from the hub and not
// from a cache, and that nothing is pruned while the hub does not respond.
func TestPrune_ReadsTheWorkFromTheHub(t *testing.T) {
	testkit.Virtual(t, testPruneReadsTheWorkFromTheHub)
}

func testPruneReadsTheWorkFromTheHub(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	requireUntouched := f.untouched("b")
	requested := make(chan struct{}, 100)
	f.toHub.intercept(func(request *http.Request, next http.RoundTripper) (*http.Response, error) {
		if describe(request) == "GET works shop" {
			requested <- struct{}{}
			return nil, errors.New("the network is gone")
		}
		return next.RoundTrip(request)
	})
	f.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	<-requested
	<-requested
	require.Equal(t, "w", f.data("a", "k"))
	requireUntouched()
	f.toHub.intercept(nil)
	f.Holds("ConfigMap b does not exist", func() bool { return f.read("ConfigMap", "b") == nil })
}

// TestOrphans_EarlierGeneration checks that a Work of an earlier generation, from a restored hub, does not request
// the deletion of objects that it lacks.
func TestOrphans_EarlierGeneration(t *testing.T) { testkit.Virtual(t, testOrphansEarlierGeneration) }

func testOrphansEarlierGeneration(t *testing.T) {
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	requireUntouched := f.untouched("b")
	stop()
	applied := f.applied(work)
	applied.Spec.Work.Generation = 50
	require.NoError(t, f.member.Update(t.Context(), applied))
	f.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	stop = f.start()
	f.orphaned(work, v1alpha1.ReasonHubRestored, 1)
	requireUntouched()
	f.ready(work)
	f.change(work, "{"+manifests(configMap("a", "{k: w}"), configMap("c", "{k: w}"))+"}")
	f.ready(work)
	f.change(work, "{"+manifests(configMap("c", "{k: w}"))+"}")
	f.Holds("ConfigMap a does not exist", func() bool { return f.read("ConfigMap", "a") == nil })
	requireUntouched()
	stop()
}

// TestOrphans_RestoredHub checks Works whose generation is not lower than before although the hub was restored:
// objects that they lack are orphaned, also if a user deletes the Work.
func TestOrphans_RestoredHub(t *testing.T) { testkit.Virtual(t, testOrphansRestoredHub) }

func testOrphansRestoredHub(t *testing.T) {
	f := newMemoryFixture(t)
	var restored atomic.Int64
	options := func(o *agent.Options) { o.HubRestored = restored.Load }
	stop := f.start(options)
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)
	f.awaitNoWrites() // otherwise the agent may apply the former manifests once more, after the restore
	requireUntouched := f.untouched("b")
	restored.Store(5)
	f.change(work, "{"+manifests(configMap("a", "{k: w}"))+"}")
	f.orphaned(work, v1alpha1.ReasonHubRestored, 1)
	require.EqualValues(t, 5, f.applied(work).Spec.Work.HubRestored)
	f.change(work, "{"+manifests(configMap("a", "{k: w}"), configMap("c", "{k: w}"))+"}")
	f.ready(work)
	f.change(work, "{"+manifests(configMap("c", "{k: w}"))+"}")
	f.Holds("ConfigMap a does not exist", func() bool { return f.read("ConfigMap", "a") == nil })
	requireUntouched()
	f.ready(work)
	f.Eventually("the inventory has 2 objects", func() error { // otherwise the inventory may still contain a
		return equal(2, len(f.applied(work).Status.Resources))
	})

	stop()
	restored.Store(6)
	f.change(work, "{"+manifests(configMap("d", "{k: w}"))+"}")
	f.delete(work)
	f.start(options)
	f.gone(work)
	f.orphaned(work, v1alpha1.ReasonHubRestored, 2)
	require.NotNil(t, f.read("ConfigMap", "c"), "the deleted Work does not contain the object")
	requireUntouched()
}
