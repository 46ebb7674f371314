package clusterapi

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

func TestDecide(t *testing.T) {
	of := func(uid types.UID, deleting bool) *cluster {
		return &cluster{namespace: "clusters", name: "east", uid: uid, deleting: deleting}
	}
	existing := &member{source: of("1", false).source()}
	leaving := &member{source: existing.source, deleting: true}
	for _, test := range []struct {
		reason       string
		cluster      *cluster
		member       *member
		leaveDeleted bool
		want         step
	}{
		{"no Cluster", nil, existing, true, nothing},
		{"a new Cluster", of("1", false), nil, false, create},
		{"a new Cluster that is being deleted", of("1", true), nil, true, nothing},
		{"imported", of("1", false), existing, true, nothing},
		{"being deleted, without the option", of("1", true), existing, false, nothing},
		{"being deleted, with the option", of("1", true), existing, true, leave},
		{"being deleted, and leaving", of("1", true), leaving, true, nothing},
		{"a MemberCluster of a user", of("1", false), &member{}, true, report},
		{"a MemberCluster of an earlier Cluster", of("2", false), existing, true, report},
		{"an earlier Cluster's MemberCluster, and the new one is being deleted", of("2", true), existing, true, nothing},
	} {
		t.Run(test.reason, func(t *testing.T) {
			got := decide(test.cluster, test.member, test.leaveDeleted)
			require.Equal(t, test.want, got.step)
			require.Equal(t, test.want == report, got.message != "")
		})
	}
}

// TestDecide_Properties checks that a MemberCluster leaves only on the requested deletion of the Cluster that it was
// created for, and that no other MemberCluster is changed.
func TestDecide_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		uids := rapid.SampledFrom([]types.UID{"1", "2"})
		names := rapid.SampledFrom([]string{"a", "b", "a-b"})
		clusters := rapid.Custom(func(t *rapid.T) cluster {
			return cluster{names.Draw(t, "namespace"), names.Draw(t, "name"), uids.Draw(t, "uid"),
				rapid.Bool().Draw(t, "deleting")}
		})
		var c *cluster
		if rapid.Bool().Draw(t, "exists") {
			c = new(clusters.Draw(t, "cluster"))
		}
		of := clusters.Draw(t, "source")
		var m *member
		if rapid.Bool().Draw(t, "imported") {
			m = &member{source: of.source(), deleting: rapid.Bool().Draw(t, "leaving")}
		}
		leaveDeleted := rapid.Bool().Draw(t, "leaveDeleted")
		switch got := decide(c, m, leaveDeleted); got.step {
		case leave:
			if !leaveDeleted || c == nil || !c.deleting || m == nil || m.deleting || c.namespace != of.namespace ||
				c.name != of.name || c.uid != of.uid {
				t.Fatalf("leave: %+v %+v", c, m)
			}
		case create:
			if c == nil || c.deleting || m != nil {
				t.Fatalf("create: %+v %+v", c, m)
			}
		}
	})
}

func TestMemberName(t *testing.T) {
	require.Equal(t, "clusters-east", memberName("clusters", "east"))
	long := strings.Repeat("x", 40)
	first, second := memberName(long, long+"1"), memberName(long, long+"2")
	require.NotEqual(t, first, second)
	require.NotEqual(t, memberName("a", "b.c"), memberName("a", "b-c"))
	require.Empty(t, validation.IsDNS1123Label(memberName("a", "b.c")))
	require.NotEqual(t, memberName(long+"-a", long), memberName(long, "a-"+long))
	for _, length := range []int{1, 61, 62, 253} {
		name := memberName("a", strings.Repeat("y", length))
		require.Empty(t, validation.IsDNS1123Label(name), name)
		require.LessOrEqual(t, len(name), maxName)
	}
}

func TestOptions_Validate(t *testing.T) {
	for want, o := range map[string]Options{
		"Options.Namespaces: name at least one": {},
		"Options.Namespaces[1]":                 {Namespaces: []string{"a", "A"}},
		"Options.JoinMode":                      {Namespaces: []string{"a"}, JoinMode: "Pull"},
	} {
		require.ErrorContains(t, o.withDefaults().validate(), want)
	}
	require.NoError(t, Options{Namespaces: []string{"a"}}.withDefaults().validate())
}
