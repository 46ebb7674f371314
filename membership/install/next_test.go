package install

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/internal/ssa"
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
	valid, used, expired := &tokenSeen{Ends: epoch.Add(time.Minute)}, &tokenSeen{Ends: epoch.Add(time.Minute), Used: true},
		&tokenSeen{Ends: epoch}
	for _, test := range []struct {
		reason string
		o      observed
		action action
		shown  string // the reason of the condition
		after  time.Duration
	}{
		{"a member that is not accepted: nothing is installed", observed{Now: epoch}, idle, v1alpha1.ReasonNotAccepted,
			0},
		{"a new accepted member: the agent is installed",
			observed{Now: epoch, Accepted: true}, install, v1alpha1.ReasonInstalling, 0},
		{"a failed attempt: its reason is shown until an attempt succeeds",
			observed{Now: epoch, Accepted: true, Install: installSeen{Touched: true, Shown: v1alpha1.ReasonInstallFailed}},
			install, "", 0},
		{"an installed agent without changes", installed(func(*observed) {}), idle, "", 0},
		{"another hash without a rollout permit", installed(func(o *observed) { o.Desired.Hash = "other" }), idle,
			v1alpha1.ReasonInstallWaiting, 0},
		{"another hash with a rollout permit",
			installed(func(o *observed) { o.Desired.Hash, o.Permitted = "other", true }), install,
			v1alpha1.ReasonInstalling, 0},
		{"another hash: an installation in progress continues without a permit",
			installed(func(o *observed) { o.Desired.Hash, o.Install.Shown = "other", v1alpha1.ReasonInstalling }), install,
			v1alpha1.ReasonInstalling, 0},
		{"another hash: a failed installation is retried without a permit",
			installed(func(o *observed) { o.Desired.Hash, o.Install.Shown = "other", v1alpha1.ReasonInstallFailed }),
			install, "", 0},
		{"another hash: a failed installation of an unreachable member is not retried",
			installed(func(o *observed) {
				o.Desired.Hash, o.Install.Shown, o.Unreachable = "other", v1alpha1.ReasonInstallFailed, true
			}), idle,
			"", 0},
		{"another hash: an agent that has not joined needs no permit",
			installed(func(o *observed) { o.Desired.Hash, o.Joined = "other", false }), install, v1alpha1.ReasonInstalling, 0},
		{"another hash: a requested installation needs no permit",
			installed(func(o *observed) { o.Desired.Hash, o.Desired.RequestedAt = "other", "now" }),
			install, v1alpha1.ReasonInstalling, 0},
		{"a waiting member whose hash is current again",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonInstallWaiting }), idle,
			v1alpha1.ReasonInstalled, 0},
		{"a user requests an installation",
			installed(func(o *observed) { o.Desired.RequestedAt = "now" }), install, v1alpha1.ReasonInstalling,
			0},
		{"a request that was answered",
			installed(func(o *observed) { o.Desired.RequestedAt, o.Install.Last.RequestedAt = "now", "now" }), idle,
			"", 0},
		{"the annotation of a former request was removed",
			installed(func(o *observed) { o.Install.Last.RequestedAt = "now" }), idle, "", 0},
		{"a used token of a joined agent is deleted", installed(func(o *observed) { o.Token = used }),
			discard, "", 0},
		{"a valid token of a joined agent is kept until it expires",
			installed(func(o *observed) { o.Token = valid }), idle, "",
			time.Minute},
		{"an expired token of a joined agent is deleted", installed(func(o *observed) { o.Token = expired }), discard, "", 0},
		{"an agent that has not joined has time until its token expires",
			installed(func(o *observed) { o.Joined, o.Token = false, valid }), idle, "",
			time.Minute},
		{"a used token is kept until the agent has joined",
			installed(func(o *observed) { o.Joined, o.Token = false, used }), idle, "", time.Minute},
		{"the token expired before the agent joined: installed again",
			installed(func(o *observed) { o.Joined, o.Token = false, expired }), install,
			v1alpha1.ReasonInstalling, 0},
		{"an agent that has not joined and has no token is installed again",
			installed(func(o *observed) { o.Joined = false }),
			install, v1alpha1.ReasonInstalling, 0},
		{"an interrupted installation is repeated",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonInstalling }), install, v1alpha1.ReasonInstalling, 0},
		{"a failed installation is repeated",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonInstallFailed }), install, "", 0},
		{"an agent that did not return has joined again",
			installed(func(o *observed) { o.Install.Shown = v1alpha1.ReasonAgentNotReturned }),
			idle, v1alpha1.ReasonInstalled, 0},
		{"without acceptance, the installation stays and is not updated",
			installed(func(o *observed) { o.Accepted, o.Desired.Hash = false, "other" }), idle, "", 0},
		{"without acceptance, the token is deleted",
			installed(func(o *observed) { o.Accepted, o.Token = false, valid }), discard,
			"", 0},
		{"a leaving member whose agent has not confirmed: no removal",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn = true, true }), idle, "", 0},
		{"a leaving member whose agent has not confirmed: a valid token is kept",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn, o.Token = true, true, valid }), idle, "",
			time.Minute},
		{"a leaving member whose agent has not confirmed: an expired token is deleted",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn, o.Token = true, true, expired }),
			discard, "", 0},
		{"a leaving member whose agent has not confirmed: a used token is deleted",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.AgentIn, o.Token = true, true, used }),
			discard, "", 0},
		{"a forced leave: the token is deleted",
			installed(func(o *observed) {
				o.Leave.Requested, o.Leave.AgentIn, o.Leave.Forced, o.Token = true, true, true, valid
			}), discard, "", 0},
		{"a leaving member whose agent has confirmed: the agent is removed",
			installed(func(o *observed) { o.Leave.Requested = true }), uninstall, "", 0},
		{"a leaving member with an incomplete installation: the agent is removed",
			observed{Now: epoch, Leave: leaveSeen{Requested: true},
				Install: installSeen{Touched: true}}, uninstall, "",
			0},
		{"a leaving member without an installation", observed{Now: epoch, Leave: leaveSeen{Requested: true}}, idle, "", 0},
		{"a leaving member whose removal was given up",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.GaveUp = true, true }), idle, "", 0},
		{"a forced leave: the agent stays, to clean up later",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.Forced = true, true }), idle,
			"", 0},
		{"a leaving member: a requested installation has no effect",
			installed(func(o *observed) { o.Leave.Requested, o.Leave.GaveUp, o.Desired.RequestedAt = true, true, "now" }),
			idle, "", 0},
	} {
		got := next(test.o)
		require.Equal(t, test.action, got.Action, test.reason)
		require.Equal(t, test.after, got.After, test.reason)
		if test.shown == "" {
			require.Nil(t, got.Condition, test.reason)
		} else {
			require.NotNil(t, got.Condition, test.reason)
			require.Equal(t, test.shown, got.Condition.Reason, test.reason)
		}
	}
}

// TestNext_Properties checks, for all observations, that no action is left one round after an action was carried out,
// and that no agent loses an object that it needs.
func TestNext_Properties(t *testing.T) {
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
			t.Fatal("the first installation waits for a permit")
		}
		for range 4 {
			s := next(o)
			switch s.Action {
			case idle:
				if s.After > 0 && o.Token == nil && !o.Install.awaitsHealth() && (!o.Heartbeat.Lost || o.CredentialEnd.IsZero()) {
					t.Fatal("idle with a requeue and nothing to wait for")
				}
				return
			case install:
				if !o.Accepted || o.Leave.Requested {
					t.Fatal("an agent is installed on a member that is not accepted or leaves")
				}
				o.Install.Touched, o.Install.Shown = true, s.Then.Reason
				o.Install.Last = &v1alpha1.InstallStatus{Hash: o.Desired.Hash, RequestedAt: o.Desired.RequestedAt,
					InstalledAt: new(metav1.NewTime(o.Now)), Recovery: s.Recovery}
				o.Token = &tokenSeen{Ends: o.Now.Add(time.Hour)}
			case check:
				o.Install.Runs = &running{}
			case uninstall:
				if !o.Leave.Requested || o.Leave.AgentIn || o.Leave.Forced {
					t.Fatal("an agent is removed that may have to clean up")
				}
				o.Install.Touched, o.Install.Last, o.Token = false, nil, nil
			case discard:
				o.Token = nil
			}
		}
		t.Fatal("next returns more than four actions in sequence")
	})
}

func TestHashOf(t *testing.T) {
	hub := registration.Bootstrap{Server: "https://a", CA: []byte("b")}
	base := hashOf(hub, &Manifests{Version: "1"})
	require.Len(t, base, 64, "the hash has the length that the status accepts")
	for reason, other := range map[string]string{
		"another address of the hub": hashOf(registration.Bootstrap{Server: "https://b", CA: []byte("b")},
			&Manifests{Version: "1"}),
		"another CA of the hub": hashOf(registration.Bootstrap{Server: "https://a", CA: []byte("c")},
			&Manifests{Version: "1"}),
		"another version of the manifests": hashOf(hub, &Manifests{Version: "2"}),
		"the same bytes divided differently": hashOf(registration.Bootstrap{Server: "https://ab", CA: nil},
			&Manifests{Version: "1"}),
		"an installer without a version": hashOf(hub, Func(nil)),
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
		t.Errorf("parse of the written inventory (-want +got):\n%s", diff)
	}
	require.Empty(t, parseInventory("what a user\nhas written there"), "invalid lines lead to no deletion")
	older := deployment
	older.APIVersion = "apps/v1beta1"
	require.Equal(t, deployment.key(), older.key(),
		"an object of another API version is the same object, and is not pruned")
	require.NotEqual(t, deployment.key(), role.key())
}

func TestInventoryOf_OrderWithoutDuplicates(t *testing.T) {
	role := object{"rbac.authorization.k8s.io/v1", "ClusterRole", "", "agent"}
	definition := object{"apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things.example.com"}
	namespace := object{"v1", "Namespace", "", "muster-system"}
	var objects []*unstructured.Unstructured
	for _, each := range []object{role, definition, namespace, role} {
		objects = append(objects, ssa.New(each.kind(), each.objectKey()))
	}
	require.Equal(t, inventory{namespace, definition, role}, inventoryOf(objects))
}
