package jointoken

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/muster-sdk/muster/membership"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestAdmit(t *testing.T) {
	used := func(uses int32, by ...string) v1alpha1.JoinTokenStatus {
		return v1alpha1.JoinTokenStatus{Uses: uses, UsedBy: by}
	}
	hour := v1alpha1.JoinTokenSpec{TTLSeconds: ptr.To[int64](3600)}
	twice := v1alpha1.JoinTokenSpec{MaxUses: ptr.To[int32](2)}
	for _, test := range []struct {
		reason    string
		spec      v1alpha1.JoinTokenSpec
		status    v1alpha1.JoinTokenStatus
		requested time.Duration // after the token's creation
		want      string        // of the error
	}{
		{"a token without limits", v1alpha1.JoinTokenSpec{}, used(0), 1000 * time.Hour, ""},
		{"a request before the expiration", hour, used(0), time.Hour - time.Second, ""},
		{"a request at the expiration", hour, used(0), time.Hour, "expired at 2026-01-01T01:00:00Z"},
		{"a token for this cluster", v1alpha1.JoinTokenSpec{ClusterID: "east-id"}, used(0), 0, ""},
		{"a token for another cluster", v1alpha1.JoinTokenSpec{ClusterID: "east-id-b"}, used(0), 0, "another cluster"},
		{"a token for a cluster whose ID is a prefix", v1alpha1.JoinTokenSpec{ClusterID: "east"}, used(0), 0,
			"another cluster"},
		{"one of two uses remains", twice, used(1, "west-id"), 0, ""},
		{"no use remains", twice, used(2, "west-id", "north-id"), 0, "used up"},
		{"no use remains, and the cluster was counted before", twice, used(2, "west-id", "east-id"), 0, ""},
		{"a reserved label of the token", v1alpha1.JoinTokenSpec{Labels: map[string]string{"x.k8s.io/a": "b"}},
			used(0), 0, "reserved"},
	} {
		request := &v1alpha1.JoinRequest{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(start.Add(test.requested))},
			Spec:       v1alpha1.JoinRequestSpec{ClusterID: "east-id"},
		}
		err := Admit(joinToken(test.spec, test.status), request)
		if test.want == "" {
			require.NoError(t, err, test.reason)
			continue
		}
		require.ErrorContains(t, err, test.want, test.reason)
		invalid := new(membership.InvalidError)
		require.ErrorAs(t, err, &invalid, test.reason)
		require.Equal(t, "spec.token.name", invalid.Field, test.reason)
	}
}

func TestAdmitLabels(t *testing.T) {
	region := func(value string) map[string]string { return map[string]string{"region": value} }
	token := func(labels map[string]string, allowed ...v1alpha1.AllowedLabel) *v1alpha1.JoinToken {
		return joinToken(v1alpha1.JoinTokenSpec{Labels: labels, AllowedLabels: allowed}, v1alpha1.JoinTokenStatus{})
	}
	eu := v1alpha1.AllowedLabel{Key: "region", Values: []string{"us", "eu"}}
	us := v1alpha1.AllowedLabel{Key: "region", Values: []string{"us"}}
	const set, unlisted = "decides which ClusterSets", "not allowed by JoinToken \"east\""
	for name, test := range map[string]struct {
		token     *v1alpha1.JoinToken // nil: the request has none
		requested map[string]string
		want      string // empty: admitted
	}{
		"no labels":                             {token(nil), nil, ""},
		"an unprotected label":                  {token(nil), map[string]string{"team": "shop"}, ""},
		"a protected label":                     {token(nil), region("eu"), set},
		"a protected label without a token":     {nil, region("eu"), set},
		"an unprotected label without one":      {nil, map[string]string{"team": "shop"}, ""},
		"a label that the token replaces":       {token(region("us")), region("eu"), ""},
		"a key that the token replaces by \"\"": {token(region("")), region("eu"), ""},
		"an allowed key":                        {token(nil, v1alpha1.AllowedLabel{Key: "region"}), region("eu"), ""},
		"an allowed value":                      {token(nil, eu), region("eu"), ""},
		"another value":                         {token(nil, us), region("eu"), unlisted},
		"an unprotected key that is not listed": {
			token(nil, v1alpha1.AllowedLabel{Key: "region"}), map[string]string{"region": "eu", "team": "shop"}, unlisted,
		},
	} {
		request := &v1alpha1.JoinRequest{Spec: v1alpha1.JoinRequestSpec{Labels: test.requested}}
		err := AdmitLabels(test.token, request, []string{"region", "tier"})
		if test.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, test.want, name)
		invalid := new(membership.InvalidError)
		require.ErrorAs(t, err, &invalid, name)
		require.Contains(t, []string{`spec.labels["region"]`, `spec.labels["team"]`}, invalid.Field, name)
	}
}

func TestCount_KeepsLatestClusters(t *testing.T) {
	var status v1alpha1.JoinTokenStatus
	for n := range 250 {
		count(&status, fmt.Sprint(n))
		require.LessOrEqual(t, len(status.UsedBy), 100, "the API rejects longer lists")
	}
	require.EqualValues(t, 250, status.Uses)
	require.Equal(t, "150", status.UsedBy[0])
	require.Equal(t, "249", status.UsedBy[99])
}

func TestMemberUID(t *testing.T) {
	owned := func(apiVersion, kind string) *v1alpha1.JoinToken {
		token := joinToken(v1alpha1.JoinTokenSpec{}, v1alpha1.JoinTokenStatus{})
		token.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "of-another"},
			{APIVersion: apiVersion, Kind: kind, Name: "b", UID: "uid"},
		}
		return token
	}
	require.Empty(t, MemberUID(joinToken(v1alpha1.JoinTokenSpec{}, v1alpha1.JoinTokenStatus{})),
		"a token without an owner is for any member")
	require.Empty(t, MemberUID(owned("example.com/v1", "MemberCluster")), "an owner of another API group is ignored")
	require.Empty(t, MemberUID(owned(v1alpha1.GroupVersion.String(), "JoinToken")), "an owner of another kind is ignored")
	require.EqualValues(t, "uid", MemberUID(owned(v1alpha1.GroupVersion.String(), "MemberCluster")),
		"the owner that is a MemberCluster")
}
