package disaster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonv1alpha1 "github.com/muster-sdk/muster/addon/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	tenancyv1alpha1 "github.com/muster-sdk/muster/tenancy/v1alpha1"
)

// upgradeVariable names the commit whose programs TestUpgrade_PreviousState upgrades. The value "previous" is the
// newest commit of origin/main that HEAD contains, or the parent of HEAD if that is HEAD itself.
const upgradeVariable, previous = "MUSTER_UPGRADE", "previous"

// TestUpgrade_PreviousState runs the programs examples/hub and examples/agent of an earlier commit, and replaces one
// after the other by those of this tree, in both orders: the hub of one version and the agent of the other deliver a
// change, and nothing on the member is deleted or created again.
func TestUpgrade_PreviousState(t *testing.T) {
	t.Parallel()
	commit := previousState(t)
	t.Logf("The programs of commit %s are upgraded.", commit)
	before, after := buildPrograms(t, archive(t, commit)), buildPrograms(t, filepath.Join("..", ".."))
	for _, test := range []struct {
		name     string
		hubFirst bool
	}{{"new hub with old agent", true}, {"old hub with new agent", false}} {
		t.Run(test.name, func(t *testing.T) {
			inParallel(t, planeCount{hubs: 1, members: 1}, 60)
			w := &system{t: t, whole: t, plane: localplane.ForTest(t, localplane.Options{Name: "hub"})}
			w.client = mustertest.Client(t, w.plane.Config(), newScheme())
			stopHub := runProgram(t, before, "hub", w.plane)
			m := w.newMemberOn("east", localplane.ForTest(t, memberOptions))
			w.members = append(w.members, m)
			m.install(t, w.token(m.name))
			agentFlags := []string{"--works", "--name=" + m.name}
			stopAgent := runProgram(t, before, "agent", m.plane, agentFlags...)
			w.setPeriod(m.name)
			w.waitUntilJoined(m.name)
			w.bind("apps")
			w.createAddonTemplate()
			w.deploy()
			uids := m.uids(t)

			upgrades := []func(){
				func() { stopHub(); runProgram(t, after, "hub", w.plane) },
				func() { stopAgent(); runProgram(t, after, "agent", m.plane, agentFlags...) },
			}
			if !test.hubFirst {
				upgrades[0], upgrades[1] = upgrades[1], upgrades[0]
			}
			for _, upgrade := range upgrades {
				upgrade()
				m.requireUnchangedFor(t, uids, quiet)
				w.waitUntilJoined(m.name)
				w.update()
				m.requireUnchanged(t, uids)
			}
			require.Equal(t, w.hubID(), m.hubID(t))
			require.NoError(t, w.client.Delete(t.Context(), workSet(t)))
			w.eventually("the objects of the deleted WorkSet are deleted", func() error {
				key := client.ObjectKey{Namespace: "shop", Name: "config"}
				return checkNotFound(m.client.Get(t.Context(), key, &corev1.ConfigMap{}))
			})
		})
	}
}

// checkNotFound returns an error unless the result of a Get is that the object does not exist.
func checkNotFound(err error) error {
	if err == nil {
		return errors.New("the object exists")
	}
	return client.IgnoreNotFound(err)
}

// previousState returns the commit that upgradeVariable names. It skips the test if the variable is empty, or if the
// clone does not contain the history.
func previousState(t *testing.T) string {
	t.Helper()
	requested := os.Getenv(upgradeVariable)
	if requested == "" {
		t.Skipf("set %s=%s, or to a commit, to build programs of the history of the repository", upgradeVariable, previous)
	}
	head, err := git(t, "rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		t.Skipf("this is no clone of a git repository: %v", err)
	}
	if requested != previous {
		commit, err := git(t, "rev-parse", "--verify", requested+"^{commit}")
		require.NoError(t, err, "%s must be a commit of this clone, or %q", upgradeVariable, previous)
		return commit
	}
	if commit, err := git(t, "merge-base", "origin/main", "HEAD"); err == nil && commit != head {
		return commit
	}
	commit, err := git(t, "rev-parse", "--verify", "HEAD~1^{commit}")
	if err != nil {
		t.Skipf("this clone contains neither a commit of origin/main before %s nor its parent: fetch the history", head)
	}
	return commit
}

func git(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", errors.New(strings.TrimSpace(err.Error() + ": " + stderr.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

// archive returns a folder with the files of a commit.
func archive(t *testing.T, commit string) string {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(t.TempDir(), "source.tar")
	command(t, filepath.Join("..", ".."), "git", "archive", "--output="+file, commit)
	command(t, folder, "tar", "-xf", file)
	return folder
}

// buildPrograms builds examples/hub and examples/agent of a source tree, and returns the folder with both.
func buildPrograms(t *testing.T, source string) string {
	t.Helper()
	folder := t.TempDir()
	command(t, source, "go", "build", "-o", folder+string(filepath.Separator), "./examples/hub", "./examples/agent")
	return folder
}

func command(t *testing.T, folder, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = folder
	output, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s: %s", cmd, output)
}

// runProgram runs a program as the administrator of a plane, until stop is called or the test ends. A program that ends
// earlier fails the test.
func runProgram(t *testing.T, folder, name string, plane *localplane.Plane, args ...string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, filepath.Join(folder, name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = sync.OnceFunc(func() {
		select {
		case err := <-ended:
			t.Errorf("%s ended before it was stopped: %v", cmd, err)
		default:
			cancel()
			t.Logf("%s was stopped: %v", cmd, <-ended)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", cmd, output.String())
		}
	})
	t.Cleanup(func() { stop(); cancel() })
	return stop
}

// bind creates a namespace whose Placements may select all clusters.
func (w *system) bind(namespace string) {
	w.t.Helper()
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&tenancyv1alpha1.ClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "global"},
			Spec:       tenancyv1alpha1.ClusterSetBindingSpec{ClusterSetName: "global"},
		},
	} {
		w.eventually(o.GetName()+" is created", func() error { return w.client.Create(w.t.Context(), o) })
	}
}

// createAddonTemplate creates the add-on of the tests as a template, for hubs without add-ons in Go.
func (w *system) createAddonTemplate() {
	w.t.Helper()
	deployment := strings.ReplaceAll(deploymentYAML, "web", "greeter")
	deployment = strings.ReplaceAll(deployment, ", namespace: shop", "")
	text := "apiVersion: addon.muster.dev/v1alpha1\nkind: AddonTemplate\nmetadata: {name: greeter}\n" +
		"spec:\n  manifests:\n  - " + strings.ReplaceAll(strings.TrimSpace(deployment), "\n", "\n    ") + "\n"
	require.NoError(w.t, w.client.Create(w.t.Context(), object(w.t, text, &addonv1alpha1.AddonTemplate{})))
	installed := object(w.t, addonYAML, &addonv1alpha1.Addon{})
	installed.Spec.Configs = []addonv1alpha1.ConfigKind{{
		Group: addonv1alpha1.GroupName, Resource: "addontemplates", Defaults: []addonv1alpha1.ObjectName{{Name: "greeter"}},
	}}
	require.NoError(w.t, w.client.Create(w.t.Context(), installed))
}
