package agent

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest/localplane"
)

// several is an agent with several hubs, and the fixtures of its test.
type several struct {
	phases
	t      *testing.T
	hubs   map[string]*byHand
	stores map[string]*memory
	wires  map[string]*wire
	clock  shifted
	logs   logged
	o      Options
	beside chan Hub // each time that its companion is called
	runs   sync.Map // the hubs that it runs for

	cancel context.CancelFunc
	done   chan error
}

// hubTimeout passes only when the test shifts the clock.
const hubTimeout = 10 * time.Minute

func newSeveral(t *testing.T, hubs ...*byHand) *several {
	s := &several{t: t, hubs: map[string]*byHand{}, stores: map[string]*memory{}, wires: map[string]*wire{},
		beside: make(chan Hub, 100)}
	s.o = Options{Name: "member", HubTimeout: hubTimeout, Clock: &s.clock, OnPhase: s.show, Companions: []Companion{
		CompanionFunc("works", func(ctx context.Context, hub Hub) error {
			s.runs.Store(hub.Name, true)
			defer s.runs.Delete(hub.Name)
			s.beside <- hub
			<-ctx.Done()
			return nil
		}),
	}}
	for _, h := range hubs {
		s.hubs[h.name], s.stores[h.name], s.wires[h.name] = h, &memory{}, &wire{}
		s.o.Hubs = append(s.o.Hubs,
			HubOptions{Name: h.name, Store: s.stores[h.name], Bootstrap: &forgetful{bootstrap: h.bootstrap}})
	}
	s.o.HubConfig = func(config *rest.Config) {
		for name, h := range s.hubs {
			if config.Host == h.bootstrap.Server {
				s.wires[name].config(config)
			}
		}
	}
	return s
}

func (s *several) start() *several {
	s.t.Helper()
	h, err := newHubs(plane.ForTest(s.t).Config(), s.logs.logger(), s.o)
	require.NoError(s.t, err)
	h.random = func() float64 { return 0 }
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan error, 1)
	go func() { s.done <- h.Start(ctx) }()
	s.t.Cleanup(s.stop)
	return s
}

func (s *several) stop() {
	s.cancel()
	s.ended()
}

func (s *several) ended() {
	s.t.Helper()
	select {
	case err := <-s.done:
		require.NoError(s.t, err)
		s.done <- nil
	case <-time.After(timeLimit):
		s.t.Fatal("the agent does not end")
	}
}

// in waits until the agent has joined a hub, and no other one.
func (s *several) in(name string) Hub {
	s.t.Helper()
	eventually(s.t, "it never is in hub "+name, func() bool {
		last := s.last()
		return last.Phase == lifecycle.Joined && last.Message == "Hub "+name+": The member has joined the hub."
	})
	s.hubs[name].beats()
	for {
		select {
		case hub := <-s.beside:
			if hub.Name == name {
				s.runs.Range(func(other, _ any) bool {
					require.Equal(s.t, name, other, "a companion goes on for a hub that was left")
					return true
				})
				return hub
			}
		case <-time.After(timeLimit):
			s.t.Fatal("no companion has the config of hub " + name)
		}
	}
}

// loses calls lose, and waits until the agent has observed that its hub is lost.
func (s *several) loses(lose func()) {
	s.t.Helper()
	const failed = "A heartbeat failed, trying again"
	before := s.logs.times(failed)
	lose()
	eventually(s.t, "it does not see that its hub is lost", func() bool { return s.logs.times(failed) > before })
}

func (s *several) reported(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, step := range s.steps {
		if strings.Contains(step.Message, words) {
			return true
		}
	}
	return false
}

// TestSeveralHubs checks an agent whose hubs are lost and return, over restarts of the agent.
func TestSeveralHubs(t *testing.T) {
	a, b := newByHandOn(t, elsewhere.ForTest(t), "hub-a").attend(), newByHand(t, "hub-b").attend()
	s := newSeveral(t, a, b)
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
	s.in("hub-a")
	first := s.stores["hub-a"].parsed(t)
	require.Empty(t, s.wires["hub-b"].take(), "it is at one hub at a time")
	s.wires["hub-a"].take()
	a.beats()
	got := s.wires["hub-a"].take()
	require.Equal(t, map[string]int{"PUT leases/heartbeat": got["PUT leases/heartbeat"]}, got,
		"more than heartbeats at rest")

	// The first is lost.
	s.loses(func() { require.NoError(t, elsewhere.ForTest(t).KillAPIServer()) })
	s.clock.shift(hubTimeout)
	hub := s.in("hub-b")
	require.Equal(t, b.bootstrap.Server, hub.Config.Host)
	require.Equal(t, b.space(), hub.Member.Namespace)
	require.True(t, s.reported("Switching to hub hub-b: hub hub-a has accepted no heartbeat since "),
		"the reason is not reported")
	require.NotEqual(t, first.ClaimKey, s.stores["hub-b"].parsed(t).ClaimKey,
		"one hub could speak for the member in the other")

	// It comes back, and is not gone back to, also not after a restart.
	require.NoError(t, elsewhere.ForTest(t).StartAPIServer(t.Context()))
	s.clock.shift(2 * hubTimeout)
	b.beats()
	require.Equal(t, "Hub hub-b: The member has joined the hub.", s.last().Message)
	s.stop()
	s.start()
	s.in("hub-b")

	// Until the second denies it: its record of the first is as good as ever.
	s.wires["hub-a"].take()
	s.clock.shift(hubTimeout) // since it came there, or was started
	s.loses(func() { b.shutOut(func(request *v1alpha1.JoinRequest) { b.emit(request, v1alpha1.AnswerDenied, nil) }) })
	eventually(t, "it does not look again", func() bool {
		return s.reported("The hub refuses the agent's credential. The agent retries")
	})
	s.clock.shift(lifecycle.ShutOutTimeout)
	s.in("hub-a")
	require.True(t, s.reported("Switching to hub hub-a: hub hub-b refuses the agent."), "the reason is not reported")
	second := s.stores["hub-a"].parsed(t)
	require.Equal(t, first.ClaimKey, second.ClaimKey)
	require.Equal(t, first.Member.UID, second.Member.UID)
	require.Zero(t, s.wires["hub-a"].take()["POST joinrequests"], "it has asked to join again")
	for _, h := range []*byHand{a, b} {
		_, was := cleaned.Load(h.name)
		require.False(t, was, "the member was cleaned because a hub was lost")
	}

	// When the first asks it to leave for good, it does, and goes to the second; when that does as well, it is done.
	a.change(func(spec *v1alpha1.MembershipSpec) {
		spec.State, spec.Rejoin, spec.Clean = v1alpha1.StateLeave, false, true
	})
	eventually(t, "it does not go on", func() bool {
		return s.reported("Switching to hub hub-b: hub hub-a has released this member.")
	})
	require.True(t, a.clean())
	_, was := cleaned.Load("hub-a")
	require.True(t, was)
	_, was = cleaned.Load("hub-b")
	require.False(t, was, "what is of another hub was cleaned")
	b.letIn()
	s.in("hub-b")
	b.change(func(spec *v1alpha1.MembershipSpec) {
		spec.State, spec.Rejoin, spec.Clean = v1alpha1.StateLeave, false, true
	})
	s.ended()
	require.True(t, b.clean())
	for _, store := range s.stores {
		require.Empty(t, store.record)
	}
}

// shutOut revokes the agent's permissions, and answers its next request with answer.
func (h *byHand) shutOut(answer func(*v1alpha1.JoinRequest)) {
	h.t.Helper()
	h.do(answer)
	h.forgetRequests()
	require.NoError(h.t, h.c.Delete(h.t.Context(), h.binding()))
}

// letIn reverts shutOut.
func (h *byHand) letIn() {
	h.t.Helper()
	h.do(nil)
	h.reopen()
}

// TestCutOff checks that an agent that reaches none of its hubs stays at its hub, and that its companions continue.
func TestCutOff(t *testing.T) {
	a, b := newByHand(t, "cut-a").attend(), newByHand(t, "cut-b").attend()
	var networks []*localplane.Proxy
	for _, h := range []*byHand{a, b} {
		network := h.proxied()
		networks = append(networks, network)
		h.bootstrap.Server = network.Config(h.config).Host
	}
	s := newSeveral(t, a, b).start()
	s.in("cut-a")
	s.loses(func() {
		for _, network := range networks {
			network.Cut()
		}
	})
	s.clock.shift(hubTimeout)
	eventually(t, "it does not say that it is lost", func() bool { return s.reported(", and no other hub responds.") })
	s.clock.shift(hubTimeout)
	_, runs := s.runs.Load("cut-a")
	require.True(t, runs, "the companion has ended")
	require.Empty(t, s.stores["cut-b"].record)
	networks[0].Heal()
	a.beats()
	require.False(t, s.reported("Switching to hub"))
	eventually(t, "it does not say that this is over",
		func() bool { return s.last().Message == "Hub cut-a: The member has joined the hub." })
	require.Equal(t, 1, s.wires["cut-a"].take()["POST joinrequests"])

	eventually(t, "it does not see that its hub is back",
		func() bool { return s.logs.times("The hub accepts heartbeats again") > 0 })

	// One that answers is gone to, also while it has not decided.
	b.do(func(request *v1alpha1.JoinRequest) { b.emit(request, v1alpha1.AnswerHeld, nil) })
	s.loses(networks[0].Cut)
	networks[1].Heal()
	s.clock.shift(hubTimeout)
	eventually(t, "it does not go where it is answered",
		func() bool { return s.reported("Hub cut-b: The JoinRequest is pending") })
	networks[0].Heal()
	s.clock.shift(hubTimeout)
	s.in("cut-a")
	require.True(t, s.reported("Switching to hub cut-a: hub cut-b has accepted no heartbeat since "),
		"the reason is not reported")
}

// TestBegin checks the current hub for records of several hubs, as they are after an agent was killed at any line.
func TestBegin(t *testing.T) {
	of := func(r record) []byte {
		data, err := r.marshal()
		require.NoError(t, err)
		return data
	}
	for _, tc := range []struct {
		reason  string
		records [][]byte
		want    int
		came    bool
	}{
		{"nothing is known", [][]byte{nil, nil}, 0, false},
		{"it never went anywhere", [][]byte{nil, of(record{ClusterID: "id"})}, 0, false},
		{"it went, and had no time to do anything there", [][]byte{of(record{ClusterID: "id"}),
			of(record{hubTurn: hubTurn{Turn: 1}})}, 1,
			true},
		{"and back", [][]byte{of(record{hubTurn: hubTurn{Turn: 2}}),
			of(record{hubTurn: hubTurn{Turn: 1}})}, 0, true},
		{"one that cannot be used says nothing", [][]byte{[]byte("{"), of(record{hubTurn: hubTurn{Turn: 1}})}, 1,
			true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := &hubs{Options: Options{}.withDefaults()}
			for _, data := range tc.records {
				h.Hubs = append(h.Hubs, HubOptions{Store: &memory{record: data}})
			}
			require.NoError(t, h.begin(t.Context()))
			require.Equal(t, tc.want, h.at.hub)
			require.Equal(t, tc.came, !h.at.since.IsZero(), "it may just have come there")
		})
	}
}

// TestTurnIsKept checks that startOver keeps the turn in the record. Otherwise another hub would be the current one
// after a restart.
func TestTurnIsKept(t *testing.T) {
	store := &memory{}
	a := &agent{Options: Options{Store: store}, companions: &companions{},
		state: persistedState{record: record{ClusterID: "id", Member: &registered{}, hubTurn: hubTurn{Turn: 3}}}}
	require.NoError(t, a.startOver(t.Context()))
	require.Equal(t, record{Version: recordVersion, removalProgress: removalProgress{Kept: true},
		hubTurn: hubTurn{Turn: 3}}, store.parsed(t))
}

// TestAsk checks that a hub that is not the current one is probed without a credential.
func TestAsk(t *testing.T) {
	status := http.StatusOK
	var shown []string
	server := tlsServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.URL.Path+r.Header.Get("Authorization"))
		w.WriteHeader(status)
	}))
	o := Options{HubConfig: func(c *rest.Config) { c.BearerToken = "secret" }}.withDefaults()
	h := &hubs{Options: o, log: logr.Discard()}
	url, ca := server.at("/hub")
	there := &registration.Bootstrap{Server: url, CA: ca, Token: "secret"}
	ask := func(bootstrap *registration.Bootstrap, r record) bool {
		data, err := r.marshal()
		require.NoError(t, err)
		h.Hubs = []HubOptions{{Store: &memory{record: data}, Bootstrap: &forgetful{bootstrap: bootstrap}}}
		return h.answers(t.Context(), 0)
	}
	was := record{Member: &registered{Server: url, CA: ca, Credential: credential{Token: "secret"}}}
	require.True(t, ask(there, record{}))
	require.True(t, ask(nil, was), "one that the agent was at needs no bootstrap credential")
	require.True(t, ask(&registration.Bootstrap{Server: "https://127.0.0.1:1", CA: ca}, was),
		"it may have been right before")
	require.False(t, ask(nil, record{}), "there is nothing to ask")
	require.False(t, ask(&registration.Bootstrap{Server: url}, record{}), "it is not who it should be")
	status = http.StatusUnauthorized
	require.True(t, ask(there, record{}), "it refuses requests, and responds")
	status = http.StatusServiceUnavailable
	require.False(t, ask(there, record{}), "no server is behind it")
	for _, one := range shown {
		require.Equal(t, "/hub/readyz", one)
	}
}

// TestCompanionOfSeveralHubs checks that a companion that does not return in time is not called concurrently for
// another hub.
func TestCompanionOfSeveralHubs(t *testing.T) {
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
		require.NoError(t, a.run(t.Context(), lender(t), membership.Member{}))
		require.Equal(t, "a", <-names)
		a.end()
		require.NoError(t, b.run(t.Context(), lender(t), membership.Member{}))
		synctest.Wait()
		require.Empty(t, names, "it runs beside itself")
		close(release)
		require.Equal(t, "b", <-names)
		b.end()
	})
}

func TestValidateHubs(t *testing.T) {
	gate := membership.GateFunc("works", nil)
	for _, tc := range []struct {
		reason string
		o      Options
		want   string
	}{
		{"two hubs", Options{Hubs: []HubOptions{{Name: "a"}, {Name: "b"}}}, ""},
		{"each may have a cleaner of that name",
			Options{Hubs: []HubOptions{{Name: "a", Cleaners: []membership.LeaveGate{gate}},
				{Name: "b", Cleaners: []membership.LeaveGate{gate}}}}, ""},
		{"it goes into the names of Secrets", Options{Hubs: []HubOptions{{Name: "Hub A"}}}, "Hubs[0].Name: "},
		{"they have a name", Options{Hubs: []HubOptions{{Name: "a"}, {}}}, "Hubs[1].Name: "},
		{"of their own", Options{Hubs: []HubOptions{{Name: "a"}, {Name: "a"}}}, `Hubs[1].Name: is "a", the name of another`},
		{"or two hubs would share it", Options{Hubs: []HubOptions{{Name: "a"}}, Store: &memory{}},
			"Store: must not be set together with Hubs"},
		{"the same", Options{Hubs: []HubOptions{{Name: "a"}}, Bootstrap: &forgetful{}},
			"Bootstrap: must not be set together with Hubs"},
		{"one is asked beside the other",
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
