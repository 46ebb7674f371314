package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/apply"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestCleaner checks a member that its hub has deregistered.
func TestCleaner(t *testing.T) {
	t.Parallel()
	for _, action := range []v1alpha1.DeleteAction{v1alpha1.DeleteObject, v1alpha1.OrphanObject} {
		t.Run(string(action), func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { testCleaner(t, action) })
		})
	}
}

func testCleaner(t *testing.T, action v1alpha1.DeleteAction) {
	f := newMemoryFixture(t)
	stop := f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: NS, finalizers: [example.com/hold]}}")+
		", manifestOptions: [{select: {name: b}, delete: Orphan}]}")
	f.ready(work)
	stop()
	bystander := fixtureOf(t, f.options.Hub, f.options.Member) // another hub of the same member
	stopOther := bystander.start()
	other := bystander.work("shop", "{"+manifests(configMap("a", "{k: v}"))+"}")
	bystander.ready(other)
	stopOther()

	cleaner, err := agent.NewCleaner(agent.Options{Member: f.options.Member, HubName: f.name})
	require.NoError(t, err)
	if action == v1alpha1.DeleteObject {
		remaining, err := cleaner.Clean(t.Context(), action)
		require.NoError(t, err)
		require.Contains(t, strings.Join(remaining, ", "), "ConfigMap "+f.name+"/held: The object is being deleted")
		f.patch(f.read("ConfigMap", "held"), "metadata: {finalizers: null}")
	}
	f.Eventually("the objects are cleaned up", func() error {
		remaining, err := cleaner.Clean(context.Background(), action)
		if err == nil && len(remaining) > 0 {
			err = fmt.Errorf("remaining: %q", remaining)
		}
		return err
	})
	require.Nil(t, f.applied(work))
	require.Equal(t, action == v1alpha1.OrphanObject, f.read("ConfigMap", "a") != nil)
	require.Equal(t, action == v1alpha1.OrphanObject, f.read("ConfigMap", "held") != nil)
	require.Empty(t, f.read("ConfigMap", "b").GetOwnerReferences(), "an orphaned object has no owner references")
	require.NotNil(t, bystander.applied(other))
	require.Equal(t, "v", bystander.data("a", "k"))
}

// TestCleaner_DefinitionMissing checks a member without the definition of AppliedWorks: if it never had Works, there is
// nothing to clean. Otherwise the delete policies of objects are lost with the definition, so the objects are kept and
// reported.
func TestCleaner_DefinitionMissing(t *testing.T) { testkit.Virtual(t, testCleanerDefinitionMissing) }

func testCleanerDefinitionMissing(t *testing.T) {
	bare := testkit.Memory(t, scheme)
	cleaner, err := agent.NewCleaner(agent.Options{Member: bare.Admin()})
	require.NoError(t, err)
	remains := func(action v1alpha1.DeleteAction) string {
		t.Helper()
		remaining, err := cleaner.Clean(t.Context(), action)
		require.NoError(t, err)
		return strings.Join(remaining, ", ")
	}
	require.Empty(t, remains(v1alpha1.DeleteObject))

	c, err := client.New(bare.Admin(), client.Options{})
	require.NoError(t, err)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "applied", Labels: map[string]string{v1alpha1.AppliedLabel: "true"},
		Annotations: map[string]string{apply.MarkPrefix + "0123": "", apply.MarkPrefix + "4567": ""},
	}}
	require.NoError(t, c.Create(t.Context(), config))
	require.Contains(t, remains(v1alpha1.DeleteObject),
		"ConfigMap default/applied: The CustomResourceDefinition of AppliedWorks is missing")
	require.Empty(t, remains(v1alpha1.OrphanObject), "orphaned objects do not delay a leave")
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(config), config))
	require.Nil(t, config.DeletionTimestamp)
	before := config.DeepCopy()
	delete(config.Labels, v1alpha1.AppliedLabel)
	require.NoError(t, c.Patch(t.Context(), config, client.MergeFrom(before)))
	require.Empty(t, remains(v1alpha1.DeleteObject), "a user keeps the object")
}

// TestStatus_ExceedsSizeLimit checks a Work whose requested status exceeds the limit.
func TestStatus_ExceedsSizeLimit(t *testing.T) { testkit.Virtual(t, testStatusExceedsSizeLimit) }

func testStatusExceedsSizeLimit(t *testing.T) {
	f := newMemoryFixture(t)
	f.start(func(o *agent.Options) { o.StatusInterval = 2 * time.Second }) // each write has half a megabyte
	var texts []string
	for i := range 400 {
		texts = append(texts, configMap(fmt.Sprintf("a%d", i), "{k: "+strings.Repeat("x", 1000)+"}"))
	}
	work := f.work("shop", "{"+manifests(texts...)+`, manifestOptions: [{select: {kind: ConfigMap}, feedback: [
		{name: a, jsonPath: .data.k}, {name: b, jsonPath: .data.k}]}]}`)
	f.ready(work)
	text, err := json.Marshal(work.Status)
	require.NoError(t, err)
	require.LessOrEqual(t, len(text), v1alpha1.MaxStatusBytes)
	require.Equal(t, "Omitted because the status would be too long: differences beyond the third of an object, feedback.",
		work.Status.Truncated)
	require.Len(t, work.Status.Manifests, 400)

	for i := range 60 {
		f.patch(f.manifest(configMap(fmt.Sprintf("a%d", i), "{}")), "data: {k: edited}")
	}
	f.Eventually("ConfigMap a59 is applied", func() error { return equal(strings.Repeat("x", 1000), f.data("a59", "k")) })
	f.awaitNoRequests()
	var events unstructured.UnstructuredList
	events.SetAPIVersion("events.k8s.io/v1")
	events.SetKind("EventList")
	require.NoError(t, f.Client.List(context.Background(), &events, client.InNamespace(work.Namespace)))
	require.Less(t, len(events.Items), 30, "few Events report all heals")
}

// TestAgent_LeaksNoGoroutines must not run in parallel with other tests: it inspects all goroutines.
func TestAgent_LeaksNoGoroutines(t *testing.T) {
	f := newFixture(t)
	before := goleak.IgnoreCurrent()
	_, err := agent.New(f.options) // this agent is never started
	require.NoError(t, err)
	stop := f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), deployment)+"}")
	f.ready(work)
	f.delete(work)
	f.gone(work)
	stop()
	// Idle connections are kept by client-go for all clients of a process.
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*http2clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("internal/poll.runtime_pollWait"))
}
