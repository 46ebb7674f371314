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

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/heartbeat"
	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
	"github.com/muster-sdk/muster/mustertest"
)

func TestAccompanied(t *testing.T) {
	registered := lifecycle.Record{Registered: true}
	deregistered := lifecycle.Record{Registered: true, Deregistered: true}
	seen := func(state v1alpha1.DesiredState, report lifecycle.AgentReport) lifecycle.AgentObserved {
		return lifecycle.AgentObserved{
			Now: noon, Record: registered, Hub: lifecycle.HubSeen, PolicySaved: true, Beating: true,
			Membership: lifecycle.MembershipSeen{State: state, Report: report},
		}
	}
	with := func(o lifecycle.AgentObserved, change func(*lifecycle.AgentObserved)) lifecycle.AgentObserved {
		change(&o)
		return o
	}
	in := seen(v1alpha1.StateJoin, lifecycle.ReportedJoined)
	leaving := seen(v1alpha1.StateLeave, lifecycle.ReportedJoined)
	for _, tc := range []struct {
		reason string
		o      lifecycle.AgentObserved
		phase  lifecycle.AgentPhase
		want   companionChange
	}{
		{"an agent that is not registered has no connection to lend", lifecycle.AgentObserved{}, lifecycle.Unregistered,
			endCompanions},
		{"the hub does not know yet that the agent is there", seen(v1alpha1.StateJoin, lifecycle.ReportedNothing),
			lifecycle.Joining, keepCompanions},
		{"in", in, lifecycle.Joined, runCompanions},
		{"who was restarted may have been forgotten meanwhile", lifecycle.AgentObserved{Record: registered},
			lifecycle.Joining, keepCompanions},
		{"and knows no more while the hub is away",
			lifecycle.AgentObserved{Record: registered, Hub: lifecycle.HubUnreachable}, lifecycle.Joining, keepCompanions},
		{"that the hub is away ends nothing, and begins nothing where cleaners were asked before",
			with(in, func(o *lifecycle.AgentObserved) {
				o.Hub = lifecycle.HubUnreachable
			}), lifecycle.Joined, keepCompanions},
		{"nor does a refusal that may pass", with(in, func(o *lifecycle.AgentObserved) {
			o.Hub, o.HubSince = lifecycle.HubRefused, noon
		}), lifecycle.Joined, keepCompanions},
		{"one that stays does", with(in, func(o *lifecycle.AgentObserved) {
			o.Hub, o.HubSince = lifecycle.HubRefused, noon.Add(-lifecycle.ShutOutTimeout)
		}), lifecycle.Rejected, endCompanions},
		{"gates of the hub wait for what companions do", leaving, lifecycle.Leaving, runCompanions},
		{"the gates are open", with(leaving, func(o *lifecycle.AgentObserved) { o.Membership.Clean = true }),
			lifecycle.Leaving, endCompanions},
		{"the hub knows that the member is clean", seen(v1alpha1.StateLeave, lifecycle.ReportedClean), lifecycle.Left,
			endCompanions},
		{"forgotten", lifecycle.AgentObserved{Record: deregistered, Hub: lifecycle.HubGone}, lifecycle.Leaving,
			endCompanions},
		{"whatever else is seen", with(leaving,
			func(o *lifecycle.AgentObserved) { o.Record = deregistered }), lifecycle.Leaving,
			endCompanions},
		{"out", lifecycle.AgentObserved{Record: lifecycle.Record{Out: true}}, lifecycle.Left, endCompanions},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			step := lifecycle.NextAgent(tc.o)
			require.Equal(t, tc.phase, step.Phase)
			require.Equal(t, tc.want, companionChangeFor(tc.o, step.Phase))
		})
	}
}

// TestCompanionsEndInTime checks that, for all observations, the companions have ended before each action that they
// must not outlive.
func TestCompanionsEndInTime(t *testing.T) {
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
		is := func() bool { return pick(2) == 1 }
		o := lifecycle.AgentObserved{
			Now:         noon,
			Record:      lifecycle.Record{Claim: is(), Registered: is(), Deregistered: is(), Kept: is(), Out: is()},
			JoinRequest: lifecycle.JoinRequestState(pick(int(lifecycle.JoinRequestIssued) + 1)),
			Hub:         lifecycle.HubState(pick(int(lifecycle.HubSeen) + 1)),
			HubSince:    noon.Add(-lifecycle.ShutOutTimeout * time.Duration(pick(2))),
			Membership: lifecycle.MembershipSeen{
				State: []v1alpha1.DesiredState{v1alpha1.StateJoin, v1alpha1.StateLeave}[pick(2)],
				Clean: is(), Rejoin: is(), Report: lifecycle.AgentReport(pick(int(lifecycle.ReportedClean) + 1)),
			},
			Beating: is(),
			Member:  lifecycle.MemberState(pick(int(lifecycle.MemberClean) + 1)),
		}
		more = left == 0
		step := lifecycle.NextAgent(o)
		for _, action := range step.Actions {
			if slices.Contains(last, action) {
				require.Equal(t, endCompanions, companionChangeFor(o, step.Phase), "%+v: %+v", o, step)
				ends[action] = true
			}
		}
	}
	require.Len(t, ends, len(last), "only these were seen: %v", ends)
}

// lender returns a connection to an address that does not respond.
func lender(t *testing.T) *connection {
	c, err := connect(registered{Server: "http://127.0.0.1:1", Namespace: "member-a", Credential: credential{Token: "t"}},
		nil, func(*rest.Config) {}, heartbeat.BeaterOptions{})
	require.NoError(t, err)
	return c
}

// beside runs companions in a synctest bubble.
type beside struct {
	*companions
	t      *testing.T
	with   *connection
	events *events.FakeRecorder
	log    strings.Builder // of the bubble's goroutines, one at a time
	mu     sync.Mutex
}

func newBeside(t *testing.T, all ...Companion) *beside {
	b := &beside{t: t, with: lender(t), events: events.NewFakeRecorder(100)}
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

func (b *beside) start() {
	require.NoError(b.t, b.run(b.t.Context(), b.with, membership.Member{Name: "a", Namespace: "member-a"}))
	synctest.Wait()
}

func (b *beside) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

func passes(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// TestCompanionsThatEnd checks that a companion that fails or panics is reported and called again, after increasing
// pauses, and that a companion that returned nil is not called again.
func TestCompanionsThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failed, panicked, done, lived atomic.Int64
		b := newBeside(t,
			CompanionFunc("failing", func(context.Context, Hub) error { failed.Add(1); return errors.New("no luck") }),
			CompanionFunc("panicking", func(context.Context, Hub) error { panicked.Add(1); panic("on purpose") }),
			CompanionFunc("done", func(context.Context, Hub) error { done.Add(1); return nil }),
			CompanionFunc("living", func(ctx context.Context, _ Hub) error {
				lived.Add(1)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(companionStable + time.Second):
					return errors.New("once in a while")
				}
			}))
		began := time.Now()
		var news atomic.Int64
		b.health.news = func() { news.Add(1) }
		health := func() map[string]string {
			found := map[string]string{}
			for _, r := range b.health.report(b.all) {
				found[r.name] = string(r.healthy.Status) + " " + r.healthy.Reason + " " + r.healthy.Message
			}
			return found
		}
		const well = "True CompanionReady The companion has not failed."
		require.Equal(t, map[string]string{"failing": well, "panicking": well, "done": well, "living": well}, health())
		b.start()
		b.start() // again changes nothing
		require.EqualValues(t, 1, failed.Load())
		for calls, pause := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			passes(pause*time.Second - time.Millisecond)
			require.EqualValues(t, calls+1, failed.Load())
			passes(time.Millisecond)
			require.EqualValues(t, calls+2, failed.Load())
			require.Equal(t, failed.Load(), panicked.Load())
		}
		require.EqualValues(t, 1, done.Load(), "it had nothing more to do")
		require.EqualValues(t, 2, lived.Load())
		const failure = "False CompanionFailed The companion failed and is called again: "
		require.Equal(t, map[string]string{
			"failing": failure + "no luck", "panicking": failure + "panic: on purpose", "done": well,
			"living": failure + "once in a while",
		}, health())
		require.EqualValues(t, 3, news.Load(), "the same error again is no news")
		const cycle = companionStable + 2*time.Second
		passes(time.Until(began.Add(10 * cycle)))
		require.EqualValues(t, 11, lived.Load(), "what fails once in a while does not wait for longer each time")
		passes(companionStable)
		require.Equal(t, well, health()["living"], "it has run for a minute")

		ending := time.Now()
		b.end()
		require.Zero(t, time.Since(ending), "there was nothing to wait for")
		require.Contains(t, b.logged(), "companions_test.go", "a panic is told without where it was")
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
		passes(time.Hour)
		require.Equal(t, before, failed.Load(), "it is called after the end")
		b.start()
		require.EqualValues(t, 2, done.Load(), "the agent has joined anew")
		b.end()
	})
}

// TestCompanionThatHangs checks that a companion that does not return delays the agent only for its timeout, and never
// runs twice concurrently.
func TestCompanionThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, running, most := make(chan struct{}), atomic.Int64{}, atomic.Int64{}
		var polite atomic.Bool
		var config *rest.Config
		b := newBeside(t,
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
				<-time.After(companionTimeout - time.Second) // it has to tidy up
				polite.Store(true)
				return ctx.Err()
			}))
		b.start()
		began := time.Now()
		b.end()
		require.Equal(t, companionTimeout, time.Since(began))
		require.True(t, polite.Load(), "it was not waited for")
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
		require.ErrorIs(t, err, errClosed, "who does not return keeps its access")

		b.start()
		require.EqualValues(t, 1, running.Load())
		require.False(t, polite.Load(), "it waits for another")
		b.end()
		b.start()
		close(release)
		synctest.Wait()
		require.EqualValues(t, 1, most.Load(), "it ran beside itself")
		b.end()
	})
}

// TestLend checks that the config of a companion works for its clients, with the agent's current credential, until
// takeBack is called.
func TestLend(t *testing.T) {
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
		watches     bool // go on over a change of the credential
	}{
		{"a token", server.URL, func(*rest.Config) {}, []credential{{Token: "one"}, {Token: "two"}},
			[]string{"Bearer one", "Bearer two"}, true},
		{"a certificate", server.URL, func(*rest.Config) {},
			[]credential{{Certificate: certificate(t, claim, 1)}, {Certificate: certificate(t, claim, 2)}}, []string{"#1", "#2"},
			false},
		{"its own", server.URL, func(c *rest.Config) { c.BearerToken = "own" }, []credential{{}}, []string{"Bearer own"},
			true},
		{"an address whose scheme follows from its CA", strings.TrimPrefix(server.URL, "https://"), func(*rest.Config) {},
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
			require.InDelta(t, -1, config.QPS, 0, "its rate is limited")
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
				<-watcher.ResultChan() // or the test hangs
			}

			c.closeLent()
			_, err = core.ConfigMaps("n").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
				metav1.CreateOptions{})
			require.ErrorIs(t, err, errClosed)
			for range watcher.ResultChan() { // or the test hangs
			}
			require.NoError(t, c.swap(tc.credentials[0], claim))
			_, err = core.ConfigMaps("n").Get(t.Context(), "who", metav1.GetOptions{})
			require.ErrorIs(t, err, errClosed, "the next credential brings back what was taken")
		})
	}
}

// TestCompanions checks a companion in all states of its agent, beside another one that always panics.
func TestCompanions(t *testing.T) {
	h := newByHand(t, "companions").attend()
	store, w := &memory{}, &wire{}
	var running, begun, panics, asked atomic.Int64
	o := Options{
		Store: store, HubConfig: w.config, Clock: &hasty{},
		Companions: []Companion{
			CompanionFunc("works", func(ctx context.Context, hub Hub) error {
				running.Add(1)
				defer running.Add(-1)
				if hub.Member.Namespace != h.space() || hub.Member.UID != h.member("").UID {
					t.Errorf("the companion speaks for %+v", hub.Member)
				}
				begun.Add(1)
				<-ctx.Done()
				<-time.After(500 * time.Millisecond) // as if it had something to tidy up
				return nil
			}),
			CompanionFunc("panicking", func(context.Context, Hub) error { panics.Add(1); panic("on purpose") }),
		},
		Cleaners: []membership.LeaveGate{membership.GateFunc("works",
			func(context.Context, membership.Member) ([]string, error) {
				if n := running.Load(); n > 0 {
					t.Errorf("%d companions run beside a cleaner", n)
				}
				asked.Add(1)
				return nil, nil
			})},
	}
	runs := func(want, inAll int64) {
		t.Helper()
		mustertest.Eventually(t, timeLimit, fmt.Sprintf("%d companions run", want), func() error {
			if n := running.Load(); n != want {
				return fmt.Errorf("%d companions run", n)
			}
			return nil
		})
		require.Equal(t, inAll, begun.Load())
	}
	r := h.run(o)
	is(t, r, lifecycle.Joined)
	runs(1, 1)
	eventually(t, "a panic is for ever", func() bool { return panics.Load() > 1 })
	h.beats()

	// Restarted while it is in, and while the gates of the hub wait.
	r.stop()
	require.Zero(t, running.Load(), "it outlives its agent")
	r = h.run(o)
	is(t, r, lifecycle.Joined)
	runs(1, 2)
	h.change(func(s *v1alpha1.MembershipSpec) { s.State = v1alpha1.StateLeave })
	is(t, r, lifecycle.Leaving)
	runs(1, 2)
	r.stop()
	r = h.run(o)
	is(t, r, lifecycle.Leaving)
	runs(1, 3)
	h.beats()
	require.Zero(t, asked.Load())
	h.change(func(s *v1alpha1.MembershipSpec) { s.State = v1alpha1.StateJoin })
	is(t, r, lifecycle.Joined)
	runs(1, 3)

	// Shut out, and let in again.
	binding := h.binding()
	require.NoError(t, h.c.Get(t.Context(), client.ObjectKeyFromObject(binding), binding))
	subjects := binding.Subjects
	h.do(func(request *v1alpha1.JoinRequest) { h.emit(request, v1alpha1.AnswerDenied, nil) })
	h.forgetRequests()
	require.NoError(t, h.c.Delete(t.Context(), binding))
	is(t, r, lifecycle.Rejected)
	runs(0, 3)
	h.ensure(h.binding(subjects...))
	is(t, r, lifecycle.Joined)
	runs(1, 4)

	// Deregistered.
	h.do(func(request *v1alpha1.JoinRequest) { h.emit(request, v1alpha1.AnswerDeregistered, nil) })
	h.forgetRequests()
	require.NoError(t, h.c.Delete(t.Context(), h.binding()))
	r.ended()
	runs(0, 4)
	require.Positive(t, asked.Load())
}
