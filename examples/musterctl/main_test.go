package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/admin"
	"github.com/muster-sdk/muster/membership/registration/discovery"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

var (
	update = flag.Bool("update", false, "write the golden files")
	hub    = localplane.Shared{Options: localplane.Options{Name: "hub"}}
	// emptyHub is for TestWalkthrough, which begins before "musterctl init". Other tests leave definitions on hub.
	emptyHub = localplane.Shared{Options: localplane.Options{Name: "empty"}}
	// deployedHub has simulated nodes.
	deployedHub = localplane.Shared{Options: localplane.Options{Name: "deployed", Nodes: 1}}
	east        = localplane.Shared{Options: localplane.Options{Name: "east", Nodes: 1}}
)

func TestMain(m *testing.M) {
	quiet()
	os.Exit(localplane.Run(m, &hub, &emptyHub, &deployedHub, &east, &runningHub))
}

// golden compares got with a file in testdata. The flag -update writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update")
	require.Empty(t, cmp.Diff(string(want), got), "run the test with -update, and review the difference")
}

// call runs a command line with an input, and returns its exit code and output.
func call(t *testing.T, in string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append([]string{"musterctl"}, args...), streams{in: strings.NewReader(in), out: &o, err: &e})
	return code, o.String(), e.String()
}

func TestHelp(t *testing.T) {
	var text strings.Builder
	a := &app{program: "musterctl", streams: streams{in: strings.NewReader(""), out: &text, err: &text}}
	var show func(*cobra.Command)
	show = func(cmd *cobra.Command) {
		fmt.Fprintf(&text, "$ %s --help\n", cmd.CommandPath())
		code, out, errs := call(t, "", append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		require.Zero(t, code, errs)
		fmt.Fprintln(&text, out)
		for _, sub := range cmd.Commands() {
			if sub.Name() != "help" && sub.Name() != "completion" {
				show(sub)
			}
		}
	}
	show(a.root())
	golden(t, "help.txt", text.String())
}

func TestPluginName(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, run(t.Context(), []string{"/usr/bin/kubectl-muster", "token", "create", "--help"},
		streams{out: &out, err: &out}))
	require.Contains(t, out.String(), "kubectl muster token create [NAME]")
	require.Contains(t, out.String(), "kubectl muster token create --ttl 24h", "examples as well")
}

func TestTables(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	created := metav1.NewTime(now.Add(-5 * time.Hour))
	condition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	members := []v1alpha1.MemberCluster{
		{ObjectMeta: metav1.ObjectMeta{Name: "east", CreationTimestamp: created},
			Spec: v1alpha1.MemberClusterSpec{JoinMode: v1alpha1.JoinPush},
			Status: v1alpha1.MemberClusterStatus{Phase: v1alpha1.PhaseJoined,
				Version: v1alpha1.VersionInfo{Kubernetes: "v1.36.3"},
				Resources: v1alpha1.ResourceUsage{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("16"),
					corev1.ResourceMemory: resource.MustParse("64Gi")}},
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionJoined, metav1.ConditionTrue, ""),
					condition(v1alpha1.ConditionHealthy, metav1.ConditionTrue, "")}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "west", CreationTimestamp: created},
			Status: v1alpha1.MemberClusterStatus{Phase: v1alpha1.PhaseJoined, Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionJoined, metav1.ConditionTrue, ""), condition(v1alpha1.ConditionHealthy,
					metav1.ConditionUnknown, "No heartbeat since 03:01:12.")}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "accepted", Generation: 2, CreationTimestamp: created},
			Status: v1alpha1.MemberClusterStatus{Phase: v1alpha1.PhasePending, Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionUnknown, ObservedGeneration: 1,
					Message: "No administrator has decided."}}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "new", CreationTimestamp: metav1.NewTime(now.Add(-time.Second))}},
	}
	tokens := []v1alpha1.JoinToken{
		{ObjectMeta: metav1.ObjectMeta{Name: "edge", CreationTimestamp: created},
			Spec: v1alpha1.JoinTokenSpec{MaxUses: new(int32(3)), AutoAccept: true}, Status: v1alpha1.JoinTokenStatus{
				Uses: 2, ExpirationTime: new(metav1.NewTime(now.Add(19 * time.Hour))),
				Conditions: []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionTrue, "give it")}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "old", CreationTimestamp: created}, Status: v1alpha1.JoinTokenStatus{
			ExpirationTime: new(metav1.NewTime(now.Add(-time.Hour))),
			Conditions:     []metav1.Condition{condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "ended at 02:04:05")}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
	}
	var text bytes.Buffer
	for _, rows := range []table{membersTable(now, members...), tokensTable(now, tokens...)} {
		require.NoError(t, rows.write(&text))
		fmt.Fprintln(&text)
	}
	golden(t, "tables.txt", text.String())
}

func TestReport(t *testing.T) {
	preflight := &admin.PreflightError{Findings: []admin.Finding{
		{Check: "reach the hub", Problem: "the hub at https://hub:6443 cannot be reached: connection refused",
			Fix: "check the address"},
		{Check: "name", Problem: "east is the name of another cluster", Fix: "choose another name", Err: admin.ErrNameTaken},
	}}
	var text strings.Builder
	for _, test := range []struct {
		reason string
		err    error
		code   int
	}{
		{"one finding is a name in use", preflight, exitTaken},
		{"other findings of the preflight checks", &admin.PreflightError{Findings: preflight.Findings[:1]}, exitPreflight},
		{"timeout", &admin.TimeoutError{Doing: "wait until east has joined", After: 2 * time.Minute,
			Reason: "the hub has not observed the MemberCluster"}, exitTimeout},
		{"unreachable cluster", fmt.Errorf("read it: %w", &admin.UnreachableError{Which: admin.Member,
			Server: "https://east", Err: errors.New("no route to host")}), exitUnreachable},
		{"unreachable cluster without the name of the cluster",
			&url.Error{Op: "Get", URL: "https://hub", Err: errors.New("refused")}, exitUnreachable},
		{"denied cluster", fmt.Errorf("member east: %w", admin.ErrDenied), exitDenied},
		{"expired token", fmt.Errorf("JoinToken edge: %w", admin.ErrExpired), exitDenied},
		{"unknown short token", fmt.Errorf("find the hub: %w", discovery.ErrUnknownToken), exitDenied},
		{"wrong certificate authority", fmt.Errorf("find the hub: %w", discovery.ErrWrongPin), exitDenied},
		{"refused agent, cluster ID in use",
			fmt.Errorf("the hub refuses the agent: cluster ID 1 belongs to member east (ClusterIDTaken): %w",
				admin.ErrClusterTaken), exitTaken},
		{"refused agent, name in use",
			fmt.Errorf("the hub refuses the agent: the name east belongs to another cluster (NameTaken): %w",
				admin.ErrNameTaken), exitTaken},
		{"timeout after a refusal",
			fmt.Errorf("%w: %w", &admin.TimeoutError{Doing: "wait until the agent has joined", After: time.Second,
				Reason: "it was refused before"},
				fmt.Errorf("the hub refuses the agent: %w", admin.ErrExpired)), exitDenied},
		{"no CA hashes", fmt.Errorf("find the hub: %w", discovery.ErrNoPins), exitUsage},
		{"unpublished hub", fmt.Errorf("find the hub: %w", discovery.ErrNotAHub), exitPreflight},
		{"unreachable hub in discovery", fmt.Errorf("find the hub: %w", discovery.ErrUnreachable), exitUnreachable},
		{"invalid argument", &membership.InvalidError{Field: "Name", Problem: "must be a DNS label"}, exitUsage},
		{"invalid option with a flag",
			&membership.InvalidError{Field: "TokenLifetime", Problem: "is too short"}, exitUsage},
		{"invalid label", &membership.InvalidError{Field: `Spec.labels["-"]`, Problem: "is no key"}, exitUsage},
		{"invalid CA hash", &membership.InvalidError{Field: "Options.CACertHashes[0]", Problem: "is no pin"}, exitUsage},
		{"invalid command line", usage("specify the cluster to join"), exitUsage},
		{"unknown member", fmt.Errorf("member west: %w", admin.ErrNotFound), exitFailed},
		{"canceled command", context.Canceled, exitFailed},
		{"other error, on one line", errors.New("first\nsecond"), exitFailed},
	} {
		var errs bytes.Buffer
		a := &app{program: "musterctl", started: true, streams: streams{err: &errs}}
		require.Equal(t, test.code, a.report(test.err), test.reason)
		fmt.Fprintf(&text, "# %s: %d\n%s\n", test.reason, test.code, errs.String())
	}
	golden(t, "errors.txt", text.String())
}

func TestUsage(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	require.NoError(t, os.WriteFile(empty, []byte("server: https://hub\ntoken: secret-words\n"), 0o600))
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"jion"}, "unknown command"},
		{[]string{"join"}, "accepts 1 arg"},
		{[]string{"join", "east"}, "--member-context"},
		{[]string{"join", "east", "--bogus"}, "unknown flag"},
		{[]string{"unjoin", "east", "--force", "--keep"}, "--keep"},
		{[]string{"get", "members", "-o", "xml"}, "table, wide, name, json, yaml"},
		{[]string{"get", "members", "--kubeconfig", "/no/such/file"}, "kubeconfig of the hub"},
		{[]string{"token", "create", "--ttl", "10ms"}, "--ttl"},
		{[]string{"token", "create", "--credential-ttl", "1m"}, "--credential-ttl"},
		{[]string{"get", "nodes"}, "unknown \"nodes\""},
		{[]string{"token"}, "token requires one of create"},
		{[]string{"rollout", "restart", "shop"}, "use one of approve"},
		{[]string{"token", "create", "--print-register-command", "--join-file", "-"}, "--join-file -"},
		{[]string{"explain", "placement"}, "--file"},
		{[]string{"clean"}, "--member-context"},
		{[]string{"rebuild"}, "--member-context"},
		{[]string{"move", "--member-context", "east"}, "kubeconfig of the member"},
		{[]string{"release", "--all"}, "--member-context"},
		{[]string{"release", "--member-context", "east"}, "--all"},
		{[]string{"release", "--member-context", "east", "--all", "shop"}, "--all"},
	} {
		code, out, errs := call(t, "", test.args...)
		require.Equal(t, exitUsage, code, "%v: %s", test.args, errs)
		require.Empty(t, out)
		require.Contains(t, errs, test.want)
	}
	hub := hub.ForTest(t).Kubeconfig()
	for _, args := range [][]string{{"--join-file", "/no/such/file"}, {"--join-file", empty}, {},
		{"--join-file", empty, "--token", "abcdef.0123456789abcdef"},
		{"--server", "https://127.0.0.1:1", "--token", "secret-words"}, {"--server", "https://127.0.0.1:1", "--token",
			"abcdef.0123456789abcdef"},
		{"--server", "https://127.0.0.1:1", "--token", "abcdef.0123456789abcdef", "--discovery-token-ca-cert-hash",
			"sha256:12"}} {
		code, _, errs := call(t, "", append([]string{"register", "--member-kubeconfig", hub}, args...)...)
		require.Equal(t, exitUsage, code, "%v: %s", args, errs)
		require.NotContains(t, errs, "secret-words", "an error must not contain the content of an invalid file")
	}
}

func TestAllowedLabels_ValuesByKey(t *testing.T) {
	require.Equal(t, []v1alpha1.AllowedLabel{
		{Key: "region", Values: []string{"eu", "us"}}, {Key: "team"}, {Key: "tier"},
	}, allowedLabels([]string{"region=eu", "team", "region=us", "tier=gold", "tier"}))
	require.Empty(t, allowedLabels(nil))
}
