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
		{"a short message", "a short message is unchanged", "The cluster is leaving.", "The cluster is leaving."},
		{"a message of exactly 1024 bytes",
			"a message within the limit is unchanged", strings.Repeat("x", 1024), strings.Repeat("x", 1024)},
		{"a message of 1025 bytes",
			"the ellipsis shows that the message is truncated", strings.Repeat("x", 1025), strings.Repeat("x", 1021) + "…"},
		{"a long message of two-byte characters",
			"no character is cut in half", strings.Repeat("ü", 1024), strings.Repeat("ü", 510) + "…"},
		{"invalid UTF-8", "the API accepts only valid UTF-8", "a\xffb", "a\uFFFDb"},
		{
			"a failed IPv4 connection", "the local port is removed, because it differs for each connection",
			"read tcp 10.0.0.1:38412->10.0.0.2:443: read: connection reset by peer", "read tcp 10.0.0.2:443: read: connection " +
				"reset by peer",
		},
		{"a failed IPv6 connection", "the local port is removed", "write tcp [fd00::1]:38412->[fd00::2]:443: broken pipe",
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
			t.Fatalf("got %d bytes, valid UTF-8: %v", len(got), utf8.ValidString(got))
		}
	})
}

// TestMessages_Limits checks that the API accepts the text of all steps, for all external text.
func TestMessages_Limits(t *testing.T) {
	const tooLong = 33000 // a condition message has at most 32768 characters
	text := strings.Repeat("ü", tooLong)
	for name, step := range map[string]HubStep{
		"a closed gate": NextHub(observedLeaving(func(o *HubObserved) {
			o.Gates = &GatesSeen{Waiting: text,
				Remaining: []string{text, text, text, text}}
		})),
		"a passed deadline": NextHub(observedLeaving(func(o *HubObserved) {
			o.Now, o.Gates = epoch.Add(deadline+time.Second), &GatesSeen{Waiting: "works", Remaining: []string{text, text, text}}
		})),
	} {
		for _, c := range step.Conditions {
			if len(c.Message) > messageLimit {
				t.Errorf("%s: message of condition %s: got %d bytes", name, c.Type, len(c.Message))
			}
		}
		if n := len(step.Leave.Waiting); n > nameLimit {
			t.Errorf("%s: status.leave.waiting: got %d bytes", name, n)
		}
		for _, entry := range step.Leave.Remaining {
			if len(entry) > entryLimit {
				t.Errorf("%s: entry of status.leave.remaining: got %d bytes", name, len(entry))
			}
		}
	}
	denied := NextJoinRequest(
		JoinRequestObserved{ClusterID: "id", Name: "east", Acceptor: AcceptorSeen{
			Acceptance: membership.Acceptance{Decision: membership.Deny, Reason: text},
		}})
	if denied.Answer != v1alpha1.AnswerDenied || len(denied.Message) > messageLimit {
		t.Errorf("want a short denial, got answer %s with %d bytes", denied.Answer, len(denied.Message))
	}
	notReady := no(v1alpha1.ConditionHealthy, v1alpha1.ReasonClusterNotReady, text)
	if c := Health(HealthObserved{Joined: true, Heartbeat: HeartbeatHeard, Agent: &notReady}); len(
		c.Message,
	) > messageLimit {
		t.Errorf("message of condition Healthy: got %d bytes", len(c.Message))
	}
}

func TestCheckGateName(t *testing.T) {
	for name, valid := range map[string]bool{
		"works": true, "": false, "agent": false, "namespace": false, "agents": true, "a\xff": false,
		strings.Repeat("x", 253): true, strings.Repeat("x", 254): false,
	} {
		if err := CheckGateName(name); (err == nil) != valid {
			t.Errorf("%q: %v", name, err)
		}
	}
}
