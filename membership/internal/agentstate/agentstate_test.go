package agentstate

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/registration"
)

func TestState_Replaces(t *testing.T) {
	existing := State{State: lifecycle.Registering, Reason: "NameTaken", Message: "East is another.", Hub: "https://hub",
		Bootstrap: "one"}
	with := func(s State, change func(*State)) State { change(&s); return s }
	joined := State{State: lifecycle.Joined, Message: "The member has joined the hub.", Hub: "https://hub"}
	for _, test := range []struct {
		reason  string
		written State
		next    State
		want    bool
	}{
		{"an empty state does not replace an empty state", State{}, State{}, false},
		{"the first state is written", State{}, existing, true},
		{"a later time alone is not written", existing, with(existing, func(s *State) { s.Time = time.Unix(1, 0) }), false},
		{"another message is written", existing, with(existing, func(s *State) { s.Message = "West is another." }), true},
		{"another bootstrap credential is written", existing, with(existing, func(s *State) {
			s.Bootstrap = "two"
		}),
			true},
		{"another network error is not written", with(existing, func(s *State) { s.Reason = HubUnreachable }),
			with(existing, func(s *State) { s.Reason, s.Message = HubUnreachable, "No route." }), false},
		{"the end of a blocked request is written", existing, State{State: lifecycle.Registering}, true},
		{"a state between Unregistered and Joined is not written", State{State: lifecycle.Unregistered},
			State{State: lifecycle.Joining, Hub: "https://hub", Message: "Looking."}, false},
		{"Joined after Joining is written", State{State: lifecycle.Joining, Hub: "https://hub"}, joined, true},
		{"an error of a joined agent is not written", joined,
			with(joined, func(s *State) { s.Message, s.Bootstrap = "The member has joined the hub (no route).", "one" }), false},
		{"another address of the hub is written", joined, with(joined, func(s *State) { s.Hub = "https://elsewhere" }), true},
		{"a denial of a joined agent is written", joined, State{State: lifecycle.Rejected, Reason: "Denied"}, true},
		{"a refusal without a reason is written", joined, State{State: lifecycle.Rejected}, true},
		{"Leaving is written", joined, State{State: lifecycle.Leaving}, true},
		{"Away is written", joined, State{State: Away}, true},
	} {
		require.Equal(t, test.want, test.next.Replaces(test.written), test.reason)
	}
}

func TestState_Marshal(t *testing.T) {
	want := State{
		State: lifecycle.Rejected, Reason: "Denied", Message: "The request was denied.", Hub: "https://hub", Bootstrap: "one",
		Time: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
	}
	data, err := want.Marshal()
	require.NoError(t, err)
	got, err := Parse(data)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(want, got))

	long := want
	long.Message = "x" + strings.Repeat("ä", 10000)
	data, err = long.Marshal()
	require.NoError(t, err)
	require.Less(t, len(data), 2*limit)
	got, err = Parse(data)
	require.NoError(t, err)
	require.False(t, long.Replaces(got), "a truncated message is written once")

	empty, err := Parse("")
	require.NoError(t, err)
	require.Equal(t, State{}, empty)
	for _, invalid := range []string{"x", "{}", "[]", `{"state":1}`} {
		_, err := Parse(invalid)
		require.ErrorIs(t, err, errUnreadable, invalid)
	}
}

func TestFingerprint(t *testing.T) {
	b := registration.Bootstrap{Server: "https://hub", Namespace: "n", TokenName: "t", Token: "secret-words",
		CA: []byte("ca"), Key: []byte("key")}
	same := b
	same.ExpirationTime = time.Unix(1, 0)
	require.Equal(t, Fingerprint(&b), Fingerprint(&same))
	require.NotContains(t, Fingerprint(&b), "secret")
	require.Empty(t, Fingerprint(nil))
	for name, change := range map[string]func(*registration.Bootstrap){
		"server":    func(b *registration.Bootstrap) { b.Server += "x" },
		"token":     func(b *registration.Bootstrap) { b.Token += "x" },
		"name":      func(b *registration.Bootstrap) { b.TokenName += "x" },
		"namespace": func(b *registration.Bootstrap) { b.Namespace, b.TokenName = "nt", "" },
		"ca":        func(b *registration.Bootstrap) { b.CA = nil },
		"key":       func(b *registration.Bootstrap) { b.Key = []byte("other") },
	} {
		other := b
		change(&other)
		require.NotEqual(t, Fingerprint(&b), Fingerprint(&other), name)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(`{"state":"Joined","time":"2026-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, annotation string) {
		s, err := Parse(annotation)
		if err != nil {
			return
		}
		if again, err := s.Marshal(); err == nil && s.State != "" { // JSON cannot represent all times
			got, err := Parse(again)
			require.NoError(t, err)
			require.False(t, got.Replaces(got))
		}
	})
}
