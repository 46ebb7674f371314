package lifecycle

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestFormatMessage(t *testing.T) {
	for _, test := range []struct{ name, reason, text, want string }{
		{"short", "what can be said is said", "The cluster is leaving.", "The cluster is leaving."},
		{"the limit", "nothing is cut without need", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{"long", "one can see that something is missing", strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "…"},
		{"long, of wide characters", "half a character is none", strings.Repeat("ü", 1024), strings.Repeat("ü", 510) + "…"},
		{"broken", "the API takes valid text alone", "a\xffb", "a\uFFFDb"},
		{
			"a broken connection", "each has a port of its own, and the failure is the same",
			"read tcp 10.0.0.1:38412->10.0.0.2:443: read: connection reset by peer", "read tcp 10.0.0.2:443: read: connection " +
				"reset by peer",
		},
		{"a broken connection of IPv6", "the same", "write tcp [fd00::1]:38412->[fd00::2]:443: broken pipe",
			"write tcp [fd00::2]:443: broken pipe"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := FormatMessage(test.text); got != test.want {
				t.Errorf("%s: want %q, got %q", test.reason, test.want, got)
			}
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		text := string(rapid.SliceOfN(rapid.SampledFrom([]byte("aü…\xff\xf0\x9f\x98\x80 :->1")), 0, 3000).Draw(t, "text"))
		got := FormatMessage(text)
		if len(got) > messageLimit || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	})
}

// TestManyWords checks that the API accepts the text of all steps, for all external text.
func TestManyWords(t *testing.T) {
	const many = 33000 // the API takes 32768 in a condition
	text := strings.Repeat("ü", many)
	for name, step := range map[string]HubStep{
		"waiting": NextHub(isLeaving(func(o *HubObserved) {
			o.Gates = &GatesSeen{Waiting: text,
				Remaining: []string{text, text, text, text}}
		})),
		"overdue": NextHub(isLeaving(func(o *HubObserved) {
			o.Now, o.Gates = epoch.Add(deadline+time.Second), &GatesSeen{Waiting: "works", Remaining: []string{text, text, text}}
		})),
	} {
		for _, c := range step.Conditions {
			if len(c.Message) > messageLimit {
				t.Errorf("%s: the message of %s has %d bytes", name, c.Type, len(c.Message))
			}
		}
		if n := len(step.Leave.Waiting); n > nameLimit {
			t.Errorf("%s: what it waits for has %d bytes", name, n)
		}
		for _, entry := range step.Leave.Remaining {
			if len(entry) > entryLimit {
				t.Errorf("%s: an entry has %d bytes", name, len(entry))
			}
		}
	}
	denied := NextJoinRequest(
		JoinRequestObserved{ClusterID: "id", Name: "east", Acceptor: AcceptorSeen{
			Acceptance: membership.Acceptance{Decision: membership.Deny, Reason: text},
		}})
	if denied.Answer != v1alpha1.AnswerDenied || len(denied.Message) > messageLimit {
		t.Errorf("the hub answers %s in %d bytes", denied.Answer, len(denied.Message))
	}
	unwell := no(v1alpha1.ConditionHealthy, v1alpha1.ReasonClusterNotReady, text)
	if c := Health(HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &unwell}); len(
		c.Message,
	) > messageLimit {
		t.Errorf("Healthy says why in %d bytes", len(c.Message))
	}
}

func TestCheckGateName(t *testing.T) {
	for name, fits := range map[string]bool{
		"works": true, "": false, "agent": false, "namespace": false, "agents": true, "a\xff": false,
		strings.Repeat("x", 253): true, strings.Repeat("x", 254): false,
	} {
		if err := CheckGateName(name); (err == nil) != fits {
			t.Errorf("%q: %v", name, err)
		}
	}
}
