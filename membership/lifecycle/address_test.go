package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNextAddress(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	for _, tc := range []struct {
		reason  string
		o       AddressObserved
		want    AddressAction
		refusal string
	}{
		{"an agent that has just started reads the source of the bootstrap credential", AddressObserved{}, LookForAddress,
			""},
		{"a connected agent does not read the source",
			AddressObserved{Looked: ago(time.Hour)}, KeepAddress, ""},
		{"the hub became unreachable after the last read",
			AddressObserved{Looked: ago(time.Hour), Silent: ago(time.Second)}, LookForAddress,
			""},
		{"the last read was one second ago",
			AddressObserved{Looked: ago(time.Second), Silent: ago(time.Second)}, KeepAddress, ""},
		{"reads are less frequent while the hub stays unreachable",
			AddressObserved{Looked: ago(9 * time.Second), Silent: ago(time.Hour)},
			KeepAddress, ""},
		{"reads are at least every ten seconds", AddressObserved{Looked: ago(10 * time.Second), Silent: ago(time.Hour)},
			LookForAddress, ""},
		{"the bootstrap credential has another address", AddressObserved{Looked: now, Other: true}, TryAddress, ""},
		{"the bootstrap credential has another address and the hub is unreachable",
			AddressObserved{Looked: now, Silent: ago(time.Hour), Other: true}, TryAddress, ""},
		{"the Membership exists at the other address",
			AddressObserved{Looked: now, Other: true, There: HubSeen}, TakeAddress, ""},
		{"the credential is refused at the other address", AddressObserved{Looked: now, Other: true, There: HubRefused},
			KeepAddress,
			"the agent's credential is refused there"},
		{"no Membership exists at the other address",
			AddressObserved{Looked: now, Other: true, There: HubGone}, KeepAddress,
			"there is no Membership for the agent there"},
		{"the Membership at the other address has another UID", AddressObserved{Looked: now, Other: true, There: HubOther},
			KeepAddress,
			"the Membership there belongs to another member"},
		{"the other address does not respond",
			AddressObserved{Looked: now, Silent: ago(time.Hour), Other: true, There: HubUnreachable},
			KeepAddress,
			"the hub does not respond there either"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.o.Now = now
			got, refusal := NextAddress(tc.o)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.refusal, refusal)
		})
	}
}

// TestNextAddress_TakenOnlyWithMembership checks that an agent uses another address only if it finds its Membership
// there, for all observations, and that each round ends.
func TestNextAddress_TakenOnlyWithMembership(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	times := []time.Time{{}, now, now.Add(-time.Second), now.Add(-time.Hour), now.Add(time.Hour)}
	for _, silent := range times {
		for _, looked := range times {
			for _, other := range []bool{false, true} {
				for there := HubNotAsked; there <= HubSeen; there++ {
					o := AddressObserved{Now: now, Silent: silent, Looked: looked, Other: other}
					reads, tries := 0, 0
				round:
					for {
						action, _ := NextAddress(o)
						switch action {
						case LookForAddress:
							reads++
							o.Looked = now
						case TryAddress:
							tries++
							if o.There = there; there == HubNotAsked {
								break round // HubNotAsked is no result
							}
						case TakeAddress:
							require.Equal(t, HubSeen, there)
							require.Equal(t, 1, tries)
							break round
						case KeepAddress:
							break round
						}
						require.LessOrEqual(t, reads, 1)
						require.LessOrEqual(t, tries, 1)
					}
				}
			}
		}
	}
}
