package main

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestRollout_Pending(t *testing.T) {
	deployment := func(change func(*appsv1.Deployment)) *appsv1.Deployment {
		d := &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Generation: 2},
			Spec:       appsv1.DeploymentSpec{Replicas: new(int32(2))},
			Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2},
		}
		change(d)
		return d
	}
	for name, test := range map[string]struct {
		change  func(*appsv1.Deployment)
		pending string
	}{
		"available": {func(*appsv1.Deployment) {}, ""},
		"not observed": {
			func(d *appsv1.Deployment) { d.Status.ObservedGeneration = 1 },
			"the Deployment controller has not observed the change",
		},
		"not updated":  {func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 1 }, "1 of 2 replicas are updated"},
		"old replicas": {func(d *appsv1.Deployment) { d.Status.Replicas = 3 }, "1 old replicas are pending termination"},
		"unavailable":  {func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }, "0 of 2 replicas are available"},
		"one replica by default": {func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas = nil, 1, 1, 0
		}, "0 of 1 replicas are available"},
		"no pods": {func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: "quota exceeded"},
			}
		}, "quota exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			done, pending := rollout(deployment(test.change))
			require.Equal(t, test.pending, pending)
			require.Equal(t, test.pending == "", done)
		})
	}
}

func TestPodProblem(t *testing.T) {
	pod := func(status corev1.PodStatus) corev1.Pod {
		return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "hub-1"}, Status: status}
	}
	waiting := func(reason, message string) corev1.Pod {
		return pod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}},
		}})
	}
	for name, test := range map[string]struct {
		pods []corev1.Pod
		want string
	}{
		"no pods":            {nil, ""},
		"image being pulled": {[]corev1.Pod{waiting("ContainerCreating", "")}, ""},
		"no image": {
			[]corev1.Pod{waiting("ContainerCreating", ""), waiting("ImagePullBackOff", "image not found")},
			"Pod hub-1: ImagePullBackOff: image not found",
		},
		"ended": {[]corev1.Pod{pod(corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Reason: "Error"}}},
		}})}, "Pod hub-1: the container ended with code 2: Error"},
		"not scheduled": {[]corev1.Pod{pod(corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "no nodes"},
		}})}, "Pod hub-1: Unschedulable: no nodes"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, podProblem(test.pods)) })
	}
}

func TestUsage_Deploy(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"init", "--manifests"}, "--manifests requires --image"},
		{[]string{"init", "--dry-run"}, "--dry-run requires --image"},
		{[]string{"init", "--component", "monitoring"}, "--component requires --image"},
		{[]string{"init", "--argument", "--push"}, "--argument requires --image"},
		{[]string{"init", "--image", "hub:v1", "--agent-image", "agent:v1"}, "--agent-image requires --print-register"},
		{[]string{"token", "create", "--agent-image", "agent:v1"}, "--agent-image requires --print-register"},
		{[]string{"init", "--print-register-command"}, "--print-register-command requires --image"},
		{[]string{"init", "--image", "hub:v1", "--manifests", "--dry-run"}, "--manifests and --dry-run"},
		{[]string{"init", "--image", "hub:v1", "--manifests", "--component", "bogus"},
			"must be one of bootstrap-tokens, cluster-api, cluster-profiles, monitoring"},
		{[]string{"init", "--image", "hub v1", "--manifests"}, "--image"},
		{[]string{"register", "--cluster-name", "east"}, "require --image"},
		{[]string{"register", "--method", "csr"}, "require --image"},
		{[]string{"register", "--mode", "hosted"}, "require --image"},
		{[]string{"register", "--image", "agent:v1", "--mode", "sidecar"}, "--mode must be default, singleton or hosted"},
		{[]string{"register", "--image", "agent:v1", "--mode", "hosted"}, "--cluster-name"},
		{[]string{"register", "--image", "agent:v1", "--mode", "hosted", "--cluster-name", "a"}, "--member-kubeconfig"},
		{[]string{"register", "--image", "agent:v1", "--hosting-context", "a"}, "--mode hosted"},
		{[]string{"register"}, "--method identity with --hub-kubeconfig and --cluster-name"},
		{[]string{"register", "--image", "agent:v1", "--method", "identity"}, "--hub-kubeconfig"},
		{[]string{"register", "--image", "agent:v1", "--hub-kubeconfig", "f"}, "--method identity"},
		{[]string{"register", "--proxy-ca-file", "f"}, "--proxy-url"},
		{[]string{"register", "--keep-bootstrap", "--join-file", "f"}, "--image"},
		{[]string{"register", "--join-file", "f", "--force-internal-endpoint-lookup"}, "--token"},
		{[]string{"register", "--image", "agent:v1", "--manifests", "--join-file", "f", "--ca-file", "/no"}, "--ca-file"},
		{[]string{"register", "--image", "agent:v1", "--proxy-url", "proxy", "--join-file", "f"}, "--proxy-url"},
		{[]string{"register", "--image", "agent:v1", "--method", "password"}, "token, csr, identity"},
		{[]string{"register", "--image", "agent:v1", "--hub", "west"}, "--hub"},
		{[]string{"register", "--image", "agent:v1", "--works=false", "--apply-anything"},
			"--apply-anything requires --works"},
		{[]string{"upgrade", "hub"}, "image"},
		{[]string{"upgrade", "agent", "--image", "agent:v2"}, "--member-context"},
	} {
		code, out, errs := call(t, "", test.args...)
		require.Equal(t, exitUsage, code, "%v: %s", test.args, errs)
		require.Empty(t, out)
		require.Contains(t, errs, test.want)
	}
}

// documentsOf parses a YAML stream.
func documentsOf(t *testing.T, stream string) (documents []metav1.PartialObjectMetadata) {
	t.Helper()
	for document := range strings.SplitSeq(strings.TrimPrefix(stream, "---\n"), "\n---\n") {
		var object metav1.PartialObjectMetadata
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		require.NotEmpty(t, object.Kind)
		documents = append(documents, object)
	}
	return documents
}

func TestManifests_NeedNoCluster(t *testing.T) {
	code, out, errs := call(t, "", "init", "--kubeconfig", "/no/such/file", "--image", "hub:v1", "--manifests",
		"--server", "https://hub.example.com:6443", "--component", "users-place", "--argument", "--install-image=agent:v1",
		"--argument", "--namespace-quota=count/secrets=1,count/configmaps=2")
	require.Zero(t, code, errs)
	require.NotEmpty(t, documentsOf(t, out))
	require.Contains(t, out, "image: hub:v1")
	for _, argument := range []string{"--api-server-url=https://hub.example.com:6443", "--install-image=agent:v1",
		"--namespace-quota=count/secrets=1,count/configmaps=2"} {
		require.Contains(t, out, "- "+argument+"\n")
	}

	code, out, errs = call(t, "", "register", "--kubeconfig", "/no/such/file", "--image", "agent:v1", "--manifests",
		"--cluster-name", "east", "--labels", "region=eu,tier=gold", "--namespace", "fleet", "--apply-anything")
	require.Zero(t, code, errs)
	kinds := map[string]bool{}
	for _, object := range documentsOf(t, out) {
		kinds[object.Kind] = true
		require.NotEqual(t, "muster-system", object.Namespace)
	}
	require.True(t, kinds["Deployment"] && kinds["CustomResourceDefinition"], "%v", kinds)
	require.False(t, kinds["Secret"], "no join token was given")
	for _, argument := range []string{"--works", "--name=east", "--label=region=eu", "--label=tier=gold"} {
		require.Contains(t, out, "- "+argument+"\n")
	}
}

// TestDeploy_Hub installs, upgrades and removes a hub on a plane with simulated nodes: the Pods become ready, and no
// containers run.
func TestDeploy_Hub(t *testing.T) {
	plane := deployedHub.ForTest(t)
	kubeconfig := plane.Kubeconfig()
	c, err := newClient(plane.Config())
	require.NoError(t, err)
	musterctl := func(args ...string) string {
		t.Helper()
		code, out, errs := call(t, "", append(args, "--kubeconfig", kubeconfig)...)
		require.Zero(t, code, errs)
		return out
	}
	actions := func(out string) map[string]int {
		var results []applied
		require.NoError(t, json.Unmarshal([]byte(out), &results))
		count := map[string]int{}
		for _, result := range results {
			count[result.Action]++
		}
		return count
	}
	program := func() *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "muster-system", Name: hubName}, d))
		return d
	}
	code, _, errs := call(t, "", "init", "--kubeconfig", kubeconfig, "--image", "hub:v1", "--dry-run",
		"--component", "monitoring")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, "does not know monitoring.coreos.com/v1, Kind=ServiceMonitor")

	server := []string{"--server", plane.Config().Host}
	initArgs := append([]string{"init", "--image", "hub:v1", "--component", "users-place", "-o", "json"}, server...)

	dry := actions(musterctl(append(initArgs, "--dry-run")...))
	require.NotZero(t, dry[actionCreate])
	require.Zero(t, dry[actionUpdate]+dry[actionUnchanged])
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKey{Name: "muster-system"}, &corev1.Namespace{})))

	first := actions(musterctl(initArgs...))
	require.Equal(t, dry[actionCreate], first[actionCreate]+first[actionUpdate]+first[actionUnchanged])
	require.Equal(t, "hub:v1", program().Spec.Template.Spec.Containers[0].Image)
	info := client.ObjectKey{Namespace: "kube-public", Name: "cluster-info"}
	require.NoError(t, c.Get(t.Context(), info, &corev1.ConfigMap{}))
	again := actions(musterctl(initArgs...))
	require.Zero(t, again[actionCreate]+again[actionUpdate], "the same command changes nothing: %v", again)
	require.NotZero(t, again[actionUnchanged])

	// Another tool has set the number of replicas. An upgrade does not change the number unless it is forced.
	scaled := program()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))
	require.NoError(t, c.Patch(t.Context(), scaled, patch, client.FieldOwner("scaler")))
	code, _, errs = call(t, "", "upgrade", "hub", "--image", "hub:v2", "--kubeconfig", kubeconfig)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, "--force-conflicts")
	require.Equal(t, int32(1), *program().Spec.Replicas)
	require.Equal(t, "hub:v1", program().Spec.Template.Spec.Containers[0].Image)
	musterctl("upgrade", "hub", "--image", "hub:v2", "--force-conflicts")
	upgraded := program()
	container := upgraded.Spec.Template.Spec.Containers[0]
	require.Equal(t, "hub:v2", container.Image)
	require.Contains(t, container.Args, "--api-server-url="+plane.Config().Host, "arguments stay")
	require.Equal(t, int32(2), *upgraded.Spec.Replicas)
	components, err := installedComponents(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, []string{"users-place"}, components)

	// An image that does not exist: the error contains the state of the rollout. The program before it keeps running.
	code, _, errs = call(t, "", "upgrade", "hub", "--image", "hub:v3", "--timeout", "1ns", "--kubeconfig", kubeconfig)
	require.Equal(t, exitTimeout, code, errs)
	require.Contains(t, errs, "Deployment muster-system/muster-hub")

	member := &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "east"}, Spec: v1alpha1.MemberClusterSpec{ClusterID: "0a1b"},
	}
	require.NoError(t, c.Create(t.Context(), member))
	code, _, errs = call(t, "", "clean", "hub", "--yes", "--kubeconfig", kubeconfig)
	require.Equal(t, exitPreflight, code)
	require.Contains(t, errs, "east")
	program()
	require.NoError(t, c.Delete(t.Context(), member))

	// An object of another tool stays.
	role := &rbacv1.ClusterRole{}
	for _, object := range hubRoles(t, c) {
		role = &object
	}
	role.ManagedFields = nil
	require.NoError(t, c.Patch(t.Context(), role, client.RawPatch("application/json-patch+json",
		[]byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`))))
	require.NotZero(t, actions(musterctl("clean", "hub", "--dry-run", "-o", "json"))[actionDelete])
	program()
	code, _, errs = call(t, "n\n", "clean", "hub", "--kubeconfig", kubeconfig)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, "nothing was changed")
	cleaned := actions(musterctl("clean", "hub", "--yes", "-o", "json"))
	require.Equal(t, 1, cleaned[actionKeep])
	key := client.ObjectKey{Namespace: "muster-system", Name: hubName}
	require.True(t, apierrors.IsNotFound(c.Get(t.Context(), key, &appsv1.Deployment{})))
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(role), role), "another tool manages the ClusterRole")
	require.NoError(t, c.List(t.Context(), &v1alpha1.MemberClusterList{}), "the definitions stay")
	require.Equal(t, 0, actions(musterctl("clean", "hub", "--yes", "-o", "json"))[actionDelete])
}

// hubRoles returns the ClusterRoles of the hub program.
func hubRoles(t *testing.T, c client.Client) []rbacv1.ClusterRole {
	t.Helper()
	roles := &rbacv1.ClusterRoleList{}
	require.NoError(t, c.List(t.Context(), roles, client.MatchingLabels{"app.kubernetes.io/name": hubName}))
	require.NotEmpty(t, roles.Items)
	return roles.Items
}

// joinFile returns a join file of a hub that cannot be reached.
func joinFile(ca []byte) []byte {
	return []byte(`apiVersion: membership.muster.dev/v1alpha1
kind: Bootstrap
server: https://127.0.0.1:1
ca: |
  ` + strings.ReplaceAll(strings.TrimSpace(string(ca)), "\n", "\n  ") + `
namespace: muster-registration
tokenName: edge
token: abc
key: ` + strings.Repeat("A", 43) + `=
`)
}

// TestDeploy_Agent deploys an agent whose Pod is simulated, so the agent does not join.
func TestDeploy_Agent(t *testing.T) {
	plane := deployedHub.ForTest(t)
	kubeconfig := plane.Kubeconfig()
	c, err := newClient(plane.Config())
	require.NoError(t, err)
	join := filepath.Join(t.TempDir(), "join.yaml")
	require.NoError(t, writeSecretFile(join, joinFile(plane.Config().CAData)))
	register := []string{
		"register", "--join-file", join, "--unchecked", "--namespace", "fleet", "--member-kubeconfig", kubeconfig,
	}
	program := func() *appsv1.Deployment {
		t.Helper()
		d := &appsv1.Deployment{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: agentName}, d))
		return d
	}
	secret := func() error {
		return c.Get(t.Context(), client.ObjectKey{Namespace: "fleet", Name: "muster-bootstrap"}, &corev1.Secret{})
	}

	code, out, errs := call(t, "", append(register, "--image", "agent:v1", "--dry-run")...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "Deployment")
	require.True(t, apierrors.IsNotFound(secret()), "a dry run changes nothing")

	code, _, errs = call(t, "", append(register, "--image", "agent:v1", "--cluster-name", "east", "--wait", "3s")...)
	require.Equal(t, exitTimeout, code, errs)
	require.NoError(t, secret())
	arguments := []string{"--works", "--health-probe-bind-address=:8081", "--name=east"}
	require.Equal(t, arguments, program().Spec.Template.Spec.Containers[0].Args)

	upgrade := []string{"upgrade", "agent", "--image", "agent:v2", "--member-kubeconfig", kubeconfig, "--namespace"}
	code, _, errs = call(t, "", append(upgrade, "fleet")...)
	require.Zero(t, code, errs)
	require.Equal(t, "agent:v2", program().Spec.Template.Spec.Containers[0].Image)
	require.Contains(t, program().Spec.Template.Spec.Containers[0].Args, "--name=east", "arguments stay")

	code, _, errs = call(t, "", append(upgrade, "default")...)
	require.Equal(t, exitFailed, code, errs)
	require.Contains(t, errs, "register --image")
}

// TestDeploy_HostedAgent deploys the agent of one cluster on another one.
func TestDeploy_HostedAgent(t *testing.T) {
	hosting, member := deployedHub.ForTest(t), east.ForTest(t)
	onHosting, err := newClient(hosting.Config())
	require.NoError(t, err)
	onMember, err := newClient(member.Config())
	require.NoError(t, err)
	t.Cleanup(func() {
		left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}}
		require.NoError(t, client.IgnoreNotFound(onMember.Delete(context.Background(), left)))
		require.True(t, eventually(func() bool {
			return apierrors.IsNotFound(onMember.Get(context.Background(), client.ObjectKeyFromObject(left), left))
		}), "the member is shared: want no namespace of the agent, got conditions %v", left.Status.Conditions)
	})
	folder := t.TempDir()
	join, ca := filepath.Join(folder, "join.yaml"), filepath.Join(folder, "ca.crt")
	require.NoError(t, writeSecretFile(join, joinFile(hosting.Config().CAData)))
	require.NoError(t, writeSecretFile(ca, member.Config().CAData))
	register := []string{
		"register", "--join-file", join, "--unchecked", "--image", "agent:v1", "--cluster-name", "west", "--mode", "hosted",
		"--kubeconfig", hosting.Kubeconfig(), "--member-kubeconfig", member.Kubeconfig(), "--apply-anything",
		"--method", "identity", "--hub-kubeconfig", hosting.Kubeconfig(), "--server", "https://hub.example.com:6443",
		"--proxy-url", "http://127.0.0.1:9", "--proxy-ca-file", ca, "--keep-bootstrap",
	}
	code, out, errs := call(t, "", append(register, "--dry-run")...)
	require.Zero(t, code, errs)
	require.Contains(t, out, "muster-member-kubeconfig")
	namespace := "muster-member-west"
	err = onHosting.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	require.True(t, apierrors.IsNotFound(err))

	code, _, errs = call(t, "", append(register, "--wait", "2s")...)
	require.Equal(t, exitTimeout, code, errs)
	secret := func(name, key string) string {
		t.Helper()
		var s corev1.Secret
		require.NoError(t, onHosting.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &s))
		return string(s.Data[key])
	}
	require.Contains(t, secret("muster-member-kubeconfig", "value"), member.Config().Host)
	require.Contains(t, secret("muster-hub-kubeconfig", "value"), hosting.Config().Host)
	bootstrap, err := registration.ParseBootstrap([]byte(secret("muster-bootstrap", "join.yaml")))
	require.NoError(t, err)
	require.Equal(t, "https://hub.example.com:6443", bootstrap.Server)
	require.Contains(t, string(bootstrap.CA), strings.TrimSpace(string(hosting.Config().CAData)))
	require.Contains(t, string(bootstrap.CA), strings.TrimSpace(string(member.Config().CAData)), "the CA of the proxy")

	program := func() (corev1.PodSpec, corev1.Container) {
		t.Helper()
		d := &appsv1.Deployment{}
		require.NoError(t, onHosting.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: agentName}, d))
		return d.Spec.Template.Spec, d.Spec.Template.Spec.Containers[0]
	}
	check := func(image string) {
		t.Helper()
		pod, container := program()
		require.Equal(t, image, container.Image)
		require.ElementsMatch(t, []string{
			"--works", "--health-probe-bind-address=:8081", "--member-kubeconfig=/etc/muster/member/value", "--name=west",
			"--method=identity", "--proxy-url=http://127.0.0.1:9", "--hub-kubeconfig=/etc/muster/hub/value",
			"--keep-bootstrap",
		}, container.Args)
		mounts := map[string]string{}
		for _, mount := range container.VolumeMounts {
			mounts[mount.Name] = mount.MountPath
		}
		require.Equal(t, map[string]string{"member": "/etc/muster/member", "hub": "/etc/muster/hub"}, mounts)
		require.Len(t, pod.Volumes, 2)
	}
	check("agent:v1")
	binding := &rbacv1.ClusterRoleBinding{}
	require.NoError(t, onMember.Get(t.Context(), client.ObjectKey{Name: "muster-agent-apply-anything"}, binding))
	here := &corev1.Namespace{}
	require.NoError(t, onMember.Get(t.Context(), client.ObjectKey{Name: binding.Subjects[0].Namespace}, here))

	code, _, errs = call(t, "", "upgrade", "agent", "--image", "agent:v2", "--member-kubeconfig", hosting.Kubeconfig(),
		"--namespace", namespace)
	require.Zero(t, code, errs)
	check("agent:v2")
}

// TestKubeconfigSecret_NoPrograms checks that a kubeconfig with an exec credential plugin is rejected.
func TestKubeconfigSecret_NoPrograms(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, writeSecretFile(file, []byte(`apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://a"}}]
users: [{name: a, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: login}}}]
`)))
	_, err := kubeconfigSecret("member-kubeconfig", file, "", "n", "s")
	require.ErrorContains(t, err, "--member-kubeconfig")
	require.Equal(t, exitUsage, codeOf(err))
	_, err = kubeconfigSecret("member-kubeconfig", file, "b", "n", "s")
	require.Equal(t, exitUsage, codeOf(err))
}

// TestNoteRollout checks that the reason why an agent has not joined is printed.
func TestNoteRollout(t *testing.T) {
	plane := deployedHub.ForTest(t)
	c, err := newClient(plane.Config())
	require.NoError(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "unschedulable"}}
	require.NoError(t, c.Create(t.Context(), namespace))
	labels := map[string]string{"app": "agent"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: agentName},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					NodeSelector: map[string]string{"no": "such"},
					Containers:   []corev1.Container{{Name: "a", Image: "a"}},
				},
			},
		},
	}
	require.NoError(t, c.Create(t.Context(), deployment))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err = waitForRollout(ctx, c, client.ObjectKeyFromObject(deployment), 20*time.Second, func(admin.Step) {})
	require.ErrorContains(t, err, "Unschedulable")
	require.Equal(t, exitTimeout, codeOf(err))
	var note bytes.Buffer
	a := &app{streams: streams{err: &note}}
	a.noteRollout(ctx, c, namespace.Name, err)
	require.Contains(t, note.String(), "Unschedulable")
}
