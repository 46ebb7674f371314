package disaster

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/push"
	membershipv1alpha1 "github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
	"github.com/muster-sdk/muster/mustertest/localplane"
	placementv1alpha1 "github.com/muster-sdk/muster/placement/v1alpha1"
)

// TestOutage_PushWithoutEgress checks that a hub which cannot reach any of its members with joinMode Push deletes and
// moves nothing, not even the workloads of a Placement with spec.failover: the hub has no evidence that the members
// have failed, although a member with joinMode Pull sends heartbeats. Delivery continues when the network is restored.
func TestOutage_PushWithoutEgress(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 3}, 100)
	w := preparePush(t)
	var proxies []*localplane.Proxy
	for _, name := range []string{"east", "west"} {
		m := w.newMember(name)
		proxy, err := localplane.NewProxy(m.plane.Config().Host)
		require.NoError(t, err)
		t.Cleanup(func() { _ = proxy.Close() })
		proxies, w.members = append(proxies, proxy), append(w.members, m)
		w.connect(m, proxy.Config(m.plane.Config()))
	}
	for _, m := range w.members {
		w.waitUntilJoined(m.name)
	}
	pushed := slices.Clone(w.members)
	w.join("north")
	w.deploy()
	w.deployMobile()
	before := w.observePlaced()
	require.Subset(t, []string{"east", "west"}, before.decisions["mobile"])
	require.Len(t, before.decisions["mobile"], 1)

	for _, proxy := range proxies {
		proxy.Stall()
	}
	w.eventually("the hub observes that it does not reach the members", func() error {
		for _, m := range pushed {
			if status := w.health(m.name); status == metav1.ConditionTrue {
				return fmt.Errorf("MemberCluster %s has Healthy=%s", m.name, status)
			}
		}
		return nil
	})
	// Without the guard, the taint of a member that is not ready follows after this time.
	w.requirePlacedFor(before, lifecycle.NotReadyAfter+outage/2)
	for i, m := range pushed {
		proxies[i].Heal()
		w.waitUntilJoined(m.name)
		w.requirePlacedFor(before, 2*time.Second)
	}
	w.update()
	w.requirePlacedFor(before, 0)
}

// TestPush checks that one member with joinMode Push survives the loss of the objects that its hub stores for the
// member.
func TestPush(t *testing.T) {
	inParallel(t, planeCount{hubs: 1, members: 1}, 100)
	w := preparePush(t)
	w.token("early") // A JoinToken has a credential only after the hub has created its own objects.
	empty, err := w.plane.Snapshot(t.Context())
	require.NoError(t, err)
	m := w.newMember("east")
	w.members = append(w.members, m)
	w.connect(m, m.plane.Config())
	w.waitUntilJoined(m.name)
	w.deploy()
	w.step("RestoreOlderThanTheMember", func(t *testing.T) { w.pushRestoreOlderThanTheMember(t, empty) })
	w.step("RestoreUnderRunningProcesses", w.pushRestoreUnderRunningProcesses)
	w.step("RecreatedWithAnotherUID", w.pushRecreatedWithAnotherUID)
}

// pushRecreatedWithAnotherUID checks that a MemberCluster with joinMode Push which a backup tool deletes and
// creates again from YAML adopts its member. The record of the agent on the hub is lost with the former MemberCluster.
func (w *system) pushRecreatedWithAnotherUID(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	before := m.uids(t)

	w.stopHub()
	cluster := w.removeMember(m.name)
	w.removeNamespace("member-east")
	w.eventually("the record of the agent is collected as garbage", func() error {
		secrets := &corev1.SecretList{}
		if err := w.client.List(ctx, secrets, client.MatchingLabels{membership.MemberLabel: m.name}); err != nil {
			return err
		}
		if len(secrets.Items) > 0 {
			return fmt.Errorf("Secret %s exists", secrets.Items[0].Name)
		}
		return nil
	})
	restored := &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: cluster.Labels}, Spec: cluster.Spec,
	}
	require.NoError(t, w.client.Create(ctx, restored))
	w.startHub()

	w.waitUntilJoinedAs(restored)
	m.requireUnchangedFor(t, before, quiet)
	w.apply()
	w.update()
	m.requireUnchanged(t, before)
}

// pushRestoreUnderRunningProcesses puts the hub's etcd back to an earlier state while the hub and its agent for
// the member run. The member does not change, and changes reach it again afterwards.
func (w *system) pushRestoreUnderRunningProcesses(t *testing.T) {
	m, ctx := w.members[0], t.Context()
	snapshot, err := w.plane.Snapshot(ctx)
	require.NoError(t, err)
	earlier := w.version
	w.update()
	before := m.uids(t)
	w.churn()

	require.NoError(t, w.plane.Restore(ctx, snapshot))
	w.waitUntilWritesEnd(time.Minute)
	m.requireUnchanged(t, before)
	w.waitUntilJoined(m.name)
	w.version = earlier
	w.waitForWorkloads(m) // The desired version of the restored hub.
	w.update()
	m.requireUnchanged(t, before)
}

// pushRestoreOlderThanTheMember puts the hub's etcd back to a state before the member was connected. The member
// keeps everything. When an administrator connects it again, the hub adopts it.
func (w *system) pushRestoreOlderThanTheMember(t *testing.T, snapshot *localplane.Snapshot) {
	m := w.members[0]
	before := m.uids(t)
	w.churn()

	require.NoError(t, w.plane.Restore(t.Context(), snapshot))
	m.requireUnchangedFor(t, before, 2*quiet)
	w.connect(m, m.plane.Config())
	w.waitUntilJoined(m.name)
	w.apply()
	w.update()
	m.requireUnchanged(t, before)
}

// preparePush starts a hub that runs the agents of members with joinMode Push.
func preparePush(t *testing.T) *system {
	t.Helper()
	w := prepareSystem(t)
	w.options.Connections = &assembly.Connections{Push: &push.Options{}}
	if !fullLength {
		w.options.Connections.Fleet = fleet.Options{ProbeInterval: time.Second, ProbeTimeout: time.Second}
		w.options.Connections.Push.Agent = assembly.PushAgent(assembly.AgentOptions{
			Membership: agent.Options{ProbeInterval: 500 * time.Millisecond},
		})
	}
	w.startHub()
	return w
}

// connect stores a configuration by which the hub reaches a member, and accepts the member with joinMode Push.
func (w *system) connect(m *member, config *rest.Config) {
	w.t.Helper()
	kubeconfig, err := clientcmd.Write(kubeconfigOf(config))
	require.NoError(w.t, err)
	require.NoError(w.t, w.client.Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: m.name},
		Data:       map[string][]byte{"value": kubeconfig},
	}))
	// A restarted API server can deny this for a while, as accept explains.
	w.eventually("MemberCluster "+m.name+" is created", func() error {
		return w.client.Create(w.t.Context(), &membershipv1alpha1.MemberCluster{
			ObjectMeta: metav1.ObjectMeta{Name: m.name},
			Spec: membershipv1alpha1.MemberClusterSpec{
				Accepted: new(true), JoinMode: membershipv1alpha1.JoinPush, HeartbeatPeriodSeconds: period,
				KubeConfigSecretRef: &membershipv1alpha1.KubeConfigSecretRef{Name: m.name},
			},
		})
	})
}

func kubeconfigOf(config *rest.Config) clientcmdapi.Config {
	const name = "member"
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{
			name: {Server: config.Host, CertificateAuthorityData: config.CAData},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{
			name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData},
		},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

const mobilePlacementYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: Placement
metadata: {name: mobile, namespace: apps}
spec:
  policy: {type: PickN, numberOfClusters: 1}
  failover: {replace: EvictFirst, maxEvictions: 10}
`

const mobileWorkSetYAML = `
apiVersion: placement.muster.dev/v1alpha1
kind: WorkSet
metadata: {name: mobile, namespace: apps}
spec:
  placements: [{name: mobile}]
  manifests:
  - {apiVersion: v1, kind: ConfigMap, metadata: {name: mobile, namespace: default}}
`

// deployMobile places a ConfigMap on one member, from which failover may move it, and waits until it exists there.
func (w *system) deployMobile() {
	w.t.Helper()
	for _, o := range []client.Object{
		object(w.t, mobilePlacementYAML, &placementv1alpha1.Placement{}), object(w.t, mobileWorkSetYAML,
			&placementv1alpha1.WorkSet{}),
	} {
		mustertest.Eventually(w.t, timeout, "create "+o.GetName(), func() error {
			return client.IgnoreAlreadyExists(w.client.Create(w.t.Context(), o))
		})
	}
	w.eventually("one member has ConfigMap default/mobile", func() error {
		for _, m := range w.members {
			err := m.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "mobile"}, &corev1.ConfigMap{})
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				return nil
			}
		}
		return fmt.Errorf("no member has the ConfigMap")
	})
}
