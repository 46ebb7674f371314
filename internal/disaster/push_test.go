package disaster

import (
	"fmt"
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
// moves nothing, not even what a Placement with spec.failover has placed: the hub has no evidence that the members are at
// fault. Delivery goes on when the network is back.
func TestOutage_PushWithoutEgress(t *testing.T) {
	t.Parallel()
	w := prepareWorld(t)
	w.options.Connections = &assembly.Connections{
		Fleet: fleet.Options{ProbeInterval: time.Second, ProbeTimeout: time.Second}, Push: &push.Options{
			Agent: assembly.PushAgent(assembly.AgentOptions{Membership: agent.Options{ProbeInterval: 500 * time.Millisecond}}),
		},
	}
	w.startHub()
	var proxies []*localplane.Proxy
	for _, name := range []string{"east", "west"} {
		m := w.newMember(name)
		proxy, err := localplane.NewProxy(m.plane.Config().Host)
		require.NoError(t, err)
		t.Cleanup(func() { _ = proxy.Close() })
		proxies, w.members = append(proxies, proxy), append(w.members, m)
		w.connect(m, proxy)
	}
	for _, m := range w.members {
		w.joined(m.name)
	}
	w.deploy()
	w.deployMobile()
	before := w.observePlaced()
	require.Len(t, before.decisions["mobile"], 1)

	for _, proxy := range proxies {
		proxy.Stall()
	}
	w.eventually("the hub observes that it does not reach the members", func() error {
		for _, m := range w.members {
			if status := w.health(m.name); status == metav1.ConditionTrue {
				return fmt.Errorf("MemberCluster %s has Healthy=%s", m.name, status)
			}
		}
		return nil
	})
	// Without the guard, the taint of a member that is not ready follows after this time.
	w.staysPlaced(before, lifecycle.NotReadyAfter+outage/2)
	for i, m := range w.members {
		proxies[i].Heal()
		w.joined(m.name)
		w.staysPlaced(before, 2*time.Second)
	}
	w.update("2")
	w.staysPlaced(before, 0)
}

// connect lets the hub reach a member through a proxy, and accepts the member with joinMode Push.
func (w *world) connect(m *member, proxy *localplane.Proxy) {
	w.t.Helper()
	kubeconfig, err := clientcmd.Write(kubeconfigOf(proxy.Config(m.plane.Config())))
	require.NoError(w.t, err)
	require.NoError(w.t, w.client.Create(w.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: membership.ConnectionNamespace, Name: m.name},
		Data:       map[string][]byte{"value": kubeconfig},
	}))
	require.NoError(w.t, w.client.Create(w.t.Context(), &membershipv1alpha1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Spec: membershipv1alpha1.MemberClusterSpec{
			Accepted: new(true), JoinMode: membershipv1alpha1.JoinPush, HeartbeatPeriodSeconds: period,
			KubeConfigSecretRef: &membershipv1alpha1.KubeConfigSecretRef{Name: m.name},
		},
	}))
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
func (w *world) deployMobile() {
	w.t.Helper()
	for _, o := range []client.Object{
		object(w.t, mobilePlacementYAML, &placementv1alpha1.Placement{}), object(w.t, mobileWorkSetYAML, &placementv1alpha1.WorkSet{}),
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
		return fmt.Errorf("no member has it")
	})
}
