package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/registration"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestNext(t *testing.T) {
	installed := func(change func(*observed)) observed {
		o := observed{Now: epoch, Accepted: true, Joined: true, Desired: desired{Hash: "h"}, Install: installSeen{
			Touched: true, Shown: v1alpha1.ReasonInstalled, Last: &v1alpha1.InstallStatus{Hash: "h"},
		}}
		change(&o)
		return o
	}
	live, used, ended := &tokenSeen{Ends: epoch.Add(time.Minute)}, &tokenSeen{Ends: epoch.Add(time.Minute), Used: true},
		&tokenSeen{Ends: epoch}
	for _, test := range []struct {
		reason string
		o      observed
		action action
		why    string // the reason of the condition
		after  time.Duration
	}{
		{"no decision: nothing is created on the cluster", observed{Now: epoch}, idle, v1alpha1.ReasonNotAccepted,
			0},
		{"it was accepted: install", observed{Now: epoch, Accepted: true}, install, v1alpha1.ReasonInstalling, 0},
		{"the last attempt failed: its reason is shown until one succeeds",
			observed{Now: epoch, Accepted: true, Install: installSeen{Touched: true, Shown: v1alpha1.ReasonInstallFailed}},
			install, "", 0},
		{"it is in and nothing has changed: no request", installed(func(*observed) {}), idle, "", 0},
		{"the hub has moved, and it is not its turn", installed(func(o *observed) { o.Desired.Hash = "other" }), idle,
			v1alpha1.ReasonInstallWaiting, 0},
		{"it is its turn", installed(func(o *observed) { o.Desired.Hash, o.Permitted = "other", true }), install,
			v1alpha1.ReasonInstalling, 0},
		{"it has had its turn, also of a hub that has ended",
			installed(func(o *observed) { o.Desired.Hash, o.Install.Shown = "other", v1alpha1.ReasonInstalling }), install,
			v1alpha1.ReasonInstalling, 0},
		{"it is tried again",
			installed(func(o *observed) { o.Desired.Hash, o.Install.Shown = "other", v1alpha1.ReasonInstallFailed }),
			install, "", 0},
		{"but not where the hub does not get there",
			installed(func(o *observed) {
				o.Desired.Hash, o.Install.Shown, o.Unreachable = "other", v1alpha1.ReasonInstallFailed, true
			}), idle,
			"", 0},
		{"its agent has not come, so there is nothing to lose",
			installed(func(o *observed) { o.Desired.Hash, o.Joined = "other", false }), install, v1alpha1.ReasonInstalling, 0},
		{"a request does not wait", installed(func(o *observed) { o.Desired.Hash, o.Desired.RequestedAt = "other", "now" }),
			install, v1alpha1.ReasonInstalling, 0},
		{"the hub is as it was again", installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonInstallWaiting }), idle,
			v1alpha1.ReasonInstalled, 0},
		{"a user requests it",
			installed(func(o *observed) { o.Desired.RequestedAt = "now" }), install, v1alpha1.ReasonInstalling,
			0},
		{"that was answered",
			installed(func(o *observed) { o.Desired.RequestedAt, o.Install.Last.RequestedAt = "now", "now" }), idle,
			"", 0},
		{"the annotation was taken off, which asks for nothing",
			installed(func(o *observed) { o.Install.Last.RequestedAt = "now" }), idle, "", 0},
		{"the agent has come in with the token: that is thrown away", installed(func(o *observed) { o.Token = used }),
			discard, "", 0},
		{"an agent that was there before may still need it", installed(func(o *observed) { o.Token = live }), idle, "",
			time.Minute},
		{"it cannot be used any more", installed(func(o *observed) { o.Token = ended }), discard, "", 0},
		{"the agent has time to come", installed(func(o *observed) { o.Joined, o.Token = false, live }), idle, "",
			time.Minute},
		{"the agent has a credential and has not confirmed: it may still fetch the answer",
			installed(func(o *observed) { o.Joined, o.Token = false, used }), idle, "", time.Minute},
		{"the agent did not come in time", installed(func(o *observed) { o.Joined, o.Token = false, ended }), install,
			v1alpha1.ReasonInstalling, 0},
		{"the claim was cleared: the next agent needs a credential", installed(func(o *observed) { o.Joined = false }),
			install, v1alpha1.ReasonInstalling, 0},
		{"the last attempt was cut short, and what it was for is no more",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonInstalling }), install, v1alpha1.ReasonInstalling, 0},
		{"it had failed, and is not known to be as it was",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonInstallFailed }), install, "", 0},
		{"an agent that was given up is back",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonAgentNotReturned }),
			idle, v1alpha1.ReasonInstalled, 0},
		{"acceptance was withdrawn: what is there stays, and is not renewed",
			installed(func(o *observed) { o.Accepted, o.Desired.Hash = false, "other" }), idle, "", 0},
		{"and its credential is withdrawn", installed(func(o *observed) { o.Accepted, o.Token = false, live }), discard,
			"", 0},
		{"its agent has to clean up first",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn = true, true }), idle, "", 0},
		{"and may need the credential that it was given to come back for that",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn, o.Token = true, true, live }), idle, "",
			time.Minute},
		{"which cannot be used any more",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn, o.Token = true, true, ended }),
			discard, "", 0},
		{"or which it has come in with",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn, o.Token = true, true, used }),
			discard, "", 0},
		{"the leave does not wait for it any more",
			installed(func(o *observed) {
				o.Leave.Requested, o.Leave.AgentIn, o.Leave.Forced, o.Token = true, true, true, live
			}), discard, "", 0},
		{"the agent has confirmed", installed(func(o *observed) { o.Leave.Requested = true }), uninstall, "", 0},
		{"an attempt to install it has failed half way", observed{Now: epoch, Leave: leaveSeen{Requested: true},
			Install: installSeen{Touched: true}}, uninstall, "",
			0},
		{"nothing was ever installed", observed{Now: epoch, Leave: leaveSeen{Requested: true}}, idle, "", 0},
		{"it cannot be removed",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.GaveUp = true, true }), idle, "", 0},
		{"the agent cleans up when it comes back",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.Forced = true, true }), idle,
			"", 0},
		{"a request does not count when it leaves",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.GaveUp, o.Desired.RequestedAt = true, true, "now" }),
			idle, "", 0},
	} {
		got := next(test.o)
		require.Equal(t, test.action, got.Action, test.reason)
		require.Equal(t, test.after, got.After, test.reason)
		if test.why == "" {
			require.Nil(t, got.Condition, test.reason)
		} else {
			require.NotNil(t, got.Condition, test.reason)
			require.Equal(t, test.why, got.Condition.Reason, test.reason)
		}
	}
}

// TestNextSettles checks, for all observations, that no action is left one round after an action was carried out, and
// that no agent loses an object that it needs.
func TestNextSettles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flag := func(name string) bool { return rapid.Bool().Draw(t, name) }
		o := observed{
			Now: epoch, Accepted: flag("accepted"), Joined: flag("joined"), Unreachable: flag("unreachable"),
			Leave: leaveSeen{Requested: flag("leaving"), Forced: flag("forced"), AgentIn: flag("agentIn"),
				GaveUp: flag("gaveUp")},
			Desired:   desired{Hash: "h", RequestedAt: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "requested")},
			Heartbeat: heartbeatSeen{Lost: flag("silent")}, Timeouts: timeouts{Token: time.Hour},
		}
		if flag("ends") {
			o.CredentialEnd = epoch.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "end")) * time.Minute)
		}
		if flag("installed") {
			o.Install.Touched = true
			o.Install.Last = &v1alpha1.InstallStatus{
				Hash:        rapid.SampledFrom([]string{"h", "g"}).Draw(t, "hash"),
				RequestedAt: rapid.SampledFrom([]string{"", "a"}).Draw(t, "answered"),
			}
		}
		if flag("token") {
			o.Token = &tokenSeen{Ends: epoch.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "ends")) * time.Minute),
				Used: flag("used")}
		}
		o.Install.Shown = rapid.SampledFrom([]string{
			"", v1alpha1.ReasonInstalled, v1alpha1.ReasonInstalling, v1alpha1.ReasonInstallFailed, v1alpha1.ReasonInstallWaiting,
			v1alpha1.ReasonAgentStarting, v1alpha1.ReasonAgentNotHealthy, v1alpha1.ReasonAgentNotReturned,
		}).Draw(t, "shown")
		o.Permitted, o.Heartbeat.Arrives = flag("turn"), !o.Heartbeat.Lost && flag("heard")
		if s := next(o); o.Install.Last == nil && o.Accepted && !o.Leave.Requested && s.Action != install {
			t.Fatal("a first installation waits")
		}
		for range 4 {
			s := next(o)
			switch s.Action {
			case idle:
				if s.After > 0 && o.Token == nil && !o.Install.awaitsHealth() && (!o.Heartbeat.Lost || o.CredentialEnd.IsZero()) {
					t.Fatal("waits for nothing")
				}
				return
			case install:
				if !o.Accepted || o.Leave.Requested {
					t.Fatal("installs without being accepted")
				}
				o.Install.Touched, o.Install.Shown = true, s.Then.Reason
				o.Install.Last = &v1alpha1.InstallStatus{Hash: o.Desired.Hash, RequestedAt: o.Desired.RequestedAt,
					InstalledAt: new(metav1.NewTime(o.Now)), Recovery: s.Recovery}
				o.Token = &tokenSeen{Ends: o.Now.Add(time.Hour)}
			case check:
				o.Install.Runs = &running{}
			case uninstall:
				if !o.Leave.Requested || o.Leave.AgentIn || o.Leave.Forced {
					t.Fatal("removes an agent that has something to do")
				}
				o.Install.Touched, o.Install.Last, o.Token = false, nil, nil
			case discard:
				o.Token = nil
			}
		}
		t.Fatal("never comes to rest")
	})
}

func TestHash(t *testing.T) {
	hub := registration.Bootstrap{Server: "https://a", CA: []byte("b")}
	base := hashOf(hub, &Manifests{Version: "1"})
	require.Len(t, base, 64, "it has to fit into the status")
	for reason, other := range map[string]string{
		"another address":   hashOf(registration.Bootstrap{Server: "https://b", CA: []byte("b")}, &Manifests{Version: "1"}),
		"another authority": hashOf(registration.Bootstrap{Server: "https://a", CA: []byte("c")}, &Manifests{Version: "1"}),
		"another revision":  hashOf(hub, &Manifests{Version: "2"}),
		"parts of the same": hashOf(registration.Bootstrap{Server: "https://ab", CA: nil}, &Manifests{Version: "1"}),
		"no revision":       hashOf(hub, Func(nil)),
	} {
		require.NotEqual(t, base, other, reason)
	}
	require.Equal(t, base, hashOf(hub, &Manifests{Version: "1"}))
}

func TestInventory(t *testing.T) {
	deployment := object{"apps/v1", "Deployment", "muster-system", "agent"}
	role := object{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "agent"}
	all := inventory{deployment, role}
	if diff := cmp.Diff(all, parseInventory(all.String())); diff != "" {
		t.Errorf("what was written is not what is read: %s", diff)
	}
	require.Empty(t, parseInventory("what a user\nhas written there"), "invalid lines lead to no deletion")
	older := deployment
	older.APIVersion = "apps/v1beta1"
	require.Empty(t, inventory{older}.without(all), "an object of another version is the same one, and is not pruned")
	require.Equal(t, inventory{role}, all.without(inventory{older}))
	require.Equal(t, inventory{role, deployment}, all.backwards())
	require.Len(t, all.with(inventory{older, role}), 2, "each once")
}
