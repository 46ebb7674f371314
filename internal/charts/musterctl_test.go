package charts

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// The nodes of these planes are simulated, so that Deployments become available.
var (
	initPlane     = localplane.Shared{Options: localplane.Options{Name: "init-hub", Nodes: 1}}
	registerPlane = localplane.Shared{Options: localplane.Options{Name: "register-member", Nodes: 1}}
)

// TestMusterctl_DeploysPrograms installs a hub with init, registers a member with register, applies a Work, upgrades
// both programs and removes everything. The programs run with the ServiceAccounts and arguments that musterctl has
// deployed.
func TestMusterctl_DeploysPrograms(t *testing.T) {
	hub, member := initPlane.ForTest(t), registerPlane.ForTest(t)
	onHub, onMember := newClient(t, hub.Config()), newClient(t, member.Config())
	binary := build(t, "musterctl")
	musterctl := func(args ...string) string {
		t.Helper()
		command := exec.CommandContext(t.Context(), binary, args...)
		var output, errs bytes.Buffer
		command.Stdout, command.Stderr = &output, &errs
		command.Env = append(os.Environ(), "KUBECONFIG="+hub.Kubeconfig())
		require.NoError(t, command.Run(), "%v: %s", args, errs.String())
		return output.String()
	}
	deployment := func(c client.Client, name string) *unstructured.Unstructured {
		t.Helper()
		d := &appsv1.Deployment{}
		require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, d))
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		require.NoError(t, err)
		return &unstructured.Unstructured{Object: object}
	}

	musterctl("init", "--image", "hub:v1", "--server", hub.Config().Host)
	hubPod := &pod{t: t, binary: build(t, "hub"), admin: hub.Config()}
	hubPod.start(deployment(onHub, hubChart))

	join := filepath.Join(t.TempDir(), "join.yaml")
	musterctl("token", "create", "edge", "--auto-accept", "--allow-label", "region", "--join-file", join)
	content, err := os.ReadFile(join)
	require.NoError(t, err)
	require.Equal(t, "musterctl register --join-file - <<'JOIN'\n"+string(content)+"JOIN\n",
		musterctl("get", "token", "edge"))
	register := []string{
		"register", "--join-file", join, "--member-kubeconfig", member.Kubeconfig(), "--image", "agent:v1",
		"--cluster-name", "east", "--labels", "region=eu", "--apply-anything",
	}
	musterctl(register...)
	agentBinary := build(t, "agent")
	agentPod := &pod{t: t, binary: agentBinary, admin: member.Config()}
	agentPod.start(deployment(onMember, agentChart))
	musterctl(append(register, "--wait", "3m")...)
	cluster := waitForMemberCondition(t, onHub, "east", v1alpha1.ConditionJoined)
	require.Equal(t, "eu", cluster.Labels["region"])

	require.NoError(t, onHub.Create(t.Context(), &workv1alpha1.Work{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Status.Namespace, Name: "settings"},
		Spec: workv1alpha1.WorkSpec{Manifests: []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{
			Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"settings"},
				"data":{"a":"b"}}`),
		}}}},
	}))
	settings := &corev1.ConfigMap{}
	mustertest.Eventually(t, timeout, "the Work is applied", func() error {
		return onMember.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "settings"}, settings)
	})

	west := hostedMember(t, musterctl, agentBinary, hub, member)

	// An upgrade keeps the arguments, the permissions and the member. The new Pods have them.
	hubPod.stop()
	agentPod.stop()
	musterctl("upgrade", "hub", "--image", "hub:v2")
	musterctl("upgrade", "agent", "--image", "agent:v2", "--member-kubeconfig", member.Kubeconfig())
	require.Contains(t, containerOf(t, deployment(onMember, agentChart)).Args, "--label=region=eu")
	require.Equal(t, "agent:v2", containerOf(t, deployment(onMember, agentChart)).Image)
	hubPod.start(deployment(onHub, hubChart))
	agentPod.start(deployment(onMember, agentChart))
	again := waitForMemberCondition(t, onHub, "east", v1alpha1.ConditionHealthy)
	west()
	require.Equal(t, cluster.UID, again.UID)
	requireKept(t, onMember, settings)

	cleanAgent := []string{"clean", "agent", "--yes", "--member-kubeconfig", member.Kubeconfig()}
	refused, err := exec.CommandContext(t.Context(), binary, cleanAgent...).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(refused), "the cluster is member east of the hub at "+hub.Config().Host)

	agentPod.mayExit = true // The agent ends when its member has left.
	musterctl("unjoin", "east")
	require.True(t, apierrors.IsNotFound(onMember.Get(t.Context(), client.ObjectKeyFromObject(settings), settings)),
		"the user has requested the leave, which deletes the objects of Works")
	require.NotContains(t, musterctl(cleanAgent...), " keep")
	agentPod.stop()
	key := client.ObjectKey{Namespace: namespace, Name: agentChart}
	require.True(t, apierrors.IsNotFound(onMember.Get(t.Context(), key, &appsv1.Deployment{})))
	musterctl("token", "delete", "edge")
	mustertest.Eventually(t, timeout, "the JoinToken is deleted", func() error {
		token := &v1alpha1.JoinToken{ObjectMeta: metav1.ObjectMeta{Namespace: membership.RegistrationNamespace, Name: "edge"}}
		if err := onHub.Get(t.Context(), client.ObjectKeyFromObject(token), token); !apierrors.IsNotFound(err) {
			return fmt.Errorf("JoinToken edge exists: %w", err)
		}
		return nil
	})
	hubPod.stop()
	require.NotContains(t, musterctl("clean", "hub", "--yes"), " keep")
	require.Equal(t, "KIND   NAMESPACE   NAME   ACTION\n", musterctl("clean", "hub", "--yes"), "nothing is left")
}

// waitForMemberCondition waits until a MemberCluster has a condition.
func waitForMemberCondition(t *testing.T, c client.Client, name, condition string) *v1alpha1.MemberCluster {
	t.Helper()
	cluster := &v1alpha1.MemberCluster{}
	mustertest.Eventually(t, timeout, fmt.Sprintf("member %s is %s", name, condition), func() error {
		if err := c.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, condition) {
			return fmt.Errorf("MemberCluster %s: %+v", name, cluster.Status.Conditions)
		}
		return nil
	})
	return cluster
}

// hostedMember lets the cluster of the hub join as a second member, without a JoinToken. Its agent runs on the other
// cluster. The credential of the agent for the hub is that of a ServiceAccount, which spec.identity names. remove lets
// the member leave and removes the agent.
func hostedMember(t *testing.T, musterctl func(...string) string, agentBinary string, hub, hosting *localplane.Plane,
) (remove func()) {
	t.Helper()
	onHub, onHosting := newClient(t, hub.Config()), newClient(t, hosting.Config())
	const name, space = "west", "muster-member-west"
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: subject.Namespace, Name: name}}
	require.NoError(t, onHub.Create(t.Context(), account))
	request := &authenticationv1.TokenRequest{}
	require.NoError(t, onHub.SubResource("token").Create(t.Context(), account, request))
	own := rest.AnonymousClientConfig(hub.Config())
	own.BearerToken = request.Status.Token
	credential, err := localplane.Kubeconfig(own)
	require.NoError(t, err)
	folder := t.TempDir()
	kubeconfig := filepath.Join(folder, "hub.kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, credential, 0o600))
	require.NoError(t, onHub.Create(t.Context(), &v1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MemberClusterSpec{Identity: &subject},
	}))

	musterctl("register", "--image", "agent:v1", "--cluster-name", name, "--apply-anything",
		"--mode", "hosted", "--member-kubeconfig", hub.Kubeconfig(), "--hosting-kubeconfig", hosting.Kubeconfig(),
		"--method", "identity", "--hub-kubeconfig", kubeconfig)
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	key := client.ObjectKey{Namespace: space, Name: agentChart}
	require.NoError(t, onHosting.Get(t.Context(), key, deployment))
	agentPod := &pod{t: t, binary: agentBinary, admin: hosting.Config()}
	agentPod.start(deployment)
	mustertest.Eventually(t, timeout, "the agent has requested to join", func() error {
		cluster := &v1alpha1.MemberCluster{}
		if err := onHub.Get(t.Context(), client.ObjectKey{Name: name}, cluster); err != nil {
			return err
		}
		if cluster.Spec.ClusterID == "" {
			return fmt.Errorf("MemberCluster %s has no cluster ID", name)
		}
		return nil
	})
	musterctl("accept", name, "--wait", "3m")
	cluster := waitForMemberCondition(t, onHub, name, v1alpha1.ConditionJoined)
	require.Equal(t, v1alpha1.CredentialIdentity, cluster.Spec.Credential)

	return func() {
		agentPod.mayExit = true
		musterctl("unjoin", name)
		agentPod.stop()
		require.NotContains(t, musterctl("clean", "agent", "--yes", "--member-kubeconfig", hosting.Kubeconfig(),
			"--namespace", space), " keep")
		require.True(t, apierrors.IsNotFound(onHosting.Get(t.Context(), key, &appsv1.Deployment{})))
		east := client.ObjectKey{Namespace: namespace, Name: agentChart}
		require.NoError(t, onHosting.Get(t.Context(), east, &appsv1.Deployment{}), "the agent of another member stays")
		role := &rbacv1.ClusterRoleBinding{}
		require.NoError(t, onHosting.Get(t.Context(), client.ObjectKey{Name: "muster-agent-member"}, role))
	}
}
