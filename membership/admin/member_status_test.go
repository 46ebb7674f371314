package admin

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/muster-sdk/muster/membership/v1alpha1"
)

func TestMemberStatus(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: "Because", Message: "Message of " + kind + "."}
	}
	for _, test := range []struct {
		reason  string
		cluster v1alpha1.MemberCluster
		done    bool
		detail  string
		err     error
	}{
		{"no conditions", v1alpha1.MemberCluster{}, false, "check that the controller of the hub is running", nil},
		{"the first false condition is reported, without its full stop",
			v1alpha1.MemberCluster{Status: v1alpha1.MemberClusterStatus{Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionJoined, metav1.ConditionFalse),
				condition(v1alpha1.ConditionReachable, metav1.ConditionFalse),
				condition(v1alpha1.ConditionAccepted, metav1.ConditionTrue)}}},
			false, "Message of Reachable (Because)", nil},
		{"joined, other conditions are false",
			v1alpha1.MemberCluster{Status: v1alpha1.MemberClusterStatus{Conditions: []metav1.Condition{
				condition(v1alpha1.ConditionJoined, metav1.ConditionTrue),
				condition(v1alpha1.ConditionReachable, metav1.ConditionFalse)}}}, true, "the member has joined", nil},
		{"denied by an administrator", v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{Accepted: new(false)}}, false,
			"", ErrDenied},
		{"leave requested by an administrator",
			v1alpha1.MemberCluster{Spec: v1alpha1.MemberClusterSpec{State: v1alpha1.StateLeave}},
			false, "", ErrDenied},
	} {
		got, err := memberStatus(&test.cluster)
		require.ErrorIs(t, err, test.err, test.reason)
		require.Equal(t, test.done, got.done, test.reason)
		require.Contains(t, got.detail, test.detail, test.reason)
	}
}

func TestLeaving_Message(t *testing.T) {
	deadline := metav1.NewTime(time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC))
	for _, test := range []struct {
		reason string
		leave  *v1alpha1.LeaveStatus
		want   string
	}{
		{"no leave in the status", nil,
			"the hub has not started the leave yet: check that the controller of the hub is running"},
		{"an ended leave in the status", &v1alpha1.LeaveStatus{Ended: true}, "the hub has not started the leave " +
			"yet: check that the controller of the hub is running"},
		{"the hub waits for a gate",
			&v1alpha1.LeaveStatus{Deadline: deadline, Waiting: "works", Remaining: []string{"a", "b", "c", "d", "e"}},
			"the hub waits for works: a, b, c and 2 more (until 12:30:00 UTC at the latest)"},
		{"the hub waits for the agent", &v1alpha1.LeaveStatus{Deadline: deadline, Waiting: "agent"},
			"the hub waits for the member's " +
				"agent (until 12:30:00 UTC at the latest)"},
		{"the hub waits for no component", &v1alpha1.LeaveStatus{Deadline: deadline},
			"the hub removes its objects of the member " +
				"(until 12:30:00 UTC at the latest)"},
		{"a forced leave", &v1alpha1.LeaveStatus{Deadline: deadline, Waiting: "agent", Forced: true},
			"the deadline has passed, and the hub continues without the member's agent"},
	} {
		require.Equal(t, test.want,
			leaving(&v1alpha1.MemberCluster{Status: v1alpha1.MemberClusterStatus{Leave: test.leave}}), test.reason)
	}
}

func TestReporter_Await(t *testing.T) {
	unreachable := &UnreachableError{Which: Hub, Err: errors.New("refused")}
	final := errors.New("final")
	for _, test := range []struct {
		reason string
		states []seen // the last one repeats
		errs   []error
		cancel time.Duration
		err    error
		text   string // of the error
		steps  []Step
	}{
		{"the third state is done", []seen{{detail: "soon"}, {detail: "soon"}, {done: true, detail: "now"}}, nil, 0, nil, "",
			[]Step{{"wait", "", false}, {"wait", "soon", false}, {"wait", "now", true}}},
		{"the timeout has the last detail", []seen{{detail: "not yet"}}, nil, 0, context.DeadlineExceeded,
			"wait: timed out after 10s: not yet",
			[]Step{{"wait", "", false}, {"wait", "not yet", false}}},
		{"a network failure ends", []seen{{}, {done: true}}, []error{unreachable, nil}, 0, nil, "",
			[]Step{{"wait", "", false}, {"wait", unreachable.Error(), false}, {"wait", "", true}}},
		{"a network failure lasts", []seen{{}}, []error{unreachable}, 0, context.DeadlineExceeded, "refused",
			[]Step{{"wait", "", false}, {"wait", unreachable.Error(), false}}},
		{"a permanent error ends the wait", []seen{{}}, []error{final}, 0, final, "final", []Step{{"wait", "", false}}},
		{"the caller cancels the context", []seen{{detail: "not yet"}}, nil, time.Second, context.Canceled, "not yet",
			[]Step{{"wait", "", false}, {"wait", "not yet", false}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if test.cancel > 0 {
				time.AfterFunc(test.cancel, cancel)
			}
			reported, n := &steps{}, 0
			err := reporter(reported.record).await(ctx, "wait", 10*time.Second, func(context.Context) (seen, error) {
				i := min(n, len(test.states)-1)
				n++
				if len(test.errs) > 0 {
					return test.states[i], test.errs[min(n-1, len(test.errs)-1)]
				}
				return test.states[i], nil
			})
			require.ErrorIs(t, err, test.err, test.reason)
			if err != nil {
				require.ErrorContains(t, err, test.text, test.reason)
			}
			require.Equal(t, test.steps, []Step(*reported), test.reason)
		})
	}
}

func TestEndpoint(t *testing.T) {
	for _, test := range []struct {
		reason string
		config rest.Config
		server string
		ca     string
		want   endpoint
		fails  bool
	}{
		{"the endpoint of the config",
			rest.Config{Host: "https://east:6443/",
				TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), ServerName: "kubernetes"}}, "", "",
			endpoint{server: "https://east:6443/", serverName: "kubernetes", ca: []byte("ca")}, false},
		{"a config without a scheme", rest.Config{Host: "east:6443"}, "", "", endpoint{server: "https://east:6443"},
			false},
		{"another server has no server name of the config",
			rest.Config{Host: "https://127.0.0.1",
				TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), ServerName: "local"}},
			"https://east", "", endpoint{server: "https://east", ca: []byte("ca")}, false},
		{"another server with another CA",
			rest.Config{Host: "https://127.0.0.1", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "https://east",
			"other", endpoint{server: "https://east", ca: []byte("other")}, false},
		{"an insecure config",
			rest.Config{Host: "https://east", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, "", "", endpoint{}, true},
		{"a missing CA file",
			rest.Config{Host: "https://east", TLSClientConfig: rest.TLSClientConfig{CAFile: "/no/such/file"}}, "", "",
			endpoint{}, true},
	} {
		got, err := endpointOf(&test.config, JoinOptions{Server: test.server, CA: []byte(test.ca)})
		require.Equal(t, test.fails, err != nil, "%s: %v", test.reason, err)
		if !test.fails {
			require.Equal(t, test.want, got, test.reason)
		}
	}
}
