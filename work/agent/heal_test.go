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
	f := newFixture(t)
	f.start(func(o *agent.Options) { o.Resync = time.Hour })
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), secret("s"), deployment)+"}")
	f.ready(work)
	for _, test := range []struct {
		reason string
		do     func()
		healed func() error
	}{
		{
			"an edit", func() { f.patch(f.read("ConfigMap", "a"), "data: {k: edited}") },
			func() error { return equal("v", f.data("a", "k")) },
		},
		{
			"a removed field", func() { f.patch(f.read("ConfigMap", "a"), "data: {k: null}") },
			func() error { return equal("v", f.data("a", "k")) },
		},
		{
			"the label of the watches is removed", func() {
				f.patch(f.read("ConfigMap", "a"), "metadata: {labels: {"+v1alpha1.AppliedLabel+": null}}")
			},
			func() error { return equal("true", f.read("ConfigMap", "a").GetLabels()[v1alpha1.AppliedLabel]) },
		},
		{
			"the annotation that identifies the Work is removed", func() {
				f.patch(f.read("ConfigMap", "a"), "metadata: {annotations: null}")
			},
			func() error { return equal(1, len(f.marks("a"))) },
		},
		{
			"a deletion", func() { require.NoError(t, f.member.Delete(context.Background(), f.read("Deployment", "web"))) },
			func() error { return equal(true, f.read("Deployment", "web") != nil) },
		},
		{
			"a Secret", func() { f.patch(f.read("Secret", "s"), "data: {password: aGFja2Vk}") },
			func() error {
				password, _, _ := unstructured.NestedString(f.read("Secret", "s").Object, "data", "password")
				return equal("aHVudGVyMg==", password)
			},
		},
	} {
		began := time.Now()
		test.do()
		f.Eventually("the objects are healed", func() error {
			if err := test.healed(); err != nil {
				return fmt.Errorf("%s: %w", test.reason, err)
			}
			return nil
		})
		t.Logf("%s: healed after %s", test.reason, time.Since(began))
	}
	f.ready(work)
	f.Eventually("an Event reports the heal", func() error {
		healed := f.healed()
		want := "ConfigMap " + f.name + "/a was modified on the member and has been restored."
		if !slices.Contains(healed, want) {
			return fmt.Errorf("no Event has the note %q: %q", want, healed)
		}
		return nil
	})
}

// healed returns the notes of the Events about objects of Works that were healed.
func (f *fixture) healed() (notes []string) {
	f.T.Helper()
	var events eventsv1.EventList
	require.NoError(f.T, f.Client.List(context.Background(), &events, client.InNamespace(f.options.Namespace)))
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
			f := fixtureOf(t, hub, newMemory(t).Admin())
			proxy := newProxy(t, f.options.Hub)
			f.options.Hub = proxy.Config(f.options.Hub)
			f.start()
			var works []*v1alpha1.Work
			for i := range 10 { // more than there are workers
				name := fmt.Sprintf("a%d", i)
				works = append(works, f.work(name, "{"+manifests(configMap(name, "{k: v}"))+
					", manifestOptions: [{select: {kind: ConfigMap}, feedback: [{name: x, jsonPath: .data.x}]}]}"))
			}
			for _, work := range works {
				f.ready(work)
			}
			if fault == "cut" {
				proxy.Cut()
			} else {
				proxy.Stall()
			}
			for i := range works { // all Works have a status to write, which the hub does not accept
				f.patch(f.read("ConfigMap", fmt.Sprintf("a%d", i)), "data: {x: reported}")
			}
			f.toHub.take()
			began := time.Now()
			for range 3 {
				for i := range works {
					name := fmt.Sprintf("a%d", i)
					f.patch(f.read("ConfigMap", name), "data: {k: edited}")
				}
				for i := range works {
					f.Eventually("the object is healed", func() error { return equal("v", f.data(fmt.Sprintf("a%d", i), "k")) })
				}
			}
			took, tried := time.Since(began), len(writes(f.toHub.take()))
			t.Logf("30 heals after %s, with %d attempts to write to the hub", took, tried)
			if fault == "stall" { // each worker waits for the hub once; then one attempt is made every five seconds
				require.LessOrEqual(t, tried, agent.DefaultWorkers+int(took/(5*time.Second))+1)
			}
			proxy.Heal()
			for _, work := range works {
				f.Eventually("the status is reported", func() error {
					if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
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
	f := newFixture(b)
	f.start()
	var texts []string
	for i := range 100 {
		texts = append(texts, configMap(fmt.Sprintf("a%d", i), "{k: v}"))
	}
	f.ready(f.work("shop", "{"+manifests(texts...)+"}"))
	dynamicClient, err := dynamic.NewForConfig(f.options.Member)
	require.NoError(b, err)
	configMaps := dynamicClient.Resource(resource("", "v1", "configmaps")).Namespace(f.name)
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
		f.patch(f.manifest(configMap(name, "{}")), "data: {k: edited}")
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
