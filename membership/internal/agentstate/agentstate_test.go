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

func TestReplaces(t *testing.T) {
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
		{"nothing is known yet", State{}, State{}, false},
		{"the first", State{}, existing, true},
		{"the same later", existing, with(existing, func(s *State) { s.Time = time.Unix(1, 0) }), false},
		{"the hub has other words", existing, with(existing, func(s *State) { s.Message = "West is another." }), true},
		{"it was asked with another token, and said the same", existing, with(existing, func(s *State) {
			s.Bootstrap = "two"
		}),
			true},
		{"the network fails in another way", with(existing, func(s *State) { s.Reason = HubUnreachable }),
			with(existing, func(s *State) { s.Reason, s.Message = HubUnreachable, "No route." }), false},
		{"it waits for nothing any more", existing, State{State: lifecycle.Registering}, true},
		{"on the way nothing is worth a word", State{State: lifecycle.Unregistered},
			State{State: lifecycle.Joining, Hub: "https://hub", Message: "Looking."}, false},
		{"it has arrived", State{State: lifecycle.Joining, Hub: "https://hub"}, joined, true},
		{"what troubles a member is not written down here", joined,
			with(joined, func(s *State) { s.Message, s.Bootstrap = "The member has joined the hub (no route).", "one" }), false},
		{"its hub has moved", joined, with(joined, func(s *State) { s.Hub = "https://elsewhere" }), true},
		{"it is refused", joined, State{State: lifecycle.Rejected, Reason: "Denied"}, true},
		{"the hub refuses it, and it asks why", joined, State{State: lifecycle.Rejected}, true},
		{"it leaves", joined, State{State: lifecycle.Leaving}, true},
		{"it goes to another hub", joined, State{State: Away}, true},
	} {
		require.Equal(t, test.want, test.next.Replaces(test.written), test.reason)
	}
}

func TestMarshal(t *testing.T) {
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

	none, err := Parse("")
	require.NoError(t, err)
	require.Equal(t, State{}, none)
	for _, wrong := range []string{"x", "{}", "[]", `{"state":1}`} {
		_, err := Parse(wrong)
		require.ErrorIs(t, err, errUnreadable, wrong)
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
