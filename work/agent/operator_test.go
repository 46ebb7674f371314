package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/work/v1alpha1"
)

// TestCustomResourceDoesNotBlockItsOperator has a Work with an operator, its definition and a custom resource that is not ready before the
// operator runs. With default waves the operator comes; an explicit wave is waited for.
func TestCustomResourceDoesNotBlockItsOperator(t *testing.T) {
	t.Parallel()
	for _, explicit := range []bool{false, true} {
		t.Run(fmt.Sprint(explicit), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			group := w.name + ".example.com"
			definition := strings.ReplaceAll(`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: wheels.GROUP}, spec: {group: GROUP, scope: Namespaced,
  names: {plural: wheels, kind: Wheel}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`, "GROUP", group)
			wheel := "{apiVersion: " + group + "/v1, kind: Wheel, metadata: {name: a, namespace: NS}, spec: {size: 3}}"
			options := "{select: {kind: Wheel}, readiness: {cel: 'has(object.status.ready)'}"
			if explicit {
				options += ", wave: 30"
			}
			work := w.work("operator", "{"+manifests(definition, wheel, strings.Replace(deployment, "replicas: 2", "replicas: 0", 1))+
				", waves: {waitForReadiness: true}, manifestOptions: ["+options+"}]}")
			if explicit {
				w.eventually(func() error {
					if err := w.hub.Get(t.Context(), client.ObjectKeyFromObject(work), work); err != nil {
						return err
					}
					if c := condition(work, v1alpha1.ConditionApplied); c == nil || c.Reason != v1alpha1.ReasonPending {
						return fmt.Errorf("no wave is waited for:\n%s", render(work.Status))
					}
					return nil
				})
				<-time.After(time.Second)
				require.Nil(t, w.read("Deployment", "web"))
				return
			}
			w.eventually(func() error {
				if w.read("Deployment", "web") == nil {
					return fmt.Errorf("the operator is not there")
				}
				return nil
			})
			w.patch(w.manifest(wheel), "{status: {ready: true}}")
			w.ready(work)
		})
	}
}
