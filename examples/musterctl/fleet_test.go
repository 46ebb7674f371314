package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/examples/custom-plugin/carbon"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/fleet"
	"github.com/muster-sdk/muster/mustertest/localplane"
	"github.com/muster-sdk/muster/placement"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
	"github.com/muster-sdk/muster/scheduler"
	"github.com/muster-sdk/muster/scheduler/plugins"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
	workv1alpha1 "github.com/muster-sdk/muster/work/v1alpha1"
)

// runningHub is the plane of a complete hub. Its members east and west apply no Works.
var runningHub = localplane.Shared{Options: localplane.Options{Name: "running"}}

// TestFleet_Commands runs the commands about Placements, WorkSets, add-ons and taints against a complete hub.
func TestFleet_Commands(t *testing.T) {
	plane := runningHub.ForTest(t)
	hub := fleet.StartHub(t, plane.Config(), fleet.HubOptions{})
	names := []string{"east", "west"}
	hub.JoinHollow(2, fleet.HollowOptions{Configure: func(i int, o *agent.Options) { o.Name = names[i] }})
	c := hub.Client()
	f := &commands{t: t, hub: plane.Kubeconfig()}
	for _, object := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "apps"}},
		&tenancyv1alpha1.ClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "global"},
			Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: "global"},
		},
		&placementv1alpha1.Placement{
			ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop"},
			Spec: placementv1alpha1.PlacementSpec{
				Policy: placementv1alpha1.PlacementPolicy{Type: placementv1alpha1.PickAll},
			},
		},
		workSet(t, "one"),
		&addonv1alpha1.Addon{ObjectMeta: metav1.ObjectMeta{Name: "collector"}},
	} {
		require.NoError(t, c.Create(t.Context(), object))
	}
	chosen := func(want int) {
		t.Helper()
		mustertest.Holds(t, time.Minute, "the Placement has chosen its clusters", func() bool {
			out := f.succeed("get", "placements", "shop", "-n", "apps", "-o", "jsonpath={.status.selectedClusters}")
			return strings.TrimSpace(out) == map[int]string{1: "1", 2: "2"}[want]
		})
	}
	chosen(2)

	t.Run("get", func(t *testing.T) { testGet(t, &commands{t: t, hub: f.hub}, plane) })
	t.Run("taint", func(t *testing.T) { testTaint(t, &commands{t: t, hub: f.hub}) })
	t.Run("drain", func(t *testing.T) {
		out := f.succeed("drain", "east", "--dry-run", "-o", "json")
		require.Contains(t, out, `"cluster": "east"`)
		taints := f.succeed("get", "members", "east", "-o", "jsonpath={.spec.taints[*].key}")
		require.Equal(t, "\n", taints, "a dry run changes nothing")
		require.Contains(t, f.succeed("drain", "east"), "apps        shop        True")
		chosen(1)
		require.Contains(t, f.succeed("drain", "east"), "No Placement has selected east.")
		require.Contains(t, f.succeed("uncordon", "east"), "membercluster/east uncordoned")
		chosen(2)
	})
	t.Run("rollout", func(t *testing.T) { testRollout(t, &commands{t: t, hub: f.hub}, c) })
	t.Run("addon", func(t *testing.T) {
		require.Contains(t, f.fail(exitUsage, "addon", "enable", "collector"), "--members")
		errs := f.fail(exitFailed, "addon", "enable", "collector", "--members", "north")
		require.Contains(t, errs, "member north: not found")
		require.Contains(t, f.fail(exitFailed, "addon", "enable", "other", "--members", "east"), "addon other: not found")
		require.Contains(t, f.succeed("addon", "enable", "collector", "--members", "east"), "addon collector enabled")
		require.Contains(t, f.succeed("addon", "enable", "collector", "--members", "east"), "already enabled")
		require.Contains(t, f.succeed("get", "memberaddons", "-A"), "collector")
		out := f.succeed("addon", "disable", "collector", "--members", "east,west", "--timeout", "1m")
		require.Contains(t, out, "member west: addon collector not enabled")
		require.NotContains(t, f.succeed("get", "memberaddons", "-A"), "collector")
	})
}

// TestExplain_PluginsOfTheHub checks that explain shows the reasons of a plugin that only the hub has. The command
// requests the explanation and removes the request. With --local the command evaluates the Placement itself, without
// the plugin.
func TestExplain_PluginsOfTheHub(t *testing.T) {
	const property = "carbon.example.com/intensity"
	registry, profile := plugins.Registry(), plugins.DefaultProfile()
	require.NoError(t, registry.Register(carbon.Name, carbon.New))
	profile.Plugins = append(profile.Plugins, scheduler.PluginConfig{
		Name: carbon.Name, Args: scheduler.Args(`{"property": "` + property + `", "limit": 400}`),
	})
	green := profile
	green.Name = "green"
	decider, err := scheduler.New(scheduler.Options{
		Registry: registry, Profiles: []scheduler.Profile{plugins.DefaultProfile(), green},
	})
	require.NoError(t, err)
	plane := localplane.ForTest(t, localplane.Options{Name: "explain"})
	hub := fleet.StartHub(t, plane.Config(), fleet.HubOptions{
		Assembly: assembly.HubOptions{Placement: placement.Options{Decider: decider}},
	})
	names, grams := []string{"north", "inland"}, []string{"28", "710"}
	hub.JoinHollow(len(names), fleet.HollowOptions{Configure: func(i int, o *agent.Options) {
		o.Name = names[i]
		o.Collectors = []agent.PropertyCollector{agent.CollectorFunc("carbon",
			func(context.Context) ([]v1alpha1.Property, error) {
				return []v1alpha1.Property{{Name: property, Value: grams[i]}}, nil
			})}
	}})
	f, c := &commands{t: t, hub: plane.Kubeconfig()}, hub.Client()
	shop := &placementv1alpha1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop"}}
	shop.Spec.Policy = placementv1alpha1.PlacementPolicy{Type: placementv1alpha1.PickAll, Profile: green.Name}
	for _, object := range []client.Object{shop, &tenancyv1alpha1.ClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "global"},
		Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: "global"},
	}} {
		require.NoError(t, c.Create(t.Context(), object))
	}

	const reason = "CarbonIntensity: exceeds 400 g of CO2 per kWh"
	row := func(out, cluster string) string {
		_, row, _ := strings.Cut(out, "\n"+cluster+" ")
		row, _, _ = strings.Cut(row, "\n")
		return row
	}
	var out string
	mustertest.Holds(t, time.Minute, "the hub has decided with the binding", func() bool {
		out = f.succeed("explain", "placement", "shop")
		return strings.Contains(row(out, "north"), "Chosen")
	})
	require.Contains(t, row(out, "inland"), "Rejected")
	require.Contains(t, row(out, "inland"), reason)
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(shop), shop))
	require.NotContains(t, shop.Annotations, placementv1alpha1.ExplainAnnotation, "the command removes the request")
	require.Contains(t, f.succeed("explain", "placement", "shop", "-o", "json"), `"plugin": "CarbonIntensity"`)
	require.Contains(t, f.fail(exitFailed, "explain", "placement", "shop", "--local"), "green",
		"the command does not have the profile")
}

// commands runs commands against one hub.
type commands struct {
	t   *testing.T
	hub string
}

// succeed runs a command that must succeed, and returns its output, including notes.
func (f *commands) succeed(args ...string) string {
	f.t.Helper()
	code, out, errs := call(f.t, "", append(args, "--kubeconfig", f.hub)...)
	require.Equal(f.t, exitDone, code, "%v: %s", args, errs)
	return out + errs
}

// fail runs a command that must fail with an exit code, and returns its error output.
func (f *commands) fail(code int, args ...string) string {
	f.t.Helper()
	got, out, errs := call(f.t, "", append(args, "--kubeconfig", f.hub)...)
	require.Equal(f.t, code, got, "%v: %s%s", args, out, errs)
	return errs
}

// workSet returns a WorkSet whose rollout has two stages. The second stage needs an approval.
func workSet(t *testing.T, value string) *placementv1alpha1.WorkSet {
	t.Helper()
	config, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "shop"},
		"data": map[string]any{"value": value},
	})
	require.NoError(t, err)
	return &placementv1alpha1.WorkSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "shop"},
		Spec: placementv1alpha1.WorkSetSpec{
			Placements: []placementv1alpha1.PlacementReference{{Name: "shop"}},
			Manifests:  []workv1alpha1.Manifest{{RawExtension: runtime.RawExtension{Raw: config}}},
			Rollout: placementv1alpha1.RolloutStrategy{
				Type: placementv1alpha1.RolloutStages,
				Stages: []placementv1alpha1.RolloutStage{
					{Name: "all", Before: placementv1alpha1.RolloutGate{Approval: true}},
				},
			},
		},
	}
}

func testGet(t *testing.T, f *commands, plane *localplane.Plane) {
	t.Helper()
	for args, want := range map[string]string{
		"members":                          "east",
		"members -o wide":                  "member-east",
		"members -o name":                  "membercluster.membership.muster.dev/east\n",
		"members east -o jsonpath={.kind}": "MemberCluster\n",
		"placements -n apps":               "shop   PickAll   2         2",
		"placements -A":                    "NAMESPACE   NAME   TYPE",
		"placements -A -l a=b":             "No resources found.",
		"placements -n apps -o name":       "placement.placement.muster.dev/shop\n",
		"worksets shop -n apps -o yaml":    "kind: WorkSet\n",
		"worksets -n apps -o json":         `"kind": "WorkSetList"`,
		"worksets -n apps -o wide":         "REVISION",
		"addons":                           "collector   Manual",
	} {
		require.Contains(t, f.succeed(append([]string{"get"}, strings.Fields(args)...)...), want, args)
	}
	require.Contains(t, f.fail(exitUsage, "get", "nodes"), `unknown "nodes": use one of addons, `)
	require.Contains(t, f.fail(exitUsage, "get"), "get requires one of addons, ")
	require.Contains(t, f.fail(exitUsage, "get", "placements", "-o", "xml"), "jsonpath=TEMPLATE")
	require.Contains(t, f.fail(exitUsage, "get", "placements", "-o", "jsonpath={"), "jsonpath")
	require.Contains(t, f.fail(exitFailed, "get", "placements", "none", "-n", "apps"), "placement none: not found")
	require.Contains(t, f.fail(exitFailed, "get", "members", "--as", "visitor"), `User "visitor" cannot list`)

	// The namespace is that of the context.
	config, err := os.ReadFile(plane.Kubeconfig())
	require.NoError(t, err)
	inApps := &commands{t: t, hub: filepath.Join(t.TempDir(), "kubeconfig")}
	config = bytes.Replace(config, []byte("    cluster: local\n"), []byte("    cluster: local\n    namespace: apps\n"), 1)
	require.NoError(t, os.WriteFile(inApps.hub, config, 0o600))
	require.Contains(t, inApps.succeed("get", "placements"), "shop")

	testWatch(t, f)
}

// lockedBuffer is a buffer that a test reads while a command writes to it.
type lockedBuffer struct {
	mu   sync.Mutex
	data bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.data.String()
}

// testWatch checks that a watch prints a change, and that an interrupt ends the watch.
func testWatch(t *testing.T, f *commands) {
	t.Helper()
	for args, want := range map[string]string{
		"placements shop -n apps -w -o wide": "shop", "members west -w -o wide": "west",
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		var out lockedBuffer
		done := make(chan int, 1)
		go func() {
			line := append([]string{"musterctl", "get"}, append(strings.Fields(args), "--kubeconfig", f.hub)...)
			done <- run(ctx, line, streams{in: strings.NewReader(""), out: &out, err: &out})
		}()
		count := func() int { return strings.Count(out.String(), "\n"+want) }
		mustertest.Holds(t, time.Minute, "the list is shown", func() bool { return count() == 1 })
		f.succeed("taint", "west", "example.com/watched=true:NoExecute")
		mustertest.Holds(t, time.Minute, "the change is shown: "+args, func() bool { return count() > 1 })
		interrupt()
		require.Equal(t, exitDone, <-done, out.String())
		f.succeed("taint", "west", "example.com/watched-")
		mustertest.Holds(t, time.Minute, "the Placement has both clusters again", func() bool {
			return strings.Contains(f.succeed("get", "placements", "-n", "apps"), "PickAll   2         2")
		})
	}
}

func testTaint(t *testing.T, f *commands) {
	t.Helper()
	taints := func() string {
		const path = "jsonpath={range .spec.taints[*]}{.key}={.value}:{.effect} {end}"
		return strings.TrimSpace(f.succeed("get", "members", "west", "-o", path))
	}
	out := f.succeed("taint", "east", "west", "a.b/c=d:PreferNoSchedule", "a.b/e:PreferNoSchedule")
	require.Contains(t, out, "membercluster/west tainted")
	require.Equal(t, "a.b/c=d:PreferNoSchedule a.b/e=:PreferNoSchedule", taints())
	require.Contains(t, f.succeed("taint", "west", "a.b/c=d:PreferNoSchedule"), "already tainted")
	require.Contains(t, f.fail(exitUsage, "taint", "west", "a.b/c=x:PreferNoSchedule"), "--overwrite")
	f.succeed("taint", "west", "a.b/c=x:PreferNoSchedule", "--overwrite", "a.b/e:PreferNoSchedule-")
	require.Equal(t, "a.b/c=x:PreferNoSchedule", taints())
	f.succeed("taint", "west", "east", "a.b/c-", "a.b/e-")
	require.Empty(t, taints())
	for _, args := range []string{
		"west a=b", "west a:Wrong", "west east", "a:NoSchedule b:NoSchedule", "west :NoSchedule",
	} {
		f.fail(exitUsage, append([]string{"taint"}, strings.Fields(args)...)...)
	}
	require.Contains(t, f.fail(exitFailed, "cordon", "north"), "member north: not found")

	require.Contains(t, f.succeed("cordon", "west"), "membercluster/west cordoned")
	require.Contains(t, f.succeed("cordon", "west"), "already cordoned")
	require.Equal(t, cordonTaint+"=:NoSchedule", taints())
	require.Contains(t, f.succeed("get", "placements", "-n", "apps"), "PickAll   2         2",
		"a cordon keeps the selected clusters")
	require.Contains(t, f.succeed("uncordon", "west"), "membercluster/west uncordoned")
	require.Empty(t, taints())
}

func testRollout(t *testing.T, f *commands, c client.Client) {
	t.Helper()
	set := []string{"shop", "-n", "apps"}
	rollout := func(verb string, more ...string) []string {
		return append(append([]string{"rollout", verb}, set...), more...)
	}
	phase := func(want placementv1alpha1.RolloutPhase) {
		t.Helper()
		mustertest.Holds(t, time.Minute, "the rollout is "+string(want), func() bool {
			return strings.Contains(f.succeed(rollout("status", "--watch=false")...), string(want))
		})
	}
	phase(placementv1alpha1.PhaseWaitingForApproval)
	require.Contains(t, f.fail(exitTimeout, rollout("status", "--timeout", "1ms")...), "pproval")
	require.Contains(t, f.fail(exitUsage, rollout("approve", "--stage", "none")...), "no stage none")
	require.Contains(t, f.fail(exitUsage, rollout("approve", "--after")...), "--stage")
	require.Contains(t, f.succeed(rollout("pause")...), "workset/shop paused")
	require.Contains(t, f.succeed(rollout("approve")...), "stage all approved (gate Before")
	phase(placementv1alpha1.PhasePaused)
	require.Contains(t, f.succeed(rollout("resume")...), "workset/shop resumed")
	phase(placementv1alpha1.PhaseProgressing)
	mustertest.Holds(t, time.Minute, "the rollout has created a Work", func() bool {
		return strings.Contains(f.succeed("get", "works", "-A"), "APPLIED")
	})
	require.Contains(t, f.fail(exitFailed, rollout("approve")...), "does not wait for an approval")
	require.Contains(t, f.fail(exitFailed, rollout("undo")...), "no revision before")

	changed := &placementv1alpha1.WorkSet{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "apps", Name: "shop"}, changed))
	before := changed.DeepCopy()
	changed.Spec.Manifests = workSet(t, "two").Spec.Manifests
	require.NoError(t, c.Patch(t.Context(), changed, client.MergeFrom(before)))
	mustertest.Holds(t, time.Minute, "there are two revisions", func() bool {
		return strings.Count(f.succeed(rollout("history")...), "\n") == 3
	})
	require.Contains(t, f.fail(exitUsage, rollout("undo", "--to-revision", "9")...), "rollout history")
	require.Contains(t, f.succeed(rollout("undo")...), "rolled back to revision "+before.Status.Rollout.Revision)
	mustertest.Holds(t, time.Minute, "the earlier revision is desired", func() bool {
		history := f.succeed(rollout("history")...)
		return strings.Contains(history, before.Status.Rollout.Revision+"   ") && strings.Contains(history, "Desired")
	})
	require.Contains(t, f.succeed(rollout("undo", "--to-revision", "latest")...), "follows its objects")
	errs := f.fail(exitFailed, "rollout", "history", "none", "-n", "apps")
	require.Contains(t, errs, "WorkSet none in namespace apps: not found")
}

// TestAccept_SeveralMembers checks that several clusters, and all clusters, are accepted with one command.
func TestAccept_SeveralMembers(t *testing.T) {
	plane := runningHub.ForTest(t)
	hub := fleet.StartHub(t, plane.Config(), fleet.HubOptions{})
	f := &commands{t: t, hub: plane.Kubeconfig()}
	names := []string{"a", "b", "c", "d"}
	for _, name := range names {
		require.NoError(t, hub.Client().Create(t.Context(), &v1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": "accept"}},
		}))
	}
	accepted := func() string {
		return strings.TrimSpace(f.succeed("get", "members", "-l", "test=accept", "-o",
			"jsonpath={.items[?(@.spec.accepted==true)].metadata.name}"))
	}
	require.Contains(t, f.fail(exitUsage, "accept"), "--all")
	require.Contains(t, f.fail(exitUsage, "accept", "a", "--all"), "--all")
	f.succeed("deny", "d")
	f.succeed("accept", "a", "b")
	require.Equal(t, "a b", accepted())
	require.Contains(t, f.succeed("accept", "--all", "-o", "name"), "membercluster.membership.muster.dev/c\n")
	require.Equal(t, "a b c", accepted(), "a denied cluster stays denied")
	require.Contains(t, f.succeed("accept", "--all"), "No resources found.")
	require.Contains(t, f.fail(exitTimeout, "accept", "a", "--wait", "1ms"), "wait until a has joined")
}
