package disaster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// earlierRelease is the last commit before hubs had an identity.
const earlierRelease = "4192d7c"

// TestUpgrade_EarlierPrograms runs hub and agent of the release before hubs had an identity, and replaces one after the
// other by the present ones, in both orders. In between, the old and the new program work together. The test builds the
// earlier release from the history of the repository, so it runs only at full length, in a clone with history.
func TestUpgrade_EarlierPrograms(t *testing.T) {
	t.Parallel()
	if !fullLength {
		t.Skip("set MUSTER_DISASTER=full to build the earlier release from the history of the repository")
	}
	program := buildEarlier(t)
	for _, hubFirst := range []bool{true, false} {
		t.Run(fmt.Sprintf("hub first=%v", hubFirst), func(t *testing.T) {
			inParallel(t, planeCount{hubs: 1, members: 1}, 60)
			w := prepareSystemOn(t, localplane.ForTest(t, hubOptions))
			stopHub := start(t, program, "hub", w.plane.Kubeconfig())
			m := w.newMemberOn("east", localplane.ForTest(t, memberOptions))
			w.members = append(w.members, m)
			m.install(t, w.token(m.name))
			stopAgent := start(t, program, "agent", m.plane.Kubeconfig(), m.name)
			w.setPeriod(m.name)
			w.waitUntilJoined(m.name)
			w.deploy()
			before := m.uids(t)
			require.Empty(t, m.hubID(t), "records of the earlier release have no identity")

			upgradeHub := func() {
				stopHub()
				require.NoError(t, assembly.InstallHubDefinitions(t.Context(), w.client))
				w.prepareHub(w.plane)
				w.startHub()
			}
			upgradeAgent := func() {
				stopAgent()
				w.start(m)
			}
			steps := []func(){upgradeHub, upgradeAgent}
			if !hubFirst {
				steps = []func(){upgradeAgent, upgradeHub}
			}
			for _, upgrade := range steps {
				upgrade()
				m.requireUnchangedFor(t, before, quiet)
				w.waitUntilJoined(m.name)
				w.update()
				m.requireUnchanged(t, before)
			}
			w.eventually("the agent has recorded the identity of the hub", func() error {
				if m.hubID(t) == "" {
					return fmt.Errorf("the record has no identity")
				}
				return nil
			})
			require.Equal(t, w.hubID(), m.hubID(t))
			m.requireUnchangedFor(t, before, quiet)
		})
	}
}

// buildEarlier builds testdata/earlier with the packages of the earlier release.
func buildEarlier(t *testing.T) string {
	t.Helper()
	source := archive(t, earlierRelease)
	main, program := filepath.Join(source, "internal", "earlier"), filepath.Join(t.TempDir(), "earlier")
	require.NoError(t, os.CopyFS(main, os.DirFS(filepath.Join("testdata", "earlier"))))
	command(t, main, "go", "build", "-o", program, ".")
	return program
}

// start runs a program until stop is called, or the test ends. stop kills the program, as in a crash.
func start(t *testing.T, program string, args ...string) (stop func()) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// hubID returns the identity of the hub in the agent's record.
func (m *member) hubID(t testing.TB) string {
	t.Helper()
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: agent.DefaultNamespace, Name: agent.DefaultStoreSecret}
	require.NoError(t, m.client.Get(t.Context(), key, secret))
	var record struct {
		Member struct {
			HubID string `json:"hubID"`
		} `json:"member"`
	}
	require.NoError(t, json.Unmarshal(secret.Data["record"], &record))
	return record.Member.HubID
}

// hubID returns the identity that the hub has stored.
func (w *system) hubID() string {
	w.t.Helper()
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: membership.RegistrationNamespace, Name: membership.HubConfigMap}
	require.NoError(w.t, w.client.Get(w.t.Context(), key, config))
	return config.Data[membership.HubIDKey]
}
