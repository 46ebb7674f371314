package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestContested checks an opponent that reverts each correction as soon as it observes it.
func TestContested(t *testing.T) { testkit.Virtual(t, testContested) }

func testContested(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	work := f.work("shop", "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+"}")
	f.ready(work)

	dynamicClient, err := dynamic.NewForConfig(f.options.Member)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	watcher, err := dynamicClient.Resource(resource("", "v1", "configmaps")).Namespace(f.name).Watch(ctx, list())
	require.NoError(t, err)
	object := f.manifest(configMap("a", "{k: theirs}"))
	edit := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"k":"theirs"}}`))
	opponent := make(chan error, 1)
	go func() {
		for event := range watcher.ResultChan() {
			live, ok := event.Object.(client.Object)
			if !ok || live.GetName() != "a" || event.Type == watch.Deleted || hasValue(live, "theirs") {
				continue
			}
			if err := f.member.Patch(ctx, object.DeepCopy(), edit, client.FieldOwner("their-controller")); err != nil &&
				ctx.Err() == nil {
				opponent <- err
				return
			}
		}
		opponent <- nil
	}()
	contested := func() error {
		if err := f.Client.Get(context.Background(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		for _, condition := range work.Status.Manifests[0].Conditions {
			if condition.Type == v1alpha1.ConditionApplied && condition.Reason == v1alpha1.ReasonContested &&
				condition.Status == "False" {
				for _, part := range []string{`.data.k by "their-controller"`, "ignoredFields"} {
					if !strings.Contains(condition.Message, part) {
						return fmt.Errorf("the message does not contain %s: %s", part, condition.Message)
					}
				}
				return nil
			}
		}
		return fmt.Errorf("not contested: %v", work.Status.Manifests[0].Conditions)
	}
	f.Eventually("the object is contested", contested)
	f.toMember.take()
	<-time.After(10 * time.Second)
	healed := count(f.toMember.take(), "PATCH configmaps a")
	require.LessOrEqual(t, healed, 4, "heals in 10 seconds")
	require.NoError(t, contested(), "a heal does not hide the contest")
	require.Equal(t, v1alpha1.ReasonContested, condition(work, v1alpha1.ConditionDegraded).Reason)

	began := time.Now()
	f.patch(f.read("ConfigMap", "b"), "data: {k: edited}")
	f.Eventually("ConfigMap b has k: v", func() error { return equal("v", f.data("b", "k")) })
	require.Less(t, time.Since(began), 5*time.Second, "an edit of another object is healed at once")

	f.change(work, "{"+manifests(configMap("a", "{k: v}"), configMap("b", "{k: v}"))+
		", manifestOptions: [{select: {name: a}, ignoredFields: [.data.k]}]}")
	f.ready(work)
	cancel()
	watcher.Stop()
	require.NoError(t, <-opponent)
}

// TestContested_Autoscaler checks a Work that sets the replicas of a Deployment with a HorizontalPodAutoscaler that
// requires more, with the controllers of Kubernetes. The Work names the field, the other manager and the remedy, and
// the remedy works.
func TestContested_Autoscaler(t *testing.T) {
	t.Parallel()
	f := newFixtureWithMember(t)
	f.start()
	spec := func(options string) string {
		return "{" + manifests(strings.Replace(deployment, "replicas: 2", "replicas: 1", 1),
			"{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web, namespace: NS}, spec: "+
				"{minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}") +
			options + "}"
	}
	work := f.work("shop", spec(""))
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonContested, `.spec.replicas by "kube-controller-manager"`)
	f.awaitApplied(work, 0, "False", v1alpha1.ReasonContested,
		"Add .spec.replicas to ignoredFields, or stop the other field "+
			"manager.")
	require.Equal(t, v1alpha1.ReasonContested, condition(work, v1alpha1.ConditionDegraded).Reason)

	f.change(work, spec(", manifestOptions: [{select: {kind: Deployment}, ignoredFields: [.spec.replicas]}]"))
	f.awaitApplied(work, 0, "True", v1alpha1.ReasonApplied, "")
	f.Eventually("the Deployment has 3 replicas", func() error {
		replicas, _, _ := unstructured.NestedInt64(f.read("Deployment", "web").Object, "spec", "replicas")
		return equal(int64(3), replicas)
	})
	f.awaitApplied(work, 0, "True", v1alpha1.ReasonApplied, "")
	f.awaitNoWrites()
	replicas, _, _ := unstructured.NestedInt64(f.read("Deployment", "web").Object, "spec", "replicas")
	require.Equal(t, int64(3), replicas, "the autoscaler sets the replicas")
}

// hasValue reports whether a ConfigMap has the value in its only field.
func hasValue(object client.Object, value string) bool {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return false
	}
	got, _, _ := unstructured.NestedString(u.Object, "data", "k")
	return got == value
}
