package fleet

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-sdk/muster/membership/agent"
	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestEvaluateResponse(t *testing.T) {
	for _, tc := range []struct {
		reason string
		status int
		err    error
		want   string
	}{
		{"no response", 0, errors.New("dial"), v1alpha1.ReasonUnreachable},
		{"a response", 200, nil, v1alpha1.ReasonReachable},
		{"an incomplete response", 200, errors.New("EOF"), v1alpha1.ReasonUnreachable},
		{"not found, the server responds", 404, nil, v1alpha1.ReasonReachable},
		{"an API server that is not ready", 500, nil, v1alpha1.ReasonUnreachable},
		{"too many requests", 429, nil, v1alpha1.ReasonUnreachable},
		{"an expired credential", 401, nil, v1alpha1.ReasonUnauthorized},
		{"a credential without permissions", 403, nil, v1alpha1.ReasonUnauthorized},
		{"an incomplete response with status 401", 401, errors.New("EOF"), v1alpha1.ReasonUnauthorized},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.want, evaluateResponse("/readyz", tc.status, tc.err).reason)
		})
	}
}

func TestDesiredConditions_Reachable(t *testing.T) {
	condition := func(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
		return &metav1.Condition{Type: v1alpha1.ConditionReachable, Status: status, Reason: reason, Message: message}
	}
	reachable, unreachable := finding{v1alpha1.ReasonReachable, "yes"}, finding{v1alpha1.ReasonUnreachable, "refused"}
	invalid := finding{v1alpha1.ReasonKubeConfigInvalid, "token"}
	for _, tc := range []struct {
		reason   string
		before   *metav1.Condition
		ref      *v1alpha1.KubeConfigSecretRef
		found    finding
		failures int
		want     string // reason; "": no condition
		changed  bool
	}{
		{"no result yet", nil, ref, finding{}, 0, "", false},
		{"first result is a failure", nil, ref, unreachable, 1, v1alpha1.ReasonUnreachable, true},
		{"first result is a success", nil, ref, reachable, 0, v1alpha1.ReasonReachable, true},
		{"another success", condition("True", v1alpha1.ReasonReachable, "yes"), ref, reachable, 0, v1alpha1.ReasonReachable,
			false},
		{"first failure after a success", condition("True", v1alpha1.ReasonReachable, "yes"), ref, unreachable, 1,
			v1alpha1.ReasonReachable, false},
		{"third failure after a success", condition("True", v1alpha1.ReasonReachable, "yes"), ref, unreachable, 3,
			v1alpha1.ReasonUnreachable, true},
		{"first Unauthorized response after a success", condition("True", v1alpha1.ReasonReachable, "yes"), ref,
			finding{v1alpha1.ReasonUnauthorized, "no"}, 1, v1alpha1.ReasonUnauthorized, true},
		{"unreachable for another reason",
			condition("False", v1alpha1.ReasonUnreachable, "no such host"), ref, unreachable, 9, v1alpha1.ReasonUnreachable,
			true},
		{"unreachable for the same reason", condition("False", v1alpha1.ReasonUnreachable, "refused"), ref, unreachable, 9,
			v1alpha1.ReasonUnreachable, false},
		{"another invalid field", condition("False", v1alpha1.ReasonKubeConfigInvalid, "server"), ref, invalid, 0,
			v1alpha1.ReasonKubeConfigInvalid, true},
		{"the same invalid field", condition("False", v1alpha1.ReasonKubeConfigInvalid, "token"), ref, invalid, 0,
			v1alpha1.ReasonKubeConfigInvalid, false},
		{"the reference was removed, the condition is removed", condition("True", v1alpha1.ReasonReachable, "yes"), nil,
			finding{}, 0, "", true},
		{"no reference and no condition", nil, nil, finding{}, 0, "", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cluster := &v1alpha1.MemberCluster{}
			cluster.Spec.KubeConfigSecretRef = tc.ref
			if tc.before != nil {
				cluster.Status.Conditions = []metav1.Condition{*tc.before}
			}
			before := cluster.DeepCopy()
			got, changed := desiredConditions(cluster, tc.found.after(cluster, tc.failures), metav1.NewTime(time.Unix(1, 0)))
			require.Equal(t, tc.changed, changed)
			require.Equal(t, before, cluster, "the input must not be modified")
			after := meta.FindStatusCondition(got, v1alpha1.ConditionReachable)
			require.Equal(t, tc.want != "", after != nil)
			if after != nil {
				require.Equal(t, tc.want, after.Reason)
				if tc.changed {
					require.Equal(t, tc.found.message, after.Message)
				}
				require.Equal(t, tc.want == v1alpha1.ReasonReachable, after.Status == metav1.ConditionTrue)
			}
		})
	}
}

func TestFinding_Stabilized(t *testing.T) {
	refused, silent := finding{v1alpha1.ReasonUnreachable, "refused"}, finding{v1alpha1.ReasonUnreachable, "silent"}
	unauthorized := finding{v1alpha1.ReasonUnauthorized, "no"}
	for _, tc := range []struct {
		reason string
		found  []finding
		want   []finding
	}{
		{"the first finding is reported", []finding{refused}, []finding{refused}},
		{"an empty finding does not replace the reported one", []finding{refused, {}}, []finding{refused, refused}},
		{"two alternating failures do not replace the reported one", []finding{refused, silent, refused, silent},
			[]finding{refused, refused, refused, refused}},
		{"a repeated failure replaces the reported one", []finding{refused, silent, silent},
			[]finding{refused, refused, silent}},
		{"another reason is reported immediately", []finding{refused, unauthorized}, []finding{refused, unauthorized}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var reported, last finding
			for i, found := range tc.found {
				reported, last = found.stabilized(reported, last), found
				require.Equal(t, tc.want[i], reported)
			}
		})
	}
}

func TestFinding_Counted(t *testing.T) {
	cluster := &v1alpha1.MemberCluster{}
	require.Empty(t, finding{v1alpha1.ReasonReachable, "yes"}.counted(cluster), "a member without a "+
		"reference is not counted")
	cluster.Spec.KubeConfigSecretRef = ref
	require.Equal(t, v1alpha1.ReasonReachable, finding{v1alpha1.ReasonReachable, "yes"}.counted(cluster))
	require.Equal(t, connecting, finding{}.counted(cluster), "no result yet")
}

var ref = &v1alpha1.KubeConfigSecretRef{Name: "x"}

func TestKubeSystemUID_IsPropertyOfAgent(t *testing.T) {
	require.Equal(t, agent.PropertyKubeSystemUID, kubeSystemUID, "hub and agent use the same property")
}

func TestOptions_Validate(t *testing.T) {
	named := func(name string) Runner { return stub(name) }
	for _, tc := range []struct {
		reason  string
		options Options
		want    string
	}{
		{"the zero value is valid", Options{}, ""},
		{"an invalid namespace", Options{Namespaces: []string{"ok", "No"}}, "fleet.Options.Namespaces[1]"},
		{"a nil runner", Options{Runners: []Runner{nil}}, "fleet.Options.Runners[0]"},
		{"a runner without a name", Options{Runners: []Runner{named("")}}, "fleet.Options.Runners[0]"},
		{"two runners with the same name", Options{Runners: []Runner{named("a"), named("a")}},
			"fleet.Options.Runners[1]"},
		{"a runner with the reserved name of live clusters", Options{Runners: []Runner{named("live cluster")}},
			"fleet.Options.Runners[0]"},
		{"a negative probe interval", Options{ProbeInterval: -1}, "fleet.Options.ProbeInterval"},
		{"a negative probe timeout", Options{ProbeTimeout: -1}, "fleet.Options.ProbeTimeout"},
		{"negative number of workers", Options{Workers: -1}, "fleet.Options.Workers"},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			_, err := tc.options.withDefaults()
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tc.want)
			}
		})
	}
}

func TestEndpoint_WithinLimits(t *testing.T) {
	require.True(t, withinLimits(&v1alpha1.Endpoint{Server: "https://member", CABundle: make([]byte, 49152)}))
	for _, e := range []v1alpha1.Endpoint{
		{CABundle: make([]byte, 49153)}, {Server: strings.Repeat("a", 2049)}, {ProxyURL: strings.Repeat("a", 2049)},
		{TLSServerName: strings.Repeat("a", 254)},
	} {
		require.False(t, withinLimits(&e), "the API server rejects a status with a larger endpoint")
	}
}
