package lifecycle_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/muster-sdk/muster/membership/lifecycle"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// keyHolder is a party with the claim keys of one agent: the agent itself, or a copy of it.
type keyHolder struct {
	name string
	keys []string // newest first
	made int
}

// renew returns the proven keys of the holder, including a new one if fresh is true.
func (h *keyHolder) renew(fresh bool) []string {
	if fresh {
		h.made++
		h.keys = append([]string{fmt.Sprintf("%s %d", h.name, h.made)}, h.keys...)
	}
	return slices.Clone(h.keys)
}

// issue performs the hub's part of a renewal.
func issue(known **v1alpha1.ClaimKeys, proven []string, now time.Time) bool {
	if !lifecycle.HasCurrentKey("claim", *known, proven) {
		return false
	}
	*known = lifecycle.NextClaimKeys("claim", *known, proven, now)
	return true
}

// TestClaimKeys_NoFalseReports checks that an agent always has the current key, for all results of its renewals and
// restores of the hub's store.
func TestClaimKeys_NoFalseReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agent := &keyHolder{name: "agent", keys: []string{"claim"}}
		var known *v1alpha1.ClaimKeys
		backups := []*v1alpha1.ClaimKeys{nil}
		for step := range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"renew", "lose the answer", "back up", "restore", "remove"}).Draw(t, "step") {
			case "renew":
				if !issue(&known, agent.renew(rapid.Bool().Draw(t, "fresh")), noon.Add(time.Duration(step))) {
					t.Fatalf("the agent with %v does not have the current key of %v", agent.keys, known)
				}
				if known != nil && known.Current != agent.keys[0] {
					t.Fatalf("%v is not the newest key of %v", known, agent.keys)
				}
			case "lose the answer": // the hub or the agent ended after the request, with or without its effect
				proven := agent.renew(true)
				if rapid.Bool().Draw(t, "hub was faster") {
					issue(&known, proven, noon)
				}
			case "back up":
				backups = append(backups, known.DeepCopy())
			case "restore":
				known = rapid.SampledFrom(backups).Draw(t, "backup").DeepCopy()
			case "remove": // by an administrator
				known = nil
			}
		}
	})
}

// TestClaimKeys_FindsCopies checks that a copy of an agent's keys is refused once the agent has renewed its credential
// with a new key, and that the agent's next request is refused if the copy has done so first.
func TestClaimKeys_FindsCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		agent := &keyHolder{name: "agent", keys: []string{"claim"}}
		var known *v1alpha1.ClaimKeys
		for range rapid.IntRange(0, 5).Draw(t, "renewals before") {
			issue(&known, agent.renew(rapid.Bool().Draw(t, "fresh")), noon)
		}
		copied := &keyHolder{name: "copy", keys: slices.Clone(agent.keys)}
		ended, noticed := false, false // the copy has no effect; the agent would be refused
		for range rapid.IntRange(1, 20).Draw(t, "renewals after") {
			fresh := rapid.Bool().Draw(t, "fresh")
			if rapid.Bool().Draw(t, "agent") {
				issued := issue(&known, agent.renew(fresh), noon)
				if issued == noticed {
					t.Fatalf("agent with %v: issued %v at %v", agent.keys, issued, known)
				}
				ended = ended || issued && !slices.Contains(copied.keys, agent.keys[0])
				continue
			}
			proven := copied.renew(fresh)
			if rapid.Bool().Draw(t, "reorder") {
				last := len(proven) - 1 // the claim key is always the last one
				proven = append(rapid.Permutation(proven[:last]).Draw(t, "order"), proven[last])
			}
			issued := issue(&known, proven, noon)
			if issued == ended {
				t.Fatalf("copy with %v: issued %v at %v", proven, issued, known)
			}
			noticed = noticed && !issued || issued && len(proven) > 1 && !slices.Contains(agent.keys, proven[0])
		}
	})
}

func TestClaimKeys_Table(t *testing.T) {
	first := &v1alpha1.ClaimKeys{Claim: "a", Current: "a1"}
	reused := first.DeepCopy()
	reused.ReusedAt = new(first.Since)
	require.True(t, lifecycle.HasCurrentKey("a", nil, []string{"a"}))
	require.False(t, lifecycle.HasCurrentKey("a", first, []string{"a"}))
	require.True(t, lifecycle.HasCurrentKey("b", first, []string{"b"}), "keys of another claim have no effect")
	require.Nil(t, lifecycle.NextClaimKeys("a", nil, []string{"a"}, noon), "an agent of an earlier version")
	require.Equal(t, first, lifecycle.NextClaimKeys("a", first, []string{"a1", "a"}, noon), "no newer key")
	next := lifecycle.NextClaimKeys("a", reused, []string{"a2", "a1", "a"}, noon)
	require.Equal(t, "a2", next.Current)
	require.Equal(t, reused.ReusedAt, next.ReusedAt, "a renewal does not close a report")
	require.True(t, noon.Equal(next.Since.Time))
	require.Nil(t, lifecycle.NextClaimKeys("b", reused, []string{"b1", "b"}, noon).ReusedAt, "another agent has joined")

	require.Equal(t, first, lifecycle.BoundClaimKeys("a", first, []string{"a2", "a"}, noon))
	require.Equal(t, "b2", lifecycle.BoundClaimKeys("b", first, []string{"b2", "b1", "b"}, noon).Current)
	require.Nil(t, lifecycle.BoundClaimKeys("b", first, []string{"b"}, noon))

	require.Empty(t, lifecycle.ReusedMessage("a", nil))
	require.Empty(t, lifecycle.ReusedMessage("a", first))
	require.Contains(t, lifecycle.ReusedMessage("a", reused), "remove spec.claimKeys")
	require.Empty(t, lifecycle.ReusedMessage("b", reused), "the report is about another agent")
}
