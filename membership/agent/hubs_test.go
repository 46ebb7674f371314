package agent

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

// multiHubAgent is an agent with several hubs, and the fixtures of its test.
type multiHubAgent struct {
	phases
	t         *testing.T
	home      *rest.Config // of the member, which is the last hub
	hubs      map[string]*fakeHub
	stores    map[string]*memory
	wires     map[string]*wire
	clock     shifted
	logs      logBuffer
	o         Options
	companion chan Hub // the hub of each call of the companion
	runs      sync.Map // the hubs that the companion runs for

	cancel context.CancelFunc
	done   chan error
}

// hubTimeout passes only when the test shifts the clock.
const hubTimeout = 10 * time.Minute

// ports is the last port in the address of a hub.
var ports atomic.Int32

func newMultiHubAgent(t *testing.T, hubs ...*fakeHub) *multiHubAgent {
	s := &multiHubAgent{t: t, hubs: map[string]*fakeHub{}, stores: map[string]*memory{}, wires: map[string]*wire{},
		companion: make(chan Hub, 100)}
	s.o = Options{Name: "member", HubTimeout: hubTimeout, Clock: &s.clock, OnPhase: s.show, Companions: []Companion{
		CompanionFunc("works", func(ctx context.Context, hub Hub) error {
			s.runs.Store(hub.Name, true)
			defer s.runs.Delete(hub.Name)
			s.companion <- hub
			<-ctx.Done()
			return nil
		}),
	}}
	for _, h := range hubs {
		s.home = h.config
		h.bootstrap.Server += fmt.Sprint(":", ports.Add(1)) // servers in memory have the same name and ignore ports
		s.hubs[h.name], s.stores[h.name], s.wires[h.name] = h, &memory{}, &wire{}
		s.o.Hubs = append(s.o.Hubs,
			HubOptions{Name: h.name, Store: s.stores[h.name], Bootstrap: &deletableBootstrap{bootstrap: h.bootstrap}})
	}
	s.o.HubConfig = func(config *rest.Config) {
		for name, h := range s.hubs {
			if config.Host == h.bootstrap.Server {
				h.connect(config)
				s.wires[name].config(config)
			}
		}
	}
	return s
}

func (s *multiHubAgent) start() *multiHubAgent {
	s.t.Helper()
	h, err := newHubs(s.home, s.logs.logger(), s.o)
	require.NoError(s.t, err)
	h.random = func() float64 { return 0 }
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan error, 1)
	go func() { s.done <- h.Start(ctx) }()
	s.t.Cleanup(s.stop)
	return s
}

func (s *multiHubAgent) stop() {
	s.cancel()
	s.ended()
}

func (s *multiHubAgent) ended() {
	s.t.Helper()
	select {
	case err := <-s.done:
		require.NoError(s.t, err)
		s.done <- nil
	case <-time.After(timeLimit):
		s.t.Fatal("the agent does not end")
	}
}

// requireJoined waits until the agent has joined a hub, and no other one.
func (s *multiHubAgent) requireJoined(name string) Hub {
	s.t.Helper()
	eventually(s.t, "the agent has not joined hub "+name, func() bool {
		last := s.last()
		return last.Phase == lifecycle.Joined && last.Message == "Hub "+name+": The member has joined the hub."
	})
	s.hubs[name].requireHeartbeats()
	for {
		select {
		case hub := <-s.companion:
			if hub.Name == name {
				s.runs.Range(func(other, _ any) bool {
					require.Equal(s.t, name, other, "a companion runs for another hub")
					return true
				})
				return hub
			}
		case <-time.After(timeLimit):
			s.t.Fatal("no companion has the config of hub " + name)
		}
	}
}

// lose calls fail, and waits until the agent has observed that its hub is lost.
func (s *multiHubAgent) lose(fail func()) {
	s.t.Helper()
	const message = "A heartbeat failed, trying again"
	before := s.logs.times(message)
	fail()
	eventually(s.t, "the agent does not observe that its hub is lost",
		func() bool { return s.logs.times(message) > before })
}

func (s *multiHubAgent) reported(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		if strings.Contains(step.Message, text) {
			return true
		}
	}
	return false
}

// TestSeveralHubs checks an agent whose hubs are lost and return, over restarts of the agent.
func TestSeveralHubs(t *testing.T) { testkit.Virtual(t, testSeveralHubs) }

func testSeveralHubs(t *testing.T) {
	a, b := newFakeHub(t, newMemory(t), "hub-a").serve(), newFakeHub(t, newMemory(t), "hub-b").serve()
	s := newMultiHubAgent(t, a, b)
	var cleaned sync.Map
	for i := range s.o.Hubs {
		name := s.o.Hubs[i].Name
		s.o.Hubs[i].Cleaners = []membership.LeaveGate{membership.GateFunc("works",
			func(context.Context, membership.Member) ([]string, error) {
				cleaned.Store(name, true)
				return nil, nil
			})}
	}
	s.start()
	s.requireJoined("hub-a")
	first := s.stores["hub-a"].parsed(t)
	require.Empty(t, s.wires["hub-b"].take(), "the agent sends no request to the second hub")
	s.wires["hub-a"].take()
	a.requireHeartbeats()
	got := s.wires["hub-a"].take()
	require.Equal(t, map[string]int{"PUT leases/heartbeat": got["PUT leases/heartbeat"]}, got,
		"an agent in steady state sends only heartbeats")

	// The first hub is lost.
	s.lose(a.network.Stop)
	s.clock.shift(hubTimeout)
	hub := s.requireJoined("hub-b")
	require.Equal(t, b.bootstrap.Server, hub.Config.Host)
	require.Equal(t, b.memberNamespace(), hub.Member.Namespace)
	require.True(t, s.reported("Switching to hub hub-b: hub hub-a has accepted no heartbeat since "),
		"the reason is not reported")
	require.NotEqual(t, first.ClaimKey, s.stores["hub-b"].parsed(t).ClaimKey,
		"the hubs have different claim keys")

	// The first hub responds again. The agent does not return, also not after a restart.
	a.network.Heal()
	s.clock.shift(2 * hubTimeout)
	b.requireHeartbeats()
	require.Equal(t, "Hub hub-b: The member has joined the hub.", s.last().Message)
	s.stop()
	s.start()
	s.requireJoined("hub-b")

	// The second hub denies the member. The record of the first hub is still valid.
	s.wires["hub-a"].take()
	s.clock.shift(hubTimeout) // since the switch or the start
	s.lose(func() {
		b.revokeAccess(func(request *v1alpha1.JoinRequest) { b.writeAnswer(request, v1alpha1.AnswerDenied, nil) })
	})
	eventually(t, "the agent does not observe the refusal", func() bool {
		return s.reported("The hub refuses the agent's credential. The agent retries")
	})
	s.clock.shift(lifecycle.ShutOutTimeout)
	s.requireJoined("hub-a")
	require.True(t, s.reported("Switching to hub hub-a: hub hub-b refuses the agent."), "the reason is not reported")
	second := s.stores["hub-a"].parsed(t)
	require.Equal(t, first.ClaimKey, second.ClaimKey)
	require.Equal(t, first.Member.UID, second.Member.UID)
	require.Zero(t, s.wires["hub-a"].take()["POST joinrequests"], "the agent sent another JoinRequest")
	for _, h := range []*fakeHub{a, b} {
		_, called := cleaned.Load(h.name)
		require.False(t, called, "the member is not cleaned up because a hub is lost")
	}

	// The first hub requests a permanent leave. The agent leaves and switches to the second hub. After a permanent leave
	// from the second hub, the agent is done.
	a.change(func(spec *v1alpha1.MembershipSpec) {
		spec.State, spec.Rejoin, spec.Clean = v1alpha1.StateLeave, false, true
	})
	eventually(t, "the agent does not switch to the second hub", func() bool {
		return s.reported("Switching to hub hub-b: hub hub-a has released this member.")
	})
	require.True(t, a.clean())
	_, called := cleaned.Load("hub-a")
	require.True(t, called)
	_, called = cleaned.Load("hub-b")
	require.False(t, called, "objects of another hub were cleaned up")
	b.restoreAccess()
	s.requireJoined("hub-b")
	b.change(func(spec *v1alpha1.MembershipSpec) {
		spec.State, spec.Rejoin, spec.Clean = v1alpha1.StateLeave, false, true
	})
	s.ended()
	require.True(t, b.clean())
	for _, store := range s.stores {
		require.Empty(t, store.record)
	}
}

// revokeAccess revokes the agent's permissions, and answers its next request with answer.
func (h *fakeHub) revokeAccess(answer func(*v1alpha1.JoinRequest)) {
	h.t.Helper()
	h.setAnswer(answer)
	h.deleteRequests()
	require.NoError(h.t, h.c.Delete(h.t.Context(), h.binding()))
}

// restoreAccess reverts revokeAccess.
func (h *fakeHub) restoreAccess() {
	h.t.Helper()
	h.setAnswer(nil)
	h.reopen()
}

// TestSeveralHubs_NoneResponds checks that an agent that reaches none of its hubs stays at its hub, and that its
// companions continue.
func TestSeveralHubs_NoneResponds(t *testing.T) { testkit.Virtual(t, testSeveralHubsNoneResponds) }

func testSeveralHubsNoneResponds(t *testing.T) {
	server := newMemory(t)
	a, b := newFakeHub(t, server, "cut-a").serve(), newFakeHub(t, server, "cut-b").serve()
	s := newMultiHubAgent(t, a, b).start()
	s.requireJoined("cut-a")
	s.lose(func() {
		a.network.Cut()
		b.network.Cut()
	})
	s.clock.shift(hubTimeout)
	eventually(t, "the agent does not report that no hub responds",
		func() bool { return s.reported(", and no other hub responds.") })
	s.clock.shift(hubTimeout)
	_, runs := s.runs.Load("cut-a")
	require.True(t, runs, "the companion has ended")
	require.Empty(t, s.stores["cut-b"].record)
	a.network.Heal()
	a.requireHeartbeats()
	require.False(t, s.reported("Switching to hub"))
	eventually(t, "the agent does not report that its hub responds again",
		func() bool { return s.last().Message == "Hub cut-a: The member has joined the hub." })
	require.Equal(t, 1, s.wires["cut-a"].take()["POST joinrequests"])

	eventually(t, "the agent does not log that heartbeats are accepted again",
		func() bool { return s.logs.times("The hub accepts heartbeats again") > 0 })

	// The agent switches to a hub that responds, also if the hub has not decided yet.
	b.setAnswer(func(request *v1alpha1.JoinRequest) { b.writeAnswer(request, v1alpha1.AnswerHeld, nil) })
	s.lose(a.network.Cut)
	b.network.Heal()
	s.clock.shift(hubTimeout)
	eventually(t, "the agent does not switch to the hub that responds",
		func() bool { return s.reported("Hub cut-b: The JoinRequest is pending") })
	a.network.Heal()
	s.clock.shift(hubTimeout)
	s.requireJoined("cut-a")
	require.True(t, s.reported("Switching to hub cut-a: hub cut-b has accepted no heartbeat since "),
		"the reason is not reported")
}

// TestHubs_BeginFromRecords checks the current hub for records of several hubs, as they are after an agent was killed
// at any line.
func TestHubs_BeginFromRecords(t *testing.T) {
	of := func(r record) []byte {
		data, err := r.marshal()
		require.NoError(t, err)
		return data
	}
	for _, tc := range []struct {
		reason   string
		records  [][]byte
		want     int
		switched bool
	}{
		{"no records", [][]byte{nil, nil}, 0, false},
		{"no record of a switch", [][]byte{nil, of(record{ClusterID: "id"})}, 0, false},
		{"the agent switched to the second hub", [][]byte{of(record{ClusterID: "id"}),
			of(record{hubTurn: hubTurn{Turn: 1}})}, 1,
			true},
		{"the agent switched to the second hub and back", [][]byte{of(record{hubTurn: hubTurn{Turn: 2}}),
			of(record{hubTurn: hubTurn{Turn: 1}})}, 0, true},
		{"an invalid record is ignored", [][]byte{[]byte("{"), of(record{hubTurn: hubTurn{Turn: 1}})}, 1,
			true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := &hubs{Options: Options{}.withDefaults()}
			for _, data := range tc.records {
				h.Hubs = append(h.Hubs, HubOptions{Store: &memory{record: data}})
			}
			require.NoError(t, h.begin(t.Context()))
			require.Equal(t, tc.want, h.at.hub)
			require.Equal(t, tc.switched, !h.at.since.IsZero(), "the time of the switch is set after a switch only")
		})
	}
}

// TestStartOver_KeepsTurn checks that startOver keeps the turn in the record. Otherwise another hub would be the
// current one after a restart.
func TestStartOver_KeepsTurn(t *testing.T) {
	store := &memory{}
	a := &agent{Options: Options{Store: store}, companions: &companions{},
		state: persistedState{record: record{ClusterID: "id", Member: &registered{}, hubTurn: hubTurn{Turn: 3}}}}
	require.NoError(t, a.startOver(t.Context()))
	require.Equal(t, record{Version: recordVersion, removalProgress: removalProgress{Kept: true},
		hubTurn: hubTurn{Turn: 3}}, store.parsed(t))
}

// TestHubs_ProbeWithoutCredential checks that a hub that is not the current one is probed without a credential.
func TestHubs_ProbeWithoutCredential(t *testing.T) {
	status := http.StatusOK
	var requests []string
	server := tlsServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path+r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	o := Options{HubConfig: func(c *rest.Config) { c.BearerToken = "secret" }}.withDefaults()
	h := &hubs{Options: o, log: logr.Discard()}
	url, ca := server.at("/hub")
	valid := &registration.Bootstrap{Server: url, CA: ca, Token: "secret"}
	probe := func(bootstrap *registration.Bootstrap, r record) bool {
		data, err := r.marshal()
		require.NoError(t, err)
		h.Hubs = []HubOptions{{Store: &memory{record: data}, Bootstrap: &deletableBootstrap{bootstrap: bootstrap}}}
		return h.answers(t.Context(), 0)
	}
	joined := record{Member: &registered{Server: url, CA: ca, Credential: credential{Token: "secret"}}}
	require.True(t, probe(valid, record{}))
	require.True(t, probe(nil, joined), "a hub that the agent had joined needs no bootstrap credential")
	require.True(t, probe(&registration.Bootstrap{Server: "https://127.0.0.1:1", CA: ca}, joined),
		"the recorded address is probed as well")
	require.False(t, probe(nil, record{}), "no address is known")
	require.False(t, probe(&registration.Bootstrap{Server: url}, record{}), "the certificate of the server is invalid")
	status = http.StatusUnauthorized
	require.True(t, probe(valid, record{}), "a server that refuses requests responds")
	status = http.StatusServiceUnavailable
	require.False(t, probe(valid, record{}), "a proxy without a server does not respond")
	for _, request := range requests {
		require.Equal(t, "/hub/readyz", request)
	}
}

// TestSeveralHubs_StuckCompanion checks that a companion that does not return in time is not called concurrently for
// another hub.
func TestSeveralHubs_StuckCompanion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, names := make(chan struct{}), make(chan string, 10)
		h, err := newHubs(&rest.Config{Host: "http://127.0.0.1:1"}, logr.Discard(), Options{
			Hubs: []HubOptions{{Name: "a"}, {Name: "b"}},
			Companions: []Companion{CompanionFunc("hanging", func(_ context.Context, hub Hub) error {
				names <- hub.Name
				<-release
				return nil
			})},
		})
		require.NoError(t, err)
		at := func(i int) *companions {
			a, err := h.agent(i)
			require.NoError(t, err)
			return a.companions
		}
		a, b := at(0), at(1)
		require.NoError(t, a.run(t.Context(), unreachableHub(t), membership.Member{}))
		require.Equal(t, "a", <-names)
		a.end()
		require.NoError(t, b.run(t.Context(), unreachableHub(t), membership.Member{}))
		synctest.Wait()
		require.Empty(t, names, "the companion runs twice concurrently")
		close(release)
		require.Equal(t, "b", <-names)
		b.end()
	})
}

func TestOptions_ValidateHubs(t *testing.T) {
	gate := membership.GateFunc("works", nil)
	for _, tc := range []struct {
		reason string
		o      Options
		want   string
	}{
		{"two hubs", Options{Hubs: []HubOptions{{Name: "a"}, {Name: "b"}}}, ""},
		{"cleaners of different hubs with one name are valid",
			Options{Hubs: []HubOptions{{Name: "a", Cleaners: []membership.LeaveGate{gate}},
				{Name: "b", Cleaners: []membership.LeaveGate{gate}}}}, ""},
		{"a name that is not valid in the name of a Secret", Options{Hubs: []HubOptions{{Name: "Hub A"}}}, "Hubs[0].Name: "},
		{"a hub without a name", Options{Hubs: []HubOptions{{Name: "a"}, {}}}, "Hubs[1].Name: "},
		{"two hubs with one name",
			Options{Hubs: []HubOptions{{Name: "a"}, {Name: "a"}}}, `Hubs[1].Name: is "a", the name of another`},
		{"a store for all hubs", Options{Hubs: []HubOptions{{Name: "a"}}, Store: &memory{}},
			"Store: must not be set together with Hubs"},
		{"a bootstrap credential for all hubs", Options{Hubs: []HubOptions{{Name: "a"}}, Bootstrap: &deletableBootstrap{}},
			"Bootstrap: must not be set together with Hubs"},
		{"a cleaner of a hub with the name of a cleaner of all hubs",
			Options{Cleaners: []membership.LeaveGate{gate},
				Hubs: []HubOptions{{Name: "a", Cleaners: []membership.LeaveGate{gate}}}},
			`Hubs[0].Cleaners[0]: has the name "works" of another`},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h, err := newHubs(&rest.Config{Host: "http://127.0.0.1:1"}, logr.Discard(), tc.o)
			if tc.want == "" {
				require.NoError(t, err)
				for i, hub := range h.Hubs {
					require.Equal(t, "muster-agent-"+hub.Name, hub.Store.(*secretStore).name)
					require.Equal(t, "muster-bootstrap-"+hub.Name, hub.Bootstrap.(*secretBootstrap).name)
					require.Nil(t, tc.o.Hubs[i].Store, "the user's options were changed")
				}
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.ErrorAs(t, err, new(*membership.InvalidError))
		})
	}
}
