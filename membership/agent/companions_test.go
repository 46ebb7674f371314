package agent

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-sdk/muster/internal/testkit"
	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestCompanionChangeFor(t *testing.T) {
	registered := lifecycle.Record{Registered: true}
	deregistered := lifecycle.Record{Registered: true, Deregistered: true}
	observed := func(state v1alpha1.DesiredState, report lifecycle.AgentReport) lifecycle.AgentObserved {
		return lifecycle.AgentObserved{
			Now: noon, Record: registered, Hub: lifecycle.HubSeen, PolicySaved: true, Beating: true,
			Membership: lifecycle.MembershipSeen{State: state, Report: report},
		}
	}
	with := func(o lifecycle.AgentObserved, change func(*lifecycle.AgentObserved)) lifecycle.AgentObserved {
		change(&o)
		return o
	}
	joined := observed(v1alpha1.StateJoin, lifecycle.ReportedJoined)
	leaving := observed(v1alpha1.StateLeave, lifecycle.ReportedJoined)
	for _, tc := range []struct {
		reason string
		o      lifecycle.AgentObserved
		phase  lifecycle.AgentPhase
		want   companionChange
	}{
		{"the agent is not registered", lifecycle.AgentObserved{}, lifecycle.Unregistered, endCompanions},
		{"the agent has not reported that it has joined", observed(v1alpha1.StateJoin, lifecycle.ReportedNothing),
			lifecycle.Joining, keepCompanions},
		{"the member has joined", joined, lifecycle.Joined, runCompanions},
		{"a restarted agent has not read its Membership", lifecycle.AgentObserved{Record: registered},
			lifecycle.Joining, keepCompanions},
		{"a restarted agent does not reach its hub",
			lifecycle.AgentObserved{Record: registered, Hub: lifecycle.HubUnreachable}, lifecycle.Joining, keepCompanions},
		{"the hub of a joined member is unreachable",
			with(joined, func(o *lifecycle.AgentObserved) { o.Hub = lifecycle.HubUnreachable }), lifecycle.Joined,
			keepCompanions},
		{"the hub has just refused the agent", with(joined, func(o *lifecycle.AgentObserved) {
			o.Hub, o.HubSince = lifecycle.HubRefused, noon
		}), lifecycle.Joined, keepCompanions},
		{"the hub has refused the agent for ShutOutTimeout", with(joined, func(o *lifecycle.AgentObserved) {
			o.Hub, o.HubSince = lifecycle.HubRefused, noon.Add(-lifecycle.ShutOutTimeout)
		}), lifecycle.Rejected, endCompanions},
		{"the member is leaving and the gates of the hub are closed", leaving, lifecycle.Leaving, runCompanions},
		{"the member is leaving and the gates of the hub are open",
			with(leaving, func(o *lifecycle.AgentObserved) { o.Membership.Clean = true }),
			lifecycle.Leaving, endCompanions},
		{"the hub has observed that the member is clean",
			observed(v1alpha1.StateLeave, lifecycle.ReportedClean), lifecycle.Left, endCompanions},
		{"the member is deregistered and its Membership is deleted",
			lifecycle.AgentObserved{Record: deregistered, Hub: lifecycle.HubGone}, lifecycle.Leaving, endCompanions},
		{"the member is deregistered and its Membership exists", with(leaving,
			func(o *lifecycle.AgentObserved) { o.Record = deregistered }), lifecycle.Leaving,
			endCompanions},
		{"the member has left permanently",
			lifecycle.AgentObserved{Record: lifecycle.Record{Out: true}}, lifecycle.Left, endCompanions},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			step := lifecycle.NextAgent(tc.o)
			require.Equal(t, tc.phase, step.Phase)
			require.Equal(t, tc.want, companionChangeFor(tc.o, step.Phase))
		})
	}
}

// TestCompanionChangeFor_EndsBeforeFinalActions checks that, for all observations, the companions have ended before
// each action that they must not outlive.
func TestCompanionChangeFor_EndsBeforeFinalActions(t *testing.T) {
	last := []lifecycle.AgentAction{
		lifecycle.CleanMember, lifecycle.ReportClean, lifecycle.RecordDeregistered, lifecycle.RecordOut,
		lifecycle.StartOver, lifecycle.ForgetBootstrap, lifecycle.ForgetRecord,
	}
	ends := map[lifecycle.AgentAction]bool{}
	for code, more := 0, true; more; code++ {
		left := code
		pick := func(of int) int {
			picked := left % of
			left /= of
			return picked
		}
		flag := func() bool { return pick(2) == 1 }
		o := lifecycle.AgentObserved{
			Now:         noon,
			Record:      lifecycle.Record{Claim: flag(), Registered: flag(), Deregistered: flag(), Kept: flag(), Out: flag()},
			JoinRequest: lifecycle.JoinRequestState(pick(int(lifecycle.JoinRequestIssued) + 1)),
			Hub:         lifecycle.HubState(pick(int(lifecycle.HubSeen) + 1)),
			HubSince:    noon.Add(-lifecycle.ShutOutTimeout * time.Duration(pick(2))),
			Membership: lifecycle.MembershipSeen{
				State: []v1alpha1.DesiredState{v1alpha1.StateJoin, v1alpha1.StateLeave}[pick(2)],
				Clean: flag(), Rejoin: flag(), Report: lifecycle.AgentReport(pick(int(lifecycle.ReportedClean) + 1)),
			},
			Beating: flag(),
			Member:  lifecycle.MemberState(pick(int(lifecycle.MemberClean) + 1)),
		}
		more = left == 0
		step := lifecycle.NextAgent(o)
		for _, action := range step.Actions {
			if slices.Contains(last, action) {
				if got := companionChangeFor(o, step.Phase); got != endCompanions {
					t.Fatalf("want %v, got %v for %+v: %+v", endCompanions, got, o, step)
				}
				ends[action] = true
			}
		}
	}
	require.Len(t, ends, len(last), "want each final action, got %v", ends)
}

// unreachableHub returns a connection to an address that does not respond.
func unreachableHub(t *testing.T) *connection {
	c, err := connect(registered{Server: "http://127.0.0.1:1", Namespace: "member-a", Credential: credential{Token: "t"}},
		nil, func(*rest.Config) {}, heartbeat.BeaterOptions{})
	require.NoError(t, err)
	return c
}

// companionRun runs companions in a synctest bubble.
type companionRun struct {
	*companions
	t      *testing.T
	with   *connection
	events *events.FakeRecorder
	log    strings.Builder // of the bubble's goroutines, one at a time
	mu     sync.Mutex
}

func newCompanionRun(t *testing.T, all ...Companion) *companionRun {
	b := &companionRun{t: t, with: unreachableHub(t), events: events.NewFakeRecorder(100)}
	logger := funcr.New(func(_, args string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.log.WriteString(args + "\n")
	}, funcr.Options{})
	b.companions = newCompanions(&agent{
		Options: Options{Companions: all, Clock: clock.RealClock{}, Log: logger}, random: func() float64 { return 0.5 },
		reports: reporter{events: eventRecorder{recorder: b.events, about: &corev1.ObjectReference{}}},
	})
	return b
}

func (b *companionRun) start() {
	require.NoError(b.t, b.run(b.t.Context(), b.with, membership.Member{Name: "a", Namespace: "member-a"}))
	synctest.Wait()
}

func (b *companionRun) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func waitFor(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestCompanions_RestartAfterFailure checks that a companion that fails or panics is reported and called again, after
// increasing pauses, and that a companion that returned nil is not called again.
func TestCompanions_RestartAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed, panicked, done, unsteady atomic.Int64
		b := newCompanionRun(t,
			CompanionFunc("failing", func(context.Context, Hub) error { failed.Add(1); return errors.New("no luck") }),
			CompanionFunc("panicking", func(context.Context, Hub) error { panicked.Add(1); panic("on purpose") }),
			CompanionFunc("done", func(context.Context, Hub) error { done.Add(1); return nil }),
			CompanionFunc("living", func(ctx context.Context, _ Hub) error {
				unsteady.Add(1)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(companionStable + time.Second):
					return errors.New("once in a while")
				}
			}))
		start := time.Now()
		var news atomic.Int64
		b.health.news = func() { news.Add(1) }
		health := func() map[string]string {
			found := map[string]string{}
			for _, r := range b.health.report(b.all) {
				found[r.name] = string(r.healthy.Status) + " " + r.healthy.Reason + " " + r.healthy.Message
			}
			return found
		}
		const ready = "True CompanionReady The companion has not failed."
		require.Equal(t, map[string]string{"failing": ready, "panicking": ready, "done": ready, "living": ready}, health())
		b.start()
		b.start() // has no effect
		require.EqualValues(t, 1, failed.Load())
		for calls, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			waitFor(pause*time.Second - time.Millisecond)
			require.EqualValues(t, calls+1, failed.Load())
			waitFor(time.Millisecond)
			require.EqualValues(t, calls+2, failed.Load())
			require.Equal(t, failed.Load(), panicked.Load())
		}
		require.EqualValues(t, 1, done.Load(), "a companion that returned nil is not called again")
		require.EqualValues(t, 2, unsteady.Load())
		const failure = "False CompanionFailed The companion failed and is called again: "
		require.Equal(t, map[string]string{
			"failing": failure + "no luck", "panicking": failure + "panic: on purpose", "done": ready,
			"living": failure + "once in a while",
		}, health())
		require.EqualValues(t, 3, news.Load(), "a repeated error causes no report")
		const cycle = companionStable + 2*time.Second
		waitFor(time.Until(start.Add(10 * cycle)))
		require.EqualValues(t, 11, unsteady.Load(), "the pause does not increase after a minute without failure")
		waitFor(companionStable)
		require.Equal(t, ready, health()["living"], "a companion is healthy after a minute")

		ending := time.Now()
		b.end()
		require.Zero(t, time.Since(ending), "no companion delays the end")
		require.Contains(t, b.logged(), "companions_test.go", "the log of a panic has no stack trace")
		reported := map[string]bool{}
		for len(b.events.Events) > 0 {
			reported[<-b.events.Events] = true
		}
		require.Equal(t, map[string]bool{
			"Warning CompanionFailed failing: no luck":             true,
			"Warning CompanionFailed panicking: panic: on purpose": true,
			"Warning CompanionFailed living: once in a while":      true,
		}, reported)
		before := failed.Load()
		waitFor(time.Hour)
		require.Equal(t, before, failed.Load(), "a companion is called after the end")
		b.start()
		require.EqualValues(t, 2, done.Load(), "the companion is called again after another start")
		b.end()
	})
}

// TestCompanions_StuckCompanion checks that a companion that does not return delays the agent only for its timeout,
// and never runs twice concurrently.
func TestCompanions_StuckCompanion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, running, most := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
		var polite atomic.Bool
		var config *rest.Config
		b := newCompanionRun(t,
			CompanionFunc("hanging", func(_ context.Context, hub Hub) error {
				most.Store(max(most.Load(), running.Add(1)))
				defer running.Add(-1)
				config = hub.Config
				<-release
				return nil
			}),
			CompanionFunc("polite", func(ctx context.Context, _ Hub) error {
				polite.Store(false)
				<-ctx.Done()
				<-time.After(companionTimeout - time.Second) // clean-up of the companion
				polite.Store(true)
				return ctx.Err()
			}))
		b.start()
		start := time.Now()
		b.end()
		require.Equal(t, companionTimeout, time.Since(start))
		require.True(t, polite.Load(), "the agent does not wait for the polite companion")
		require.Contains(t, b.logged(), `"msg"="A companion did not return in time, the agent continues without it" `+
			`"companion"="hanging"`)
		require.NotContains(t, b.logged(), `"companion"="polite" "timeout"`)
		require.Equal(t, "Warning CompanionStuck hanging has not returned 10s after its context ended; the agent continues "+
			"without it.", <-b.events.Events)
		b.with.closeLent()
		//nolint:noctx // it is refused before it is sent
		response, err := (&http.Client{Transport: config.Transport}).Get(config.Host)
		if err == nil {
			_ = response.Body.Close()
		}
		require.ErrorIs(t, err, errClosed, "a stuck companion keeps its access")

		b.start()
		require.EqualValues(t, 1, running.Load())
		require.False(t, polite.Load(), "a companion waits for another one")
		b.end()
		b.start()
		close(release)
		synctest.Wait()
		require.EqualValues(t, 1, most.Load(), "a companion runs twice concurrently")
		b.end()
	})
}

// TestCompanionConfig_UsesCurrentCredential checks that the config of a companion works for its clients, with the
// agent's current credential, until the connection is closed for companions.
func TestCompanionConfig_UsesCurrentCredential(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.Header.Get("Authorization")
		if certificates := r.TLS.PeerCertificates; len(certificates) > 0 {
			subject += "#" + certificates[0].SerialNumber.String()
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		if r.URL.Query().Get("watch") == "" {
			_, _ = io.WriteString(w, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"`+subject+`"}}`)
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	claim, err := registration.NewClaimKey()
	require.NoError(t, err)

	for _, tc := range []struct {
		reason      string
		server      string
		configure   func(*rest.Config)
		credentials []credential
		want        []string
		watches     bool // watches continue after a change of the credential
	}{
		{"a token", server.URL, func(*rest.Config) {}, []credential{{Token: "one"}, {Token: "two"}},
			[]string{"Bearer one", "Bearer two"}, true},
		{"a certificate", server.URL, func(*rest.Config) {},
			[]credential{{Certificate: certificate(t, claim, 1)}, {Certificate: certificate(t, claim, 2)}}, []string{"#1", "#2"},
			false},
		{"the agent's own credential",
			server.URL, func(c *rest.Config) { c.BearerToken = "own" }, []credential{{}}, []string{"Bearer own"},
			true},
		{"an address without a scheme", strings.TrimPrefix(server.URL, "https://"), func(*rest.Config) {},
			[]credential{{Token: "one"}}, []string{"Bearer one"}, true},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			wrapped := 0
			c, err := connect(registered{Server: tc.server, CA: ca, Namespace: "n", Credential: tc.credentials[0]}, claim,
				func(config *rest.Config) {
					config.Wrap(func(next http.RoundTripper) http.RoundTripper {
						return roundTrip(func(r *http.Request) (*http.Response, error) {
							wrapped++
							return next.RoundTrip(r)
						})
					})
					tc.configure(config)
				}, heartbeat.BeaterOptions{})
			require.NoError(t, err)
			defer c.close()
			config, err := c.companionConfig()
			require.NoError(t, err)
			require.InDelta(t, -1, config.QPS, 0, "the rate of requests is not limited")
			core, err := corev1client.NewForConfig(config)
			require.NoError(t, err)
			watcher, err := core.ConfigMaps("n").Watch(t.Context(), metav1.ListOptions{})
			require.NoError(t, err)
			defer watcher.Stop()
			for i, next := range tc.credentials {
				if i > 0 {
					require.NoError(t, c.swap(next, claim))
				}
				got, err := core.ConfigMaps("n").Get(t.Context(), "who", metav1.GetOptions{})
				require.NoError(t, err)
				require.Equal(t, tc.want[i], got.Name)
			}
			require.Equal(t, 1+len(tc.credentials), wrapped, "a request is wrapped once")
			if tc.watches {
				select {
				case <-watcher.ResultChan():
					t.Fatal("the watch has ended")
				default:
				}
			} else {
				<-watcher.ResultChan() // otherwise the test hangs
			}

			c.closeLent()
			_, err = core.ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
				metav1.CreateOptions{})
			require.ErrorIs(t, err, errClosed)
			for range watcher.ResultChan() { // otherwise the test hangs
			}
			require.NoError(t, c.swap(tc.credentials[0], claim))
			_, err = core.ConfigMaps("n").Get(t.Context(), "who", metav1.GetOptions{})
			require.ErrorIs(t, err, errClosed, "a new credential does not restore the access")
		})
	}
}

// TestCompanions_AllAgentStates checks a companion in all states of its agent, together with another one that always
// panics.
func TestCompanions_AllAgentStates(t *testing.T) { testkit.Virtual(t, testCompanionsAllAgentStates) }

func testCompanionsAllAgentStates(t *testing.T) {
	h := newFakeHub(t, newMemory(t), "companions").serve()
	store, w := &memory{}, &wire{}
	var running, started, panics, cleaned atomic.Int64
	o := Options{
		Store: store, HubConfig: w.config, Clock: newFastClock(),
		Companions: []Companion{
			CompanionFunc("works", func(ctx context.Context, hub Hub) error {
				running.Add(1)
				defer running.Add(-1)
				if hub.Member.Namespace != h.memberNamespace() || hub.Member.UID != h.member("").UID {
					t.Errorf("unexpected member of the companion: %+v", hub.Member)
				}
				started.Add(1)
				<-ctx.Done()
				<-time.After(500 * time.Millisecond) // clean-up of the companion
				return nil
			}),
			CompanionFunc("panicking", func(context.Context, Hub) error { panics.Add(1); panic("on purpose") }),
		},
		Cleaners: []membership.LeaveGate{membership.GateFunc("works",
			func(context.Context, membership.Member) ([]string, error) {
				if n := running.Load(); n > 0 {
					t.Errorf("%d companions run concurrently with a cleaner", n)
				}
				cleaned.Add(1)
				return nil, nil
			})},
	}
	requireRunning := func(want, starts int64) {
		t.Helper()
		mustertest.Eventually(t, timeLimit, fmt.Sprintf("%d companions run", want), func() error {
			if n := running.Load(); n != want {
				return fmt.Errorf("%d companions run", n)
			}
			return nil
		})
		require.Equal(t, starts, started.Load())
	}
	r := h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	requireRunning(1, 1)
	eventually(t, "the panicking companion is not called again", func() bool { return panics.Load() > 1 })
	h.requireHeartbeats()

	// The agent restarts while the member is joined, and while the gates of the hub are closed.
	r.stop()
	require.Zero(t, running.Load(), "a companion outlives its agent")
	r = h.run(o)
	requirePhase(t, r, lifecycle.Joined)
	requireRunning(1, 2)
	h.change(func(s *v1alpha1.MembershipSpec) { s.State = v1alpha1.StateLeave })
	requirePhase(t, r, lifecycle.Leaving)
	requireRunning(1, 2)
	r.stop()
	r = h.run(o)
	requirePhase(t, r, lifecycle.Leaving)
	requireRunning(1, 3)
	h.requireHeartbeats()
	require.Zero(t, cleaned.Load())
	h.change(func(s *v1alpha1.MembershipSpec) { s.State = v1alpha1.StateJoin })
	requirePhase(t, r, lifecycle.Joined)
	requireRunning(1, 3)

	// The hub refuses the agent and then accepts it again.
	binding := h.binding()
	require.NoError(t, h.c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	subjects := binding.Subjects
	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerDenied, nil) })
	h.deleteRequests()
	require.NoError(t, h.c.Delete(t.Context(), binding))
	requirePhase(t, r, lifecycle.Rejected)
	requireRunning(0, 3)
	h.ensure(h.binding(subjects...))
	requirePhase(t, r, lifecycle.Joined)
	requireRunning(1, 4)

	// Deregistered.
	h.setAnswer(func(request *v1alpha1.JoinRequest) { h.writeAnswer(request, v1alpha1.AnswerDeregistered, nil) })
	h.deleteRequests()
	require.NoError(t, h.c.Delete(t.Context(), h.binding()))
	r.ended()
	requireRunning(0, 4)
	require.Positive(t, cleaned.Load())
}
