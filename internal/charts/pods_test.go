//go:build linux

package charts

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestPods_Install installs both charts on a cluster whose pods run: hub and agent have the credentials of their pods,
// are probed by the kubelet, elect leaders, are upgraded, and survive a restart of the node. The hub manages its own
// cluster.
func TestPods_Install(t *testing.T) {
	if !isolated(t) {
		return
	}
	plane, err := localplane.Start(t.Context(), localplane.Options{Name: "pods"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, plane.Stop()) })
	config := plane.Config()
	c := newClient(t, config)
	n := startNode(t, plane, c)
	n.importImage("hub", "localhost/muster-hub:1", "localhost/muster-hub:2")
	n.importImage("agent", "localhost/muster-agent:1", "localhost/muster-agent:2")

	image := func(program, tag string) values {
		return values{"repository": "localhost/" + program, "tag": tag, "pullPolicy": "Never"}
	}
	hub, agent := newHelm(t, config, hubChart), newHelm(t, config, agentChart)
	hubValues := values{
		"apiServerURL": "https://" + serviceIP, "apiServerCA": string(config.CAData), "image": image(hubChart, "1"),
	}
	hub.install(hubValues)
	n.waitForAvailable(c, hubChart, "1")
	secret := waitForSecret(t, c, &v1alpha1.JoinToken{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "edge"},
		Spec:       v1alpha1.JoinTokenSpec{AutoAccept: true},
	})
	agentValues, err := chartutil.ReadValues(secret.Data[registration.ValuesKey])
	require.NoError(t, err)
	agentValues["image"], agentValues["applyAnything"] = image(agentChart, "1"), true
	agent.install(agentValues)
	n.waitForAvailable(c, agentChart, "1")
	cluster := waitForMember(t, c, v1alpha1.ConditionHealthy, "")
	apply := func(name string) *corev1.ConfigMap {
		t.Helper()
		require.NoError(t, c.Create(t.Context(), &workv1alpha1.Work{
			ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: name},
			Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
				Raw: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":%q}}`,
					name),
			}}}},
		}))
		applied := &corev1.ConfigMap{}
		mustertest.Eventually(t, timeout, "Work "+name+" is applied", func() error {
			return c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, applied)
		})
		return applied
	}
	first := apply("first")

	// The pod that leads ends, and the other replica of the hub takes over.
	holder := n.leader(c)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: holder}}
	require.NoError(t, c.Delete(t.Context(), pod))
	mustertest.Eventually(t, timeout, "another replica leads", func() error {
		if now := n.leader(c); now == holder {
			return errors.New(now + " leads")
		}
		return nil
	})

	// An upgrade replaces the pods one after the other.
	hubValues["image"], agentValues["image"] = image(hubChart, "2"), image(agentChart, "2")
	hub.upgrade(hubValues)
	agent.upgrade(agentValues)
	n.waitForAvailable(c, hubChart, "2")
	n.waitForAvailable(c, agentChart, "2")
	second := apply("second")

	// The node restarts: all its processes end at once.
	restarts := n.restarts(c)
	n.crash()
	n.startContainerd()
	n.startKubelet()
	mustertest.Eventually(t, timeout, "the containers were started again", func() error {
		for name, before := range restarts {
			if now := n.restarts(c); now[name] <= before {
				return fmt.Errorf("pod %s was restarted %d times, before %d", name, now[name], before)
			}
		}
		return nil
	})
	n.waitForAvailable(c, hubChart, "2")
	n.waitForAvailable(c, agentChart, "2")
	apply("third")
	again := waitForMember(t, c, v1alpha1.ConditionHealthy, cluster.Name)
	require.Equal(t, cluster.UID, again.UID)
	for _, applied := range []*corev1.ConfigMap{first, second} {
		now := &corev1.ConfigMap{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(applied), now))
		require.Equal(t, applied.UID, now.UID)
	}
}

// waitForAvailable waits until all pods of a Deployment have an image and are ready.
func (n *node) waitForAvailable(c client.Client, name, tag string) {
	n.t.Helper()
	mustertest.Eventually(n.t, timeout, name+" is available", func() error {
		deployment := &appsv1.Deployment{}
		if err := c.Get(n.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
			return err
		}
		pods := &corev1.PodList{}
		if err := c.List(n.t.Context(), pods, client.InNamespace(namespace),
			client.MatchingLabels(deployment.Spec.Selector.MatchLabels)); err != nil {
			return err
		}
		for i := range pods.Items {
			pod := &pods.Items[i]
			if !strings.HasSuffix(pod.Spec.Containers[0].Image, ":"+tag) {
				return fmt.Errorf("pod %s has image %s", pod.Name, pod.Spec.Containers[0].Image)
			}
			if statuses := pod.Status.ContainerStatuses; len(statuses) == 0 || !statuses[0].Ready {
				return fmt.Errorf("pod %s is not ready: %+v; its log:\n%s", pod.Name, statuses, n.logs(pod))
			}
		}
		if want := int(*deployment.Spec.Replicas); len(pods.Items) != want {
			return fmt.Errorf("the Deployment has %d pods, want %d", len(pods.Items), want)
		}
		return nil
	})
}

// logs returns the end of the log of the pod's container.
func (n *node) logs(pod *corev1.Pod) string {
	pattern := fmt.Sprintf("%s/%s_%s_%s/*/*.log", n.path("logs"), pod.Namespace, pod.Name, pod.UID)
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		return "the container has no log"
	}
	return tail(files[len(files)-1])
}

// leader returns the name of the pod of the hub that leads.
func (n *node) leader(c client.Client) string {
	n.t.Helper()
	leases := &coordinationv1.LeaseList{}
	require.NoError(n.t, c.List(n.t.Context(), leases, client.InNamespace(namespace)))
	for i := range leases.Items {
		holder := leases.Items[i].Spec.HolderIdentity
		if holder == nil {
			continue
		}
		if pod, _, _ := strings.Cut(*holder, "_"); strings.HasPrefix(pod, hubChart) {
			return pod
		}
	}
	return ""
}

// restarts returns the number of restarts of each pod's container.
func (n *node) restarts(c client.Client) map[string]int32 {
	n.t.Helper()
	pods := &corev1.PodList{}
	require.NoError(n.t, c.List(n.t.Context(), pods, client.InNamespace(namespace)))
	restarts := map[string]int32{}
	for i := range pods.Items {
		if statuses := pods.Items[i].Status.ContainerStatuses; len(statuses) > 0 {
			restarts[pods.Items[i].Name] = statuses[0].RestartCount
		}
	}
	return restarts
}
