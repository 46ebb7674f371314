package agent_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestHeal checks the correction of an object that a user on the member changes. It does not depend on polling: the
// resync period is an hour.
func TestHeal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(func(o *agent.Options) { o.Resync = time.Hour })
	work := w.work("shop", "{"+manifests(configMap("a", "{k: v}"), secret("s"), deployment)+"}")
	w.ready(work)
	for _, test := range []struct {
		reason string
		do     func()
		healed func() error
	}{
		{
			"an edit", func() { w.patch(w.read("ConfigMap", "a"), "data: {k: edited}") },
			func() error { return equal("v", w.data("a", "k")) },
		},
		{
			"a removed field", func() { w.patch(w.read("ConfigMap", "a"), "data: {k: null}") },
			func() error { return equal("v", w.data("a", "k")) },
		},
		{
			"the label of the watches is removed", func() {
				w.patch(w.read("ConfigMap", "a"), "metadata: {labels: {"+v1alpha1.AppliedLabel+": null}}")
			},
			func() error { return equal("true", w.read("ConfigMap", "a").GetLabels()[v1alpha1.AppliedLabel]) },
		},
		{
			"the annotation that identifies the Work is removed", func() {
				w.patch(w.read("ConfigMap", "a"), "metadata: {annotations: null}")
			},
			func() error { return equal(1, len(w.marks("a"))) },
		},
		{
			"a deletion", func() { require.NoError(t, w.member.Delete(context.Background(), w.read("Deployment", "web"))) },
			func() error { return equal(true, w.read("Deployment", "web") != nil) },
		},
		{
			"a Secret", func() { w.patch(w.read("Secret", "s"), "data: {password: aGFja2Vk}") },
			func() error {
				password, _, _ := unstructured.NestedString(w.read("Secret", "s").Object, "data", "password")
				return equal("aHVudGVyMg==", password)
			},
		},
	} {
		began := time.Now()
		test.do()
		w.eventually(func() error {
			if err := test.healed(); err != nil {
				return fmt.Errorf("%s: %w", test.reason, err)
			}
			return nil
		})
		t.Logf("%s: healed after %s", test.reason, time.Since(began))
	}
	w.ready(work)
	w.eventually(func() error {
		healed := w.healed()
		want := "ConfigMap " + w.name + "/a was modified on the member and has been restored."
		if !slices.Contains(healed, want) {
			return fmt.Errorf("no Event has the note %q: %q", want, healed)
		}
		return nil
	})
}

// healed returns the notes of the Events about objects of Works that were healed.
func (w *world) healed() (notes []string) {
	w.t.Helper()
	var events eventsv1.EventList
	require.NoError(w.t, w.hub.List(context.Background(), &events, client.InNamespace(w.options.Namespace)))
	for _, event := range events.Items {
		if event.Reason == "Healed" {
			notes = append(notes, event.Note)
		}
	}
	return notes
}

// TestHeal_HubUnreachable checks that the agent corrects a member while its hub is unreachable, and deletes nothing.
func TestHeal_HubUnreachable(t *testing.T) {
	t.Parallel()
	for _, fault := range []string{"cut", "stall"} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			hub := plane.ForTest(t).Config()
			installed.Do(func() { install(t, newClient(t, hub)) })
			w := worldOf(t, hub, newMemory(t).Admin())
			proxy := newProxy(t, w.options.Hub)
			w.options.Hub = proxy.Config(w.options.Hub)
			w.start()
			var works []*v1alpha1.Work
			for i := range 10 { // more than there are workers
				name := fmt.Sprintf("a%d", i)
				works = append(works, w.work(name, "{"+manifests(configMap(name, "{k: v}"))+
					", manifestOptions: [{select: {kind: ConfigMap}, feedback: [{name: x, jsonPath: .data.x}]}]}"))
			}
			for _, work := range works {
				w.ready(work)
			}
			if fault == "cut" {
				proxy.Cut()
			} else {
				proxy.Stall()
			}
			for i := range works { // all Works have a status to write, which the hub does not accept
				w.patch(w.read("ConfigMap", fmt.Sprintf("a%d", i)), "data: {x: reported}")
			}
			w.toHub.take()
			began := time.Now()
			for range 3 {
				for i := range works {
					name := fmt.Sprintf("a%d", i)
					w.patch(w.read("ConfigMap", name), "data: {k: edited}")
				}
				for i := range works {
					w.eventually(func() error { return equal("v", w.data(fmt.Sprintf("a%d", i), "k")) })
				}
			}
			took, tried := time.Since(began), len(writes(w.toHub.take()))
			t.Logf("30 heals after %s, with %d attempts to write to the hub", took, tried)
			if fault == "stall" { // each worker waits for the hub once; then one attempt is made every five seconds
				require.LessOrEqual(t, tried, agent.DefaultWorkers+int(took/(5*time.Second))+1)
			}
			proxy.Heal()
			for _, work := range works {
				w.eventually(func() error {
					if err := w.hub.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
						return err
					}
					return equal("reported", feedback(work, "x"))
				})
			}
		})
	}
}

func feedback(work *v1alpha1.Work, name string) string {
	for _, m := range work.Status.Manifests {
		for _, v := range m.Feedback {
			if v.Name == name {
				return v.Value
			}
		}
	}
	return ""
}

// BenchmarkHeal measures the time from the response to an edit until a watch observes the corrected object. The agent
// waits 50 ms of it for further changes; the rest are two watch events and a write.
func BenchmarkHeal(b *testing.B) {
	w := newWorld(b)
	w.start()
	var texts []string
	for i := range 100 {
		texts = append(texts, configMap(fmt.Sprintf("a%d", i), "{k: v}"))
	}
	w.ready(w.work("shop", "{"+manifests(texts...)+"}"))
	dynamicClient, err := dynamic.NewForConfig(w.options.Member)
	require.NoError(b, err)
	configMaps := dynamicClient.Resource(resource("", "v1", "configmaps")).Namespace(w.name)
	watcher, err := configMaps.Watch(context.Background(), list())
	require.NoError(b, err)
	defer watcher.Stop()
	healed := sync.OnceValue(func() chan string {
		names := make(chan string, 1000)
		go func() {
			for event := range watcher.ResultChan() {
				if o, ok := event.Object.(*unstructured.Unstructured); ok && event.Type == watch.Modified {
					if value, _, _ := unstructured.NestedString(o.Object, "data", "k"); value == "v" {
						names <- o.GetName()
					}
				}
			}
		}()
		return names
	})()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		name := fmt.Sprintf("a%d", i%100)
		w.patch(w.manifest(configMap(name, "{}")), "data: {k: edited}")
		began := time.Now()
		for other := range healed {
			if other == name {
				break
			}
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
