package push

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/fleet"
	"github.com/muster-sdk/muster/membership/internal/clusterid"
	"github.com/muster-sdk/muster/membership/lifecycle"
)

const (
	// requestTimeout is the timeout of each request.
	requestTimeout = 10 * time.Second
	// recallTimeout is the timeout for identifying a member whose agent has run before: a member that does not respond
	// must not delay the heartbeats of its agent.
	recallTimeout = 2 * time.Second
)

// member runs the agent of one member.
type member struct {
	*Runner
	connected fleet.Connected
	name      string
	store     agent.Store
	log       logr.Logger
}

func (r *Runner) member(connected fleet.Connected) *member {
	name := connected.Cluster.Name
	return &member{
		Runner: r, connected: connected, name: name, log: logf.Log.WithName("muster-push").WithValues("member", name),
		store: agent.SecretStore(ownedSecrets{r.secrets, connected.Cluster}, storeName(connected.Cluster)),
	}
}

// observe reads the state of a member whose agent is not running.
func (m *member) observe(ctx context.Context) (observed, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	cluster, err := m.cluster(ctx, m.name, m.connected.Cluster.UID)
	if err != nil || cluster == nil {
		return observed{}, err
	}
	record, err := m.store.Load(ctx)
	return observed{cluster: cluster, recorded: record != nil}, err
}

// serve runs the agent until it must stop or the member has left. After a leave it removes the agent's state from the
// hub.
func (m *member) serve(ctx context.Context, seen observed, changed <-chan struct{}) error {
	clusterID, err := m.identify(ctx, seen)
	if err != nil {
		return err
	}
	if err := m.takeOver(ctx, seen); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	left := false
	runnable, err := agent.New(m.agentOptions(clusterID, func() { left = true; stop() }))
	if err != nil {
		return fmt.Errorf("create the agent of member %s: %w", m.name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- runnable.Start(running) }()
	for {
		select {
		case err := <-ended:
			if left && err == nil {
				return m.forget(ctx)
			}
			return err
		case <-changed:
			cluster, err := m.cluster(ctx, m.name, m.connected.Cluster.UID)
			if err != nil || next(observed{cluster: cluster, recorded: true}) != serving {
				stop()
			}
		}
	}
}

// agentOptions returns the options of the member's agent. The agent calls left once, when the member has left and the
// hub has observed that the member is clean.
func (m *member) agentOptions(clusterID string, left func()) agent.Options {
	connected := m.connected
	connected.Config = rest.CopyConfig(connected.Config)
	o := m.options.Agent(connected)
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	bootstrap := &bootstrap{member: m, clusterID: clusterID, clock: o.Clock}
	o.Name, o.ClusterID, o.Labels = m.name, clusterID, nil
	o.Member, o.Store, o.Bootstrap = m.connected.Config, m.store, bootstrap
	if o.Log.IsZero() {
		o.Log = m.log
	}
	configure := o.HubConfig
	o.HubConfig = func(config *rest.Config) {
		// The address that the agent recorded when it joined may be outdated.
		config.Host, config.TLSClientConfig = m.hub.Host, m.hub.TLSClientConfig
		config.Proxy, config.Dial, config.UserAgent = m.hub.Proxy, m.hub.Dial, m.hub.UserAgent
		if configure != nil {
			configure(config)
		}
	}
	onPhase := o.OnPhase
	o.OnPhase = func(step lifecycle.AgentStep) {
		bootstrap.phase = step.Phase
		if onPhase != nil {
			onPhase(step)
		}
		if step.Phase == lifecycle.Left {
			left() // before the agent makes another JoinRequest: the runner decides when the agent may come back
		}
	}
	o.Companions = append([]agent.Companion{agent.CompanionFunc("muster-join-token",
		func(ctx context.Context, _ agent.Hub) error {
			return m.withdraw(ctx) // it has done its work
		})}, o.Companions...)
	return o
}

// identify returns the ID of the cluster that the kubeconfig leads to, and ensures that it is the cluster ID of this
// MemberCluster and of no other one.
func (m *member) identify(ctx context.Context, seen observed) (string, error) {
	wanted := seen.cluster.Spec.ClusterID
	recalled, timeout := seen.recorded && wanted != "", requestTimeout
	if recalled {
		timeout = recallTimeout
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	id, err := clusterid.Of(asking, m.connected.Config)
	switch {
	case err != nil && recalled:
		m.log.Info("Cannot determine the identity of the member, its agent continues with the recorded one", "why",
			err.Error())
		return wanted, nil
	case err != nil:
		return "", fmt.Errorf("determine the identity of member %s: %w", m.name, err)
	case wanted != "" && id != wanted:
		return "", fmt.Errorf("member %s is cluster %s, and its kubeconfig connects to cluster %s: correct the kubeconfig, "+
			"or create another MemberCluster", m.name, wanted, id)
	case wanted == id && seen.recorded:
		return id, nil
	}
	return id, m.ids.Reserve(ctx, seen.cluster, id)
}

// takeOver clears the claim of a MemberCluster whose key is lost, so that the agent can create another claim. identify
// has verified on the member that the kubeconfig, which an administrator provided, leads to the cluster of the
// MemberCluster. Nothing changes on the member. If another agent has the key nevertheless, its request is pending, and
// it keeps its workloads.
func (m *member) takeOver(ctx context.Context, seen observed) error {
	switch claimOf(seen) {
	case claimUsable:
		return nil
	case claimTaken:
		return fmt.Errorf("start the agent of member %s: another agent has claimed the MemberCluster and sends heartbeats: "+
			"stop that agent, or set spec.joinMode to Pull", m.name)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	// Both preconditions: the claim must be the one that the decision is about.
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": seen.cluster.UID, "resourceVersion": seen.cluster.ResourceVersion},
		"spec":     map[string]any{"claim": nil},
	})
	if err != nil {
		return err
	}
	lost := seen.cluster.Spec.Claim
	if err := m.client.Patch(ctx, seen.cluster, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("clear spec.claim of MemberCluster %s, whose key is lost: %w", m.name, err)
	}
	m.log.Info("The claim of the MemberCluster was cleared, because no agent has its key. The agent creates another claim",
		"claim", lost)
	return nil
}

// withdraw deletes the JoinToken of the agent.
func (m *member) withdraw(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	token := m.newToken("")
	if err := client.IgnoreNotFound(m.client.Delete(ctx, token)); err != nil {
		return fmt.Errorf("delete JoinToken %s: %w", token.Name, err)
	}
	return nil
}

// forget deletes the state of the member's agent from the hub.
func (m *member) forget(ctx context.Context) error {
	if err := m.withdraw(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return m.store.Delete(ctx)
}
