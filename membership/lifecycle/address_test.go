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
		reason string
		o      AddressObserved
		want   AddressAction
		why    string
	}{
		{"an agent that was just started may have missed that the hub moved", AddressObserved{}, LookForAddress, ""},
		{"no request in steady state", AddressObserved{Looked: ago(time.Hour)}, KeepAddress, ""},
		{"the hub may have moved since", AddressObserved{Looked: ago(time.Hour), Silent: ago(time.Second)}, LookForAddress,
			""},
		{"an administrator takes longer than that to write a Secret",
			AddressObserved{Looked: ago(time.Second), Silent: ago(time.Second)}, KeepAddress, ""},
		{"the longer it is away the less often", AddressObserved{Looked: ago(9 * time.Second), Silent: ago(time.Hour)},
			KeepAddress, ""},
		{"but never less than every ten seconds", AddressObserved{Looked: ago(10 * time.Second), Silent: ago(time.Hour)},
			LookForAddress, ""},
		{"there is another address", AddressObserved{Looked: now, Other: true}, TryAddress, ""},
		{"also where the hub is silent", AddressObserved{Looked: now, Silent: ago(time.Hour), Other: true}, TryAddress, ""},
		{"it is there", AddressObserved{Looked: now, Other: true, There: HubSeen}, TakeAddress, ""},
		{"another hub, which is none of its business", AddressObserved{Looked: now, Other: true, There: HubRefused},
			KeepAddress,
			"the agent's credential is refused there"},
		{"the same hub without the member, or one that takes this user for another",
			AddressObserved{Looked: now, Other: true, There: HubGone}, KeepAddress,
			"there is no Membership for the agent there"},
		{"a member that was deleted and made anew is another one", AddressObserved{Looked: now, Other: true, There: HubOther},
			KeepAddress,
			"the Membership there belongs to another member"},
		{"a typing error", AddressObserved{Looked: now, Silent: ago(time.Hour), Other: true, There: HubUnreachable},
			KeepAddress,
			"the hub does not respond there either"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			tc.o.Now = now
			got, why := NextAddress(tc.o)
			require.Equal(t, tc.want, got)
			require.Equal(t, tc.why, why)
		})
	}
}

// TestAddressIsTakenForOneReason checks that an agent uses another address only if it finds its Membership there, for
// all observations, and that each round ends.
func TestAddressIsTakenForOneReason(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	times := []time.Time{{}, now, now.Add(-time.Second), now.Add(-time.Hour), now.Add(time.Hour)}
	for _, silent := range times {
		for _, looked := range times {
			for _, other := range []bool{false, true} {
				for there := HubNotAsked; there <= HubSeen; there++ {
					o := AddressObserved{Now: now, Silent: silent, Looked: looked, Other: other}
					looks, tries := 0, 0
				round:
					for {
						action, _ := NextAddress(o)
						switch action {
						case LookForAddress:
							looks++
							o.Looked = now
						case TryAddress:
							tries++
							if o.There = there; there == HubNotAsked {
								break round // which is no answer
							}
						case TakeAddress:
							require.Equal(t, HubSeen, there)
							require.Equal(t, 1, tries)
							break round
						case KeepAddress:
							break round
						}
						require.LessOrEqual(t, looks, 1)
						require.LessOrEqual(t, tries, 1)
					}
				}
			}
		}
	}
}
