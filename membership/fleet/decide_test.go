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

func TestHeard(t *testing.T) {
	for _, tc := range []struct {
		reason string
		status int
		err    error
		want   string
	}{
		{"no answer", 0, errors.New("dial"), v1alpha1.ReasonUnreachable},
		{"an answer", 200, nil, v1alpha1.ReasonReachable},
		{"half an answer", 200, errors.New("EOF"), v1alpha1.ReasonUnreachable},
		{"no such path: the server responds", 404, nil, v1alpha1.ReasonReachable},
		{"an API server that is not ready", 500, nil, v1alpha1.ReasonUnreachable},
		{"one that has too much to do", 429, nil, v1alpha1.ReasonUnreachable},
		{"a credential that ended", 401, nil, v1alpha1.ReasonUnauthorized},
		{"one that may do nothing", 403, nil, v1alpha1.ReasonUnauthorized},
		{"a refusal that was cut off is one", 401, errors.New("EOF"), v1alpha1.ReasonUnauthorized},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			require.Equal(t, tc.want, evaluateResponse("/readyz", tc.status, tc.err).reason)
		})
	}
}

func TestTurned(t *testing.T) {
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
		news     bool
	}{
		{"nothing is known yet", nil, ref, finding{}, 0, "", false},
		{"the first look counts", nil, ref, unreachable, 1, v1alpha1.ReasonUnreachable, true},
		{"it answers", nil, ref, reachable, 0, v1alpha1.ReasonReachable, true},
		{"it still does", condition("True", v1alpha1.ReasonReachable, "yes"), ref, reachable, 0, v1alpha1.ReasonReachable,
			false},
		{"once is nothing", condition("True", v1alpha1.ReasonReachable, "yes"), ref, unreachable, 1,
			v1alpha1.ReasonReachable, false},
		{"three times is", condition("True", v1alpha1.ReasonReachable, "yes"), ref, unreachable, 3,
			v1alpha1.ReasonUnreachable, true},
		{"what it says counts at once", condition("True", v1alpha1.ReasonReachable, "yes"), ref,
			finding{v1alpha1.ReasonUnauthorized, "no"}, 1, v1alpha1.ReasonUnauthorized, true},
		{"it corrected the address, and now the CA is wrong",
			condition("False", v1alpha1.ReasonUnreachable, "no such host"), ref, unreachable, 9, v1alpha1.ReasonUnreachable,
			true},
		{"the same trouble is no news", condition("False", v1alpha1.ReasonUnreachable, "refused"), ref, unreachable, 9,
			v1alpha1.ReasonUnreachable, false},
		{"another field is", condition("False", v1alpha1.ReasonKubeConfigInvalid, "server"), ref, invalid, 0,
			v1alpha1.ReasonKubeConfigInvalid, true},
		{"the same field is not", condition("False", v1alpha1.ReasonKubeConfigInvalid, "token"), ref, invalid, 0,
			v1alpha1.ReasonKubeConfigInvalid, false},
		{"no reference, no condition", condition("True", v1alpha1.ReasonReachable, "yes"), nil, finding{}, 0, "", true},
		{"and there is none to take away", nil, nil, finding{}, 0, "", false},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			cluster := &v1alpha1.MemberCluster{}
			cluster.Spec.KubeConfigSecretRef = tc.ref
			if tc.before != nil {
				cluster.Status.Conditions = []metav1.Condition{*tc.before}
			}
			before := cluster.DeepCopy()
			got, news := desiredConditions(cluster, tc.found.after(cluster, tc.failures), metav1.NewTime(time.Unix(1, 0)))
			require.Equal(t, tc.news, news)
			require.Equal(t, before, cluster, "it is an input")
			after := meta.FindStatusCondition(got, v1alpha1.ConditionReachable)
			require.Equal(t, tc.want != "", after != nil)
			if after != nil {
				require.Equal(t, tc.want, after.Reason)
				if tc.news {
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
		looks  []finding
		want   []finding
	}{
		{"the first look counts", []finding{refused}, []finding{refused}},
		{"a look that may be mistaken tells nothing", []finding{refused, {}}, []finding{refused, refused}},
		{"two troubles that take turns are one", []finding{refused, silent, refused, silent},
			[]finding{refused, refused, refused, refused}},
		{"one that stays is another", []finding{refused, silent, silent}, []finding{refused, refused, silent}},
		{"another reason counts at once", []finding{refused, unauthorized}, []finding{refused, unauthorized}},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			var reported, last finding
			for i, found := range tc.looks {
				reported, last = found.stabilized(reported, last), found
				require.Equal(t, tc.want[i], reported)
			}
		})
	}
}

func TestCounted(t *testing.T) {
	cluster := &v1alpha1.MemberCluster{}
	require.Empty(t, finding{v1alpha1.ReasonReachable, "yes"}.counted(cluster), "what the hub is not to reach is "+
		"not counted, though it is still being cleared up")
	cluster.Spec.KubeConfigSecretRef = ref
	require.Equal(t, v1alpha1.ReasonReachable, finding{v1alpha1.ReasonReachable, "yes"}.counted(cluster))
	require.Equal(t, connecting, finding{}.counted(cluster), "nothing is known yet")
}

var ref = &v1alpha1.KubeConfigSecretRef{Name: "x"}

func TestProperty(t *testing.T) {
	require.Equal(t, agent.PropertyKubeSystemUID, kubeSystemUID, "what the agent tells is what is looked for")
}

func TestOptions(t *testing.T) {
	named := func(name string) Runner { return stub(name) }
	for _, tc := range []struct {
		reason  string
		options Options
		want    string
	}{
		{"the zero value works", Options{}, ""},
		{"what cannot be a namespace", Options{Namespaces: []string{"ok", "No"}}, "fleet.Options.Namespaces[1]"},
		{"a runner that is none", Options{Runners: []Runner{nil}}, "fleet.Options.Runners[0]"},
		{"a runner without a name", Options{Runners: []Runner{named("")}}, "fleet.Options.Runners[0]"},
		{"two of one name could not be told apart", Options{Runners: []Runner{named("a"), named("a")}},
			"fleet.Options.Runners[1]"},
		{"nor could one from live clusters", Options{Runners: []Runner{named("live cluster")}}, "fleet.Options.Runners[0]"},
		{"an interval in the past", Options{ProbeInterval: -1}, "fleet.Options.ProbeInterval"},
		{"a timeout in the past", Options{ProbeTimeout: -1}, "fleet.Options.ProbeTimeout"},
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

func TestFits(t *testing.T) {
	require.True(t, withinLimits(&v1alpha1.Endpoint{Server: "https://member", CABundle: make([]byte, 49152)}))
	for _, e := range []v1alpha1.Endpoint{
		{CABundle: make([]byte, 49153)}, {Server: strings.Repeat("a", 2049)}, {ProxyURL: strings.Repeat("a", 2049)},
		{TLSServerName: strings.Repeat("a", 254)},
	} {
		require.False(t, withinLimits(&e), "the API server would refuse the status as a whole, its conditions included")
	}
}
