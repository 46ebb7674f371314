package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/membership/agent"
	membershiphub "github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// TestTwoHubs makes one cluster a member of two hubs at the same time, with one agent for each hub, and removes it from
// the hubs one after the other. The cluster is also the second hub.
func TestTwoHubs(t *testing.T) {
	first, second := hub.ForTest(t), east.ForTest(t)
	onMember := func(args ...string) []string { return append(args, "--member-kubeconfig", second.Kubeconfig()) }
	want := func(code int, message string, args ...string) {
		t.Helper()
		got, out, errs := call(t, "", args...)
		require.Equal(t, code, got, "%v\n%s", args, errs)
		require.Contains(t, out+errs, message, "%v", args)
	}
	joined := func(p *localplane.Plane) {
		t.Helper()
		c, err := newClient(p.Config())
		require.NoError(t, err)
		mc := &v1alpha1.MemberCluster{}
		require.True(t, eventually(func() bool {
			return c.Get(t.Context(), client.ObjectKey{Name: "both"}, mc) == nil &&
				meta.IsStatusConditionTrue(mc.Status.Conditions, v1alpha1.ConditionHealthy)
		}), "the member is not healthy, conditions: %v", mc.Status.Conditions)
	}
	stops := map[string]func(){}
	files := map[string]string{}
	for name, p := range map[string]*localplane.Plane{"one": first, "two": second} {
		want(exitDone, "", "init", "--kubeconfig", p.Kubeconfig())
		start(t, p.Config(), func(mgr manager.Manager) error {
			return membershiphub.SetupWithManager(mgr, membershiphub.Options{})
		})
		files[name] = filepath.Join(t.TempDir(), name+".yaml")
		want(exitDone, "", "token", "create", "both-hubs", "--auto-accept", "--join-file", files[name], "--kubeconfig",
			p.Kubeconfig())
		for _, message := range []string{"muster-bootstrap-" + name, "existed already"} {
			want(exitDone, message, onMember("register", "--hub", name, "--join-file", files[name])...)
		}
	}
	member, err := newClient(second.Config())
	require.NoError(t, err)
	want(exitTimeout, "no agent has started with hub one", onMember("register",
		"--hub", "one", "--join-file", files["one"],
		"--wait", "1s")...)
	want(exitTaken, "token of another hub", onMember("register", "--hub", "one", "--join-file", files["two"])...)
	const invalid = "--hub: must be a DNS label"
	want(exitUsage, invalid, onMember("register", "--hub", "No Label", "--join-file", files["one"])...)
	want(exitUsage, invalid, onMember("clean", "--yes", "--hub", "No Label")...)
	want(exitTaken, "an agent on the member", onMember("join", "both", "--kubeconfig", first.Kubeconfig())...)
	for name := range files {
		stops[name] = start(t, second.Config(), func(mgr manager.Manager) error {
			return agent.SetupWithManager(mgr, agent.Options{Name: "both", Hubs: []agent.HubOptions{{Name: name}}})
		})
		want(exitDone, "joined", onMember("register", "--hub", name, "--join-file", files[name], "--wait", "1m")...)
	}
	joined(first)
	joined(second)

	// The names of the hubs distinguish the AppliedWorks, too.
	applied := func(hub string) *workv1alpha1.AppliedWork {
		return &workv1alpha1.AppliedWork{
			ObjectMeta: metav1.ObjectMeta{Name: "of-" + hub, Labels: map[string]string{workv1alpha1.HubLabel: hub}},
			Spec: workv1alpha1.AppliedWorkSpec{Work: workv1alpha1.WorkReference{Hub: hub, Namespace: "member-both",
				Name: "web", UID: "uid"}, FieldOwner: "muster"},
		}
	}
	exists := func(object client.Object) bool {
		err := member.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		if !apierrors.IsNotFound(err) {
			require.NoError(t, err)
		}
		return err == nil
	}
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: name}}
	}
	for name := range files {
		require.NoError(t, member.Create(t.Context(), applied(name)))
	}
	stops["one"]()
	want(exitDone, "stay: Secret muster-system/muster-", onMember("clean", "--yes", "--hub", "one")...)
	want(exitDone, "nothing to remove", onMember("clean", "--yes", "--hub", "one")...)
	require.False(t,
		exists(secret("muster-agent-one")) || exists(secret("muster-bootstrap-one")) || exists(applied("one")))
	require.True(t, exists(secret("muster-agent-two")) && exists(secret("muster-bootstrap-two")) && exists(applied("two")),
		"the objects of the other hub stay")
	want(exitDone, "joined", onMember("register", "--hub", "two", "--join-file", files["two"], "--wait", "1m")...)
	joined(second)
	want(exitDone, "the installed objects stay",
		onMember("unjoin", "both", "--force", "--kubeconfig", first.Kubeconfig())...)
	require.True(t, exists(secret("muster-agent-two")) && exists(applied("two")), "the objects of the other hub stay")
	joined(second)

	// The member leaves the other hub in order: the agent itself deletes its Secrets.
	want(exitDone, "the member has left", "unjoin", "both", "--timeout", time.Minute.String(), "--kubeconfig",
		second.Kubeconfig())
	require.True(t, eventually(func() bool {
		return !exists(secret("muster-agent-two")) && !exists(secret("muster-bootstrap-two"))
	}))
	stops["two"]()
	want(exitDone, "", onMember("clean", "--yes", "--hub", "two")...)
	require.False(t, exists(applied("two")))
	require.True(t, eventually(func() bool {
		return !exists(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.DefaultNamespace}})
	}), "the last clean deletes the namespace")
	for name, p := range map[string]*localplane.Plane{"one": first, "two": second} {
		want(exitDone, "deleted", "token", "delete", "both-hubs", "--kubeconfig", p.Kubeconfig())
		require.NoError(t, os.Remove(files[name]))
	}
}
