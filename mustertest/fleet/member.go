package fleet

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/muster-sdk/muster/assembly"
	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

// Join starts a complete agent, which applies Works, for a member cluster, and waits until the member is healthy.
// Member is the client configuration of an administrator of the member cluster. Defaults of options.Membership: Name is
// the given name, Bootstrap is that of the hub, Store is in memory.
//
// The returned function ends the agent as a crash does, and waits until the agent has ended. The member remains in the
// fleet and becomes unhealthy. The agent's state survives stop: a later Join with the same options.Membership.Store
// continues the membership. If the member exists already and is still reported healthy, Join does not wait for a new
// heartbeat.
func (h *Hub) Join(name string, member *rest.Config, options assembly.AgentOptions) (stop func()) {
	h.t.Helper()
	options.Membership = h.withDefaults(name, options.Membership)
	options.InstallDefinitions = true
	stop = mustertest.StartManager(h.t, member, managerOptions(h.scheme), func(mgr manager.Manager) error {
		return assembly.SetupAgent(h.t.Context(), mgr, options)
	})
	mustertest.Eventually(h.t, timeout, "member "+name+" is healthy",
		func() error { return h.healthy(options.Membership.Name) })
	return stop
}

func (h *Hub) withDefaults(name string, o agent.Options) agent.Options {
	if o.Name == "" {
		o.Name = name
	}
	if o.Bootstrap == nil {
		bootstrap := h.Bootstrap()
		o.Bootstrap = agent.BootstrapFunc(func(context.Context) (*registration.Bootstrap, error) { return bootstrap, nil })
	}
	if o.Store == nil {
		o.Store = &testkit.MemoryStore{}
	}
	return o
}

// timePerMember is added to the timeout of JoinHollow for each member. All members join at the same time, so the first
// member becomes healthy only shortly before the last one.
const timePerMember = 300 * time.Millisecond

// HollowOptions are the options of hollow members. With the zero value, the hollow members observe the hub's own
// cluster.
type HollowOptions struct {
	// Member is the cluster that all hollow members observe. Default: the hub's cluster.
	Member *rest.Config

	// Configure changes the options of the agent of one member. The member is named hollow-0000, hollow-0001 and so on
	// unless Configure sets another Name. Name, ClusterID, Bootstrap and Store are set before the call. Default: no
	// change.
	Configure func(index int, options *agent.Options)

	// Timeout limits how long JoinHollow waits until all members are healthy. Default: 2 minutes plus 300 milliseconds per
	// member.
	Timeout time.Duration
}

// JoinHollow starts the agents of hollow members and waits until all of these members are healthy. A hollow member has
// a real agent, which joins, sends heartbeats, reports and leaves like any other agent. It applies no Works. All agents
// observe one cluster and run in one manager.
//
// The returned function ends the agents as a crash does, and waits until they have ended. Their members become
// unhealthy. If the members exist already and are still reported healthy, JoinHollow does not wait for new heartbeats.
func (h *Hub) JoinHollow(count int, o HollowOptions) (stop func()) {
	h.t.Helper()
	if o.Member == nil {
		o.Member = h.config
	}
	if o.Timeout == 0 {
		o.Timeout = timeout + time.Duration(count)*timePerMember
	}
	expected := map[string]bool{}
	mgr := mustertest.Manager(h.t, o.Member, managerOptions(h.scheme))
	for i := range count {
		name := fmt.Sprintf("hollow-%04d", i)
		options := h.withDefaults(name, agent.Options{ClusterID: "id-" + name})
		if o.Configure != nil {
			o.Configure(i, &options)
		}
		require.NoError(h.t, agent.SetupWithManager(mgr, options), "set up the agent of hollow member %s", options.Name)
		expected[options.Name] = true
	}
	stop = mustertest.Run(h.t, fmt.Sprintf("the manager of %d hollow members", count), mgr.Start)
	h.waitForMembers(expected, o.Timeout)
	return stop
}

// waitForMembers waits until all members are healthy. It reads them from a cache, because repeated lists of thousands
// of members are expensive.
func (h *Hub) waitForMembers(names map[string]bool, limit time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	members, err := cache.New(h.config, cache.Options{Scheme: h.scheme})
	require.NoError(h.t, err)
	_, err = members.GetInformer(ctx, &v1alpha1.MemberCluster{}, cache.BlockUntilSynced(false))
	require.NoError(h.t, err)
	defer mustertest.Run(h.t, "the cache of members", members.Start)()
	require.True(h.t, members.WaitForCacheSync(ctx), "list MemberClusters")
	mustertest.Eventually(h.t, limit,
		fmt.Sprintf("%d hollow members are healthy", len(names)), func() error {
			var list v1alpha1.MemberClusterList
			if err := members.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
				return err
			}
			last := fmt.Errorf("the hub has %d MemberClusters", len(list.Items))
			count := 0
			for i := range list.Items {
				if !names[list.Items[i].Name] {
					continue
				}
				if err := healthy(&list.Items[i]); err != nil {
					last = err
					continue
				}
				count++
			}
			if count == len(names) {
				return nil
			}
			return fmt.Errorf("%d are healthy: %w", count, last)
		})
}
