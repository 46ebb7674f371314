package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
	membershiphub "github.com/muster-sdk/muster/membership/hub"
	"github.com/muster-sdk/muster/membership/push"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// start runs a manager until the test ends or stop is called.
func start(t *testing.T, config *rest.Config, setup func(manager.Manager) error) (stop func()) {
	t.Helper()
	c, err := newClient(config)
	require.NoError(t, err)
	mgr, err := manager.New(config, manager.Options{Scheme: c.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	require.NoError(t, setup(mgr))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stopped := false
	stop = func() {
		if cancel(); !stopped {
			stopped = true
			require.NoError(t, <-done)
		}
	}
	t.Cleanup(stop)
	return stop
}

// requireNothingNew waits until a cluster has no additional objects, except the allowed ones.
func requireNothingNew(t *testing.T, reason string, config *rest.Config, before sets.Set[string], allowed ...string) {
	t.Helper()
	var added sets.Set[string]
	ok := eventually(func() bool {
		after, err := localplane.Sweep(t.Context(), config)
		require.NoError(t, err)
		added = after.Difference(before).Delete(allowed...)
		return added.Len() == 0
	})
	require.True(t, ok, "%s: additional objects: %q", reason, sets.List(added))
}

func eventually(holds func() bool) bool {
	return wait.PollUntilContextTimeout(context.Background(), 200*time.Millisecond, 2*time.Minute, true,
		func(context.Context) (bool, error) { return holds(), nil }) == nil
}

// TestWalkthrough runs the commands of an administrator, from an empty hub to an empty hub.
func TestWalkthrough(t *testing.T) {
	hubPlane, eastPlane := emptyHub.ForTest(t), east.ForTest(t)
	dir := t.TempDir()
	joinFile := filepath.Join(dir, "join.yaml")
	onHub := func(args ...string) []string { return append(args, "--kubeconfig", hubPlane.Kubeconfig()) }
	onBoth := func(args ...string) []string {
		return onHub(append(args, "--member-kubeconfig", eastPlane.Kubeconfig())...)
	}
	want := func(code int, message string, args ...string) (out string) {
		t.Helper()
		got, out, errs := call(t, "", args...)
		t.Logf("$ musterctl %s\n%s%s(%d)", strings.Join(args[:min(3, len(args))], " "), out, errs, got)
		require.Equal(t, code, got, "%v\n%s", args, errs)
		require.Contains(t, out+errs, message, "%v", args)
		return out
	}

	sweep := func(config *rest.Config) sets.Set[string] {
		t.Helper()
		objects, err := localplane.Sweep(t.Context(), config)
		require.NoError(t, err)
		return objects
	}
	memberBefore := sweep(eastPlane.Config())

	// Nothing is installed.
	want(exitPreflight, "init", onHub("get", "members")...)
	want(exitPreflight, "it is not a hub", onBoth("join", "east")...)
	want(exitDone, "membership.muster.dev", onHub("init")...)
	want(exitDone, "membership.muster.dev", onHub("init", "-o", "json")...)
	want(exitDone, "No resources found", onHub("get", "members")...)
	want(exitTimeout, "check that the controller of the hub is running",
		onHub("token", "create", "edge", "--timeout", "1s")...)

	start(t, hubPlane.Config(), func(mgr manager.Manager) error {
		return membershiphub.SetupWithManager(mgr, membershiphub.Options{BootstrapTokens: true})
	})
	require.True(t, eventually(func() bool {
		code, _, _ := call(t, "", onHub("token", "create", "edge")...)
		return code == exitDone
	}), "the hub runs")
	want(exitDone, "deleted", onHub("token", "delete", "edge")...)
	require.True(t, eventually(func() bool {
		return !strings.Contains(strings.Join(sets.List(sweep(hubPlane.Config())), "\n"), "edge")
	}), "the objects of the token are deleted")
	hubBefore := sweep(hubPlane.Config())
	want(exitDone, "edge", onHub("token", "create", "edge", "--join-file", joinFile)...)
	info, err := os.Stat(joinFile)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	want(exitDone, "edge", onHub("token", "create", "edge", "--join-file", joinFile)...)
	want(exitTaken, "another spec", onHub("token", "create", "edge", "--auto-accept")...)
	want(exitDone, "edge", onHub("token", "list")...)
	want(exitDone, "tokenName: edge\n", onHub("token", "values", "edge")...)
	want(exitFailed, `"none" not found`, onHub("token", "values", "none")...)
	require.Contains(t, want(exitDone, "", "__complete", "--kubeconfig", hubPlane.Kubeconfig(), "token", "delete", ""),
		"edge\n")

	// Pull: the member has its own agent.
	want(exitDone, "muster-bootstrap", onBoth("register", "--join-file", joinFile)...)
	want(exitTimeout, "no agent has started", onBoth("register", "--join-file", joinFile, "--wait", "1s")...)
	other := &v1alpha1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"},
		Spec: v1alpha1.MemberClusterSpec{ClusterID: "another"}}
	admin, err := newClient(hubPlane.Config())
	require.NoError(t, err)
	require.NoError(t, admin.Create(t.Context(), other))
	stopAgent := start(t, eastPlane.Config(), func(mgr manager.Manager) error {
		return agent.SetupWithManager(mgr, agent.Options{Name: "east"})
	})
	want(exitTaken, "belongs to another cluster", onBoth("register", "--join-file", joinFile, "--wait", "1m")...)
	require.NoError(t, admin.Delete(t.Context(), other))
	require.True(t, eventually(func() bool {
		now := v1alpha1.MemberCluster{}
		return admin.Get(t.Context(), client.ObjectKeyFromObject(other), &now) == nil && now.UID != other.UID
	}), "the cluster that waited for the name has it")
	require.Eventually(t, func() bool { code, _, _ := call(t, "", onHub("accept", "east")...); return code == exitDone },
		time.Minute, 200*time.Millisecond)
	want(exitDone, "joined", onBoth("register", "--join-file", joinFile, "--wait", "1m")...)
	out := want(exitDone, "", onHub("get", "members", "-o", "json")...)
	list := v1alpha1.MemberClusterList{}
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Equal(t, "MemberClusterList", list.Kind)
	require.Equal(t, "MemberCluster", list.Items[0].Kind)
	want(exitDone, "Joined", onHub("get", "members", "east")...)
	want(exitFailed, "not found", onHub("get", "members", "west")...)
	require.Contains(t, want(exitDone, "", "__complete", "--kubeconfig", hubPlane.Kubeconfig(), "unjoin", ""), "east\n")
	want(exitTaken, "CHECK", onBoth("join", "west")...)
	want(exitTaken, "with its own agent", onBoth("join", "east")...)

	file := filepath.Join(dir, "placement.yaml")
	require.NoError(t, os.WriteFile(file, []byte("metadata: {name: web}\nspec: {policy: {type: PickAll}}\n"), 0o600))
	want(exitDone, "east", onHub("explain", "placement", "--file", file)...)

	want(exitDone, "the installed objects stay", onHub("unjoin", "east")...)
	want(exitDone, "no such member", onHub("unjoin", "east")...)
	stopAgent()
	want(exitDone, "deleted", onHub("token", "delete", "edge")...)
	want(exitDone, "no token", onHub("token", "delete", "edge")...)
	require.Eventually(t, func() bool {
		code, _, _ := call(t, "", onBoth("register", "--join-file", joinFile)...)
		return code == exitDenied
	}, time.Minute, 200*time.Millisecond, "a deleted token is rejected")

	want(exitDone, "", onBoth("clean", "--yes")...)
	requireNothingNew(t, "clean deletes the objects of register", eastPlane.Config(), memberBefore)
	want(exitDone, "", onBoth("clean", "--yes")...)
	requireNothingNew(t, "the hub has no objects of a member that has left", hubPlane.Config(), hubBefore)

	// Push: no process runs the hub's agents here, and the command reports that.
	want(exitTimeout, "No agent has requested to join", onBoth("join", "east", "--timeout", "2s")...)
	want(exitDone, "Push", onBoth("join", "east", "--timeout", "-1s")...)
	want(exitDone, "", onHub("unjoin", "east", "--force")...)
	requireNothingNew(t, "unjoin with --force deletes the objects of join", eastPlane.Config(), memberBefore)
	code, _, errs := call(t, "n\n", onBoth("clean")...)
	require.Equal(t, exitFailed, code)
	require.Contains(t, errs, eastPlane.Config().Host, "the question names the cluster")
	want(exitDone, "", onBoth("clean", "--yes")...)
	want(exitDone, "nothing to remove", onBoth("clean", "--yes")...)

	// By the printed command, while the hub is not published.
	script := want(exitDone, "the hub is not published", onHub("token", "create", "--ttl", "1h",
		"--print-register-command")...)
	command, body, _ := strings.Cut(script, " <<'JOIN'\n")
	require.True(t, strings.HasSuffix(body, "\nJOIN\n"), script)
	code, _, errs = call(t, strings.TrimSuffix(body, "JOIN\n"), onBoth(strings.Fields(command)[1:]...)...)
	require.Equal(t, exitDone, code, errs)
	written := filepath.Join(dir, "it's.yaml")
	quotedFile := `'` + strings.ReplaceAll(written, `'`, `'\''`) + `'`
	want(exitDone, "musterctl register --join-file "+quotedFile+" --image agent:v1", onHub("token", "create", "--short",
		"--join-file", written, "--print-register-command", "--agent-image", "agent:v1")...)
	want(exitDone, "", onBoth("register", "--join-file", written)...)
	tokens := v1alpha1.JoinTokenList{}
	require.NoError(t, json.Unmarshal([]byte(want(exitDone, "", onHub("token", "list", "-o", "json")...)), &tokens))
	require.Len(t, tokens.Items, 2)
	for _, token := range tokens.Items {
		want(exitDone, "deleted", onHub("token", "delete", token.Name)...)
	}
	want(exitDone, "", onBoth("clean", "--yes")...)

	// By a short token.
	hubClient, err := newClient(hubPlane.Config())
	require.NoError(t, err)
	want(exitUsage, "must be a URL", onHub("init", "--publish-cluster-info", "--server", "http://hub")...)
	want(exitDone, "cluster-info", onHub("init", "--publish-cluster-info")...)
	require.NoError(t, hubClient.Delete(t.Context(),
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-public",
			Name: "kubeadm:bootstrap-signer-clusterinfo"}}),
		"as after an interrupted init")
	want(exitDone, "it is already published", onHub("init", "--publish-cluster-info")...)
	want(exitFailed, "other content is published already", onHub("init", "--publish-cluster-info", "--server",
		"https://elsewhere")...)
	printed := strings.Fields(want(exitDone, "--discovery-token-ca-cert-hash sha256:", onHub("token", "create", "--ttl",
		"1h", "--print-register-command")...))
	require.Equal(t, []string{"musterctl", "register"}, printed[:2])
	typed := func(replaced map[string]string) []string {
		args := onBoth(printed[1:]...)
		for i := range args {
			if other, found := replaced[args[i]]; found {
				args[i+1] = other
			}
		}
		return args
	}
	want(exitDenied, "Compare the address", typed(map[string]string{"--discovery-token-ca-cert-hash": "sha256:" +
		strings.Repeat("0", 64)})...)
	want(exitDenied, "token create", typed(map[string]string{"--token": "zzzzzz.0123456789abcdef"})...)
	want(exitUnreachable, "address", typed(map[string]string{"--server": "https://127.0.0.1:1"})...)
	want(exitDone, "", typed(nil)...)
	want(exitDone, "", typed(nil)...)
	stopAgent = start(t, eastPlane.Config(), func(mgr manager.Manager) error {
		return agent.SetupWithManager(mgr, agent.Options{Name: "east"})
	})
	require.Eventually(t, func() bool { code, _, _ := call(t, "", onHub("accept", "east")...); return code == exitDone },
		time.Minute, 200*time.Millisecond)
	want(exitDone, "joined", append(typed(nil), "--wait", "1m")...)
	want(exitDone, "the member has left", onBoth("unjoin", "east")...)
	want(exitDone, "no such member", onBoth("unjoin", "east")...)
	stopAgent()
	requireNothingNew(t, "unjoin deletes the objects of register if it has the kubeconfig of the member",
		eastPlane.Config(),
		memberBefore)

	// Push, with a process that runs the hub's agents.
	start(t, hubPlane.Config(), func(mgr manager.Manager) error {
		runner, err := push.New(mgr, push.Options{})
		if err != nil {
			return err
		}
		_, err = fleet.SetupWithManager(mgr, fleet.Options{Runners: []fleet.Runner{runner}})
		return err
	})
	want(exitDone, "Joined", onBoth("join", "east")...)
	want(exitDone, "Joined", onBoth("join", "east")...)
	want(exitTaken, "CHECK", onBoth("join", "west")...)
	want(exitDone, "run the command again to remove the objects of join: musterctl unjoin east",
		onHub("unjoin", "east", "--timeout", "-1s")...)
	require.Eventually(t, func() bool {
		_, _, errs := call(t, "", onHub("get", "members")...)
		return strings.Contains(errs, "No resources found")
	}, time.Minute, 200*time.Millisecond)
	want(exitDone, "ServiceAccount muster-push", onHub("unjoin", "east")...)
	want(exitDone, "no such member", onHub("unjoin", "east")...)
	requireNothingNew(t, "unjoin deletes the objects of join", eastPlane.Config(), memberBefore)
	want(exitDone, "nothing to remove", onBoth("clean", "--yes")...)
	want(exitDone, "nothing to remove", onBoth("clean", "--yes")...)
	requireNothingNew(t, "clean without objects changes nothing", eastPlane.Config(), memberBefore)
	id, _, _ := strings.Cut(printed[slices.Index(printed, "--token")+1], ".")
	want(exitDone, "deleted", onHub("token", "delete", "bootstrap-token-"+id)...)
	requireNothingNew(t, "only the namespace of the connections stays on the hub", hubPlane.Config(), hubBefore,
		"Namespace.v1 muster-connections")

	// The hub does not respond.
	proxy, err := localplane.NewProxy(hubPlane.Config().Host)
	require.NoError(t, err)
	proxy.Cut()
	t.Cleanup(func() { require.NoError(t, proxy.Close()) })
	data, err := localplane.Kubeconfig(proxy.Config(hubPlane.Config()))
	require.NoError(t, err)
	unreachable := filepath.Join(dir, "unreachable.yaml")
	require.NoError(t, os.WriteFile(unreachable, data, 0o600))
	want(exitUnreachable, "cannot be reached", "get", "members", "--kubeconfig", unreachable)
	want(exitUnreachable, "WHAT TO DO", "join", "east", "--kubeconfig", unreachable, "--member-kubeconfig",
		eastPlane.Kubeconfig())
}
