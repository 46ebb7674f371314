package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/work/agent"
	"github.com/muster-sdk/muster/work/readiness"
	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestNamespaceOfClusterScopedObject checks that the namespace of a cluster-scoped object is dropped with a warning.
func TestNamespaceOfClusterScopedObject(t *testing.T) {
	testkit.Virtual(t, testNamespaceOfClusterScopedObject)
}

func testNamespaceOfClusterScopedObject(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	role := func(verb string) string {
		return "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: NS-role, namespace: NS}, " +
			"rules: [{apiGroups: [x], resources: [things], verbs: [" + verb + "]}]}"
	}
	work := f.work("role", "{"+manifests(role("get"), configMap("a", "{k: v}"))+"}")
	f.ready(work)
	applied := work.Status.Manifests[0].Conditions[0]
	require.Equal(t, "metadata.namespace "+f.name+
		" of the manifest is ignored because ClusterRole is cluster-scoped. "+
		"Remove the namespace from the manifest.", applied.Message)
	live := &rbacv1.ClusterRole{}
	key := client.ObjectKey{Name: f.name + "-role"}
	require.NoError(t, f.member.Get(t.Context(), key, live))
	f.patch(live, "rules: []")
	f.Eventually("ClusterRole "+key.Name+" has one rule", func() error { // the object is watched as cluster-scoped
		if err := f.member.Get(t.Context(), key, live); err != nil {
			return err
		}
		return equal(1, len(live.Rules))
	})
	inventory := f.applied(work).Status.Resources
	require.Len(t, inventory, 2, "the inventory has each object once")

	f.change(work, "{"+manifests(role("get"), strings.Replace(role("get"), ", namespace: NS", "", 1))+"}")
	f.Eventually("two objects are refused", func() error {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if len(work.Status.Manifests) != 2 || !strings.Contains(work.Status.Message, "remove one of them") {
			return fmt.Errorf("the Work does not have two refused objects: %s", render(work.Status))
		}
		return nil
	})
	f.delete(work)
	f.gone(work)
	require.Error(t, f.member.Get(context.Background(), key, live), "the ClusterRole is deleted with the Work")
}

// TestCustomResourceDoesNotBlockItsOperator checks a Work with an operator, its definition and a custom resource that
// is not ready before the operator runs. With default waves the operator is applied; an explicit wave is awaited.
func TestCustomResourceDoesNotBlockItsOperator(t *testing.T) {
	t.Parallel()
	for _, explicit := range []bool{false, true} {
		t.Run(fmt.Sprintf("explicit wave %t", explicit), func(t *testing.T) {
			testkit.Virtual(t, func(t *testing.T) { testCustomResourceDoesNotBlockItsOperator(t, explicit) })
		})
	}
}

func testCustomResourceDoesNotBlockItsOperator(t *testing.T, explicit bool) {
	f := newMemoryFixture(t)
	f.start()
	group := f.name + ".example.com"
	definition := strings.ReplaceAll(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
      metadata: {name: wheels.GROUP},
    spec: {group: GROUP, scope: Namespaced,
  names: {plural: wheels, kind: Wheel}, versions: [{name: v1, served: true, storage: true,
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, "GROUP", group)
	wheel := "{apiVersion: " + group + "/v1, kind: Wheel, metadata: {name: a, namespace: NS}, spec: {size: 3}}"
	options := "{select: {kind: Wheel}, readiness: {cel: 'has(object.status.ready)'}"
	if explicit {
		options += ", wave: 30"
	}
	work := f.work("operator", "{"+manifests(definition, wheel, strings.Replace(deployment, "replicas: 2", "replicas: 0",
		1))+
		", waves: {waitForReadiness: true}, manifestOptions: ["+options+"}]}")
	if explicit {
		f.Eventually("the Work waits for a wave", func() error {
			if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
				return err
			}
			if c := condition(work, v1alpha1.ConditionApplied); c == nil || c.Reason != v1alpha1.ReasonPending {
				return fmt.Errorf("the Work does not wait for a wave:\n%s", render(work.Status))
			}
			return nil
		})
		<-time.After(time.Second)
		require.Nil(t, f.read("Deployment", "web"))
		return
	}
	f.Eventually("the operator exists", func() error {
		if f.read("Deployment", "web") == nil {
			return fmt.Errorf("the operator does not exist yet")
		}
		return nil
	})
	f.rolledOut("web")
	f.patch(f.manifest(wheel), "{status: {ready: true}}")
	f.ready(work)
}

// TestRejectedCustomResourceDoesNotBlockItsOperator checks a custom resource that the API server rejects, for example
// while the webhook of its operator does not respond. The operator is applied nevertheless.
func TestRejectedCustomResourceDoesNotBlockItsOperator(t *testing.T) {
	testkit.Virtual(t, testRejectedCustomResourceDoesNotBlockItsOperator)
}

func testRejectedCustomResourceDoesNotBlockItsOperator(t *testing.T) {
	f := newMemoryFixture(t)
	f.start()
	group := f.name + ".example.com"
	definition := strings.ReplaceAll(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition,
  metadata: {name: wheels.GROUP}, spec: {group: GROUP, scope: Namespaced, names: {plural: wheels, kind: Wheel},
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object,
    properties: {spec: {type: object, properties: {size: {type: integer, maximum: 2}}}}}}}]}}`, "GROUP", group)
	wheel := "{apiVersion: " + group + "/v1, kind: Wheel, metadata: {name: a, namespace: NS}, spec: {size: 3}}"
	operator := strings.Replace(deployment, "replicas: 2", "replicas: 0", 1)
	work := f.work("operator", "{"+manifests(definition, wheel, operator)+", waves: {waitForReadiness: true}}")
	f.awaitApplied(work, 1, "False", v1alpha1.ReasonRejected, "spec.size")
	f.awaitApplied(work, 2, "True", v1alpha1.ReasonApplied, "")
	require.NotNil(t, f.read("Deployment", "web"))
	require.Contains(t, condition(work, v1alpha1.ConditionDegraded).Message, "Wheel", "the Work names the rejected kind")
}

// TestReadiness_Precedence checks the precedence of rules: a rule in CEL for one object, a rule in Go of a product for
// a kind, and the defaults.
func TestReadiness_Precedence(t *testing.T) { testkit.Virtual(t, testReadinessPrecedence) }

func testReadinessPrecedence(t *testing.T) {
	f := newMemoryFixture(t)
	f.start(func(o *agent.Options) {
		o.Readiness = readiness.Registry{{Kind: "ConfigMap"}: func(u *unstructured.Unstructured) (readiness.Result, error) {
			if state, _, _ := unstructured.NestedString(u.Object, "data", "state"); state != "up" {
				return readiness.Result{Status: readiness.Failed, Message: "data.state is " + state}, nil
			}
			return readiness.Result{Status: readiness.Ready}, nil
		}}
	})
	work := f.work("shop", "{"+manifests(configMap("go", "{state: down}"), configMap("cel", "{state: down}"))+
		", manifestOptions: [{select: {name: cel}, readiness: {cel: 'has(object.data.checked)'}}]}")
	evaluated := func(ordinal int, reason, message string) error {
		if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
			return err
		}
		if len(work.Status.Manifests) <= ordinal {
			return fmt.Errorf("no status yet")
		}
		available := findManifestCondition(work, ordinal, v1alpha1.ConditionAvailable)
		return equal(reason+": "+message, available.Reason+": "+available.Message)
	}
	f.Eventually("the rule of the first object is evaluated", func() error {
		return evaluated(0, v1alpha1.ReasonNotReady, "data.state is down")
	})
	f.Eventually("the rule of the second object is false", func() error {
		return evaluated(1, v1alpha1.ReasonProgressing, "the readiness rule is false: has(object.data.checked)")
	})
	require.Contains(t, condition(work, v1alpha1.ConditionDegraded).Message, "data.state is down")
	f.patch(f.read("ConfigMap", "cel"), "data: {checked: 'true'}")
	f.Eventually("the rule of the second object is true", func() error {
		return evaluated(1, v1alpha1.ReasonReady, "the readiness rule is true")
	})
	f.change(work, "{"+manifests(configMap("go", "{state: up}"), configMap("cel", "{state: down}"))+
		", manifestOptions: [{select: {name: cel}, readiness: {cel: 'has(object.data.checked)'}}]}")
	f.ready(work)
}

// TestStatusGracePeriod checks custom resources of unknown kinds. If the kind has a status, the object is not ready
// until it has one or the time is over, also after a restart of the agent; otherwise it is ready immediately.
func TestStatusGracePeriod(t *testing.T) { testkit.Virtual(t, testStatusGracePeriod) }

func testStatusGracePeriod(t *testing.T) {
	f := newMemoryFixture(t)
	group := f.name + ".example.com"
	definition := func(plural, kind, subresources string) string {
		return "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: " + plural + "." +
			group + "}, spec: {group: " + group + ", scope: Namespaced, names: {plural: " + plural + ", kind: " + kind +
			"}, versions: [{name: v1, served: true, storage: true, " + subresources +
			"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}"
	}
	custom := func(kind, name string) string {
		return "{apiVersion: " + group + "/v1, kind: " + kind + ", metadata: {name: " + name + ", namespace: NS}, " +
			"spec: {size: 3}}"
	}
	stop := f.start(func(o *agent.Options) { o.StatusGracePeriod = time.Hour })
	f.ready(f.work("kinds", "{"+manifests(definition("wheels", "Wheel", "subresources: {status: {}}, "),
		definition("doors", "Door", ""))+"}"))
	f.ready(f.work("door", "{"+manifests(custom("Door", "a"))+"}"))
	wheel := f.work("wheel", "{"+manifests(custom("Wheel", "a"))+"}")
	awaited := func() {
		t.Helper()
		f.Eventually("the condition of the wheel is reported", func() error {
			if err := f.Client.Get(t.Context(), client.ObjectKeyFromObject(wheel), wheel); err != nil {
				return err
			}
			c := condition(wheel, v1alpha1.ConditionAvailable)
			if c == nil || c.Reason != v1alpha1.ReasonProgressing ||
				!strings.Contains(c.Message, "no controller has reported a status yet") {
				return fmt.Errorf("the Work does not wait for a status:\n%s", render(wheel.Status))
			}
			return nil
		})
	}
	awaited()
	live := f.manifest(custom("Wheel", "a"))
	f.patch(live, "metadata: {labels: {edited: 'true'}}") // the object is evaluated again, and still has no status
	f.awaitNoWrites()
	awaited()
	require.NoError(t, f.member.Status().Patch(t.Context(), live, client.RawPatch(types.MergePatchType,
		[]byte(`{"status":{"size":3}}`))))
	f.ready(wheel)

	stop()
	const grace = 5 * time.Second
	f.start(func(o *agent.Options) { o.StatusGracePeriod = grace })
	unreported := f.work("unreported", "{"+manifests(custom("Wheel", "b"))+"}")
	f.ready(unreported)
	live = f.manifest(custom("Wheel", "b"))
	require.NoError(t, f.member.Get(t.Context(), client.ObjectKeyFromObject(live), live))
	became := condition(unreported, v1alpha1.ConditionAvailable).LastTransitionTime
	require.GreaterOrEqual(t, became.Sub(live.GetCreationTimestamp().Time), grace)
	f.patch(live, "metadata: {labels: {edited: 'true'}}")
	f.awaitNoWrites()
	f.ready(unreported)
	require.NoError(t, f.Client.Get(t.Context(), client.ObjectKeyFromObject(unreported), unreported))
	require.True(t, isTrue(unreported, v1alpha1.ConditionAvailable), "the grace period does not start again")
}
